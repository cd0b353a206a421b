//! What the page refuses (I5).

use super::browser::Browser;
use crate::http::client::{ANN, Served};
use crate::support::World;

#[tokio::test]
async fn i5_every_answer_forbids_what_does_not_come_from_here() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let ann = Browser::signed_in(served.address, ANN).await;
    for path in ["/ui", "/ui/page.js", "/ui/nothing/at/all", "/ui/ask", "/ui/enter?code=x"] {
        for browser in [&ann, &Browser::new(served.address)] {
            let head = browser.get(path).await.head.to_lowercase();
            for part in [
                "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'",
                "frame-ancestors 'none'",
                "x-content-type-options: nosniff",
                "referrer-policy: same-origin",
            ] {
                assert!(head.contains(part), "{path}: {part}: {head}");
            }
            assert!(
                !head.contains("unsafe-inline") && !head.contains("access-control-allow"),
                "{head}"
            );
        }
    }
}

#[tokio::test]
async fn i5_nothing_is_shown_without_a_token_and_a_wrong_one_signs_nobody_in() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let browser = Browser::new(served.address);
    for path in ["/ui", "/ui/jobs/0123456789abcdef0123456789abcdef", "/ui/spend", "/ui/events"] {
        let shown = browser.get(path).await;
        assert_eq!(shown.status, 401, "{path}");
        assert!(shown.body.contains("name=\"token\""), "{path}: {}", shown.body);
    }
    let wrong = browser.post("/ui/sign-in", &[("token", "wrong-0123456789abcdef")]).await;
    assert_eq!((wrong.status, wrong.cookie), (401, None));
    assert!(!wrong.body.contains("wrong-0123456789abcdef"), "a token is not repeated");
    let right = browser.post("/ui/sign-in", &[("token", ANN), ("next", "//evil.example")]).await;
    assert_eq!(right.location.as_deref(), Some("/ui"), "it leads nowhere else");
    let cookie = right.cookie.unwrap();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/ui"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains(ANN), "the token is not in it");
    let mut forged = browser.clone();
    forged.cookie = cookie.split(';').next().unwrap().replace("outlast_page=61", "outlast_page=62");
    assert_eq!(forged.get("/ui").await.status, 401);
    assert!(!served.process.log().contains(ANN), "nor in the log");
}

/// A cookie needs no memory of the server that gave it.
#[tokio::test]
async fn i5_a_browser_stays_signed_in_when_the_server_is_started_again() {
    let mut world = World::new().await;
    let first = Served::start(&mut world, &[]).await;
    let mut browser = Browser::signed_in(first.address, ANN).await;
    drop(first);
    let second = Served::start(&mut world, &[]).await;
    browser.address = second.address;
    assert_eq!(browser.get("/ui").await.status, 200);
    let out = browser.post("/ui/sign-out", &[]).await;
    assert!(out.cookie.unwrap().contains("Max-Age=0"));
}

#[tokio::test]
async fn i5_what_another_site_sends_changes_nothing() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let browser = Browser::signed_in(served.address, ANN).await;
    let own = format!("http://{}", served.address);
    let cases: [&[(&str, &str)]; 6] = [
        &[],
        &[("Sec-Fetch-Site", "cross-site")],
        &[("Sec-Fetch-Site", "same-site")],
        &[("Origin", "http://evil.example")],
        &[("Origin", "null")],
        &[("Sec-Fetch-Site", "cross-site"), ("Origin", own.as_str())],
    ];
    let fields = "question=Something&confirmed=yes";
    for headers in cases {
        for path in ["/ui/ask", "/ui/sign-out", "/ui/sign-in"] {
            let shown = browser.send(&format!("POST {path}"), headers, fields).await;
            assert_eq!(shown.status, 403, "{path} {headers:?}");
            assert!(shown.body.contains("CROSS_SITE"), "{}", shown.body);
        }
    }
    assert!(browser.get("/ui").await.body.contains("No jobs yet."));
    assert_eq!(world.submits(), 0);
    let led = browser.send("GET /ui", &[("Sec-Fetch-Site", "cross-site")], "").await;
    assert_eq!(led.status, 200, "a link from elsewhere may lead here");
    let evil = b"GET /ui HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    assert_eq!(served.say(evil).await.unwrap().status, 421);
}

/// A report, its sources and a question that are all full of HTML.
#[tokio::test]
async fn i5_hostile_text_stays_text() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let browser = Browser::signed_in(served.address, ANN).await;
    let job = browser.ask("<script>alert(1)</script>\"><img src=x onerror=alert(2)>").await;
    browser.until(&job, "state succeeded").await;
    let search =
        "/ui?q=%22%3E%3Cscript%3Ealert(3)%3C/script%3E&provider=%3Csvg%20onload=alert(4)%3E";
    for path in [job.as_str(), "/ui", "/ui/conversations", search] {
        let body = browser.get(path).await.body;
        for part in ["<script>alert", "<img", "<svg", "onerror=alert(2)>"] {
            let escaped = body.replace("onerror=alert(2)&gt;", "");
            assert!(!escaped.contains(part), "{path}: {part}: {body}");
        }
    }
}
