//! The refusals of the page (I5).

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

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
    forged.cookie = cookie.split(';').next().unwrap().replace("=61", "=62");
    assert_eq!(forged.get("/ui").await.status, 401);
    assert!(!served.process.log().contains(ANN), "nor in the log");
}

/// I5: the store remembers a sign-out, so neither a restart nor another server of it restores the session.
#[tokio::test]
async fn i5_a_session_that_was_signed_out_stays_ended_at_every_server_of_the_store() {
    let mut world = World::new().await;
    let first = Served::start(&mut world, &[]).await;
    let other = Served::start(&mut world, &[]).await;
    let (browser, second) = (
        Browser::signed_in(first.address, ANN).await,
        Browser::signed_in(first.address, ANN).await,
    );
    let at = |address: SocketAddr, browser: &Browser| {
        let cookie = browser
            .cookie
            .replace(&format!("_{}=", browser.address.port()), &format!("_{}=", address.port()));
        Browser { address, cookie }
    };
    let there = at(other.address, &browser);
    assert_eq!(there.get("/ui").await.status, 200);
    let events = there.reply("GET /ui/events", &[], "").await;
    assert_eq!(events.status, 200, "{}", events.head);
    assert_eq!(browser.post("/ui/sign-out", &[]).await.status, 303);
    second.ask("Is anybody there? [[sim:ok;words=60;delay_ms=0]]").await;
    let told = tokio::time::timeout(Duration::from_secs(60), events.body()).await;
    assert!(!told.expect("the stream ends").contains("event: change"), "after signing out");
    assert_eq!(browser.get("/ui").await.status, 401);
    assert_eq!(at(other.address, &browser).get("/ui").await.status, 401, "another server");
    assert_eq!(second.get("/ui").await.status, 200, "another session of the same owner");
    drop((first, other));
    let again = Served::start(&mut world, &[]).await;
    assert_eq!(at(again.address, &browser).get("/ui").await.status, 401, "after a restart");
    assert_eq!(at(again.address, &second).get("/ui").await.status, 200);
}

/// I5: the form is for everyone; tokens are tried ten times a minute from one address, and further ones are not even
/// checked.
#[tokio::test]
async fn i5_attempts_to_sign_in_are_limited_and_the_form_is_not() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let browser = Browser::new(served.address);
    for attempt in 0..10 {
        let wrong = browser.post("/ui/sign-in", &[("token", "wrong-0123456789abcdef")]).await;
        assert_eq!(wrong.status, 401, "attempt {attempt}");
    }
    let limited = browser.post("/ui/sign-in", &[("token", ANN)]).await;
    assert_eq!((limited.status, limited.cookie), (429, None), "a right token is not looked at");
    assert!(limited.head.to_lowercase().contains("\r\nretry-after: "), "{}", limited.head);
    for _ in 0..100 {
        assert_eq!(browser.get("/ui").await.status, 401, "the form is never limited");
    }
    // Bearer tokens are counted separately, on the page too.
    assert_eq!(served.client("wrong-0123456789abcdef").send("GET /mcp", &[], "").await.status, 401);
    let wrong = [("Authorization", "Bearer wrong-0123456789abcdef")];
    let mut refused = 0;
    while browser.send("GET /ui", &wrong, "").await.status == 401 {
        refused += 1;
        assert!(refused < 100, "never asked to wait");
    }
    assert!((50..=65).contains(&refused), "{refused}");
    assert_eq!(served.client(ANN).send("GET /nothing", &[], "").await.status, 404);
}

/// I5: behind a trusted proxy each client has its own attempts, and nobody else can claim an address.
#[tokio::test]
async fn i5_only_a_trusted_proxy_says_whose_attempt_it_is() {
    let mut world = World::new().await;
    for (trusted, own_attempts) in [("", false), ("192.0.2.0/24", false), ("127.0.0.1", true)] {
        world.set("OUTLAST_TRUSTED_PROXIES", trusted);
        let served = Served::start(&mut world, &[]).await;
        let browser = Browser::new(served.address);
        let origin = format!("http://{}", served.address);
        let attempt = async |client: &str| {
            let headers = [("Origin", origin.as_str()), ("X-Forwarded-For", client)];
            browser.send("POST /ui/sign-in", &headers, "token=wrong").await.status
        };
        for number in 0..10 {
            // Entries to the left of the proxy's own entry are invented by the client.
            assert_eq!(attempt(&format!("10.0.0.{number}, 198.51.100.7")).await, 401);
        }
        assert_eq!(attempt("198.51.100.7").await, 429, "{trusted}");
        let other = if own_attempts { 401 } else { 429 };
        assert_eq!(attempt("198.51.100.8").await, other, "{trusted}");
    }
}

/// I5: nobody needs a large form to sign in, and an endless form is not collected in memory.
#[tokio::test]
async fn i5_a_sign_in_form_is_small_and_counted_before_it_is_read() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &["--max-body-bytes", "10000"]).await;
    let browser = Browser::new(served.address);
    let large = browser.post("/ui/sign-in", &[("token", &"a".repeat(4096))]).await;
    assert_eq!(large.status, 413, "{}", large.body);
    // Two owners share the room, so strangers get half of it: one form of 4 KiB under way.
    let mut held = TcpStream::connect(served.address).await.unwrap();
    let head = format!(
        "POST /ui/sign-in HTTP/1.1\r\nHost: {0}\r\nOrigin: http://{0}\r\nContent-Length: 4096\r\n\
         Expect: 100-continue\r\n\r\n",
        served.address
    );
    held.write_all(head.as_bytes()).await.unwrap();
    // Sent when the server begins to read the body.
    let mut goes_on = [0; 12];
    held.read_exact(&mut goes_on).await.unwrap();
    assert_eq!(&goes_on, b"HTTP/1.1 100");
    let refused = browser.post("/ui/sign-in", &[("token", &"a".repeat(1000))]).await;
    assert_eq!(refused.status, 503, "{}", refused.body);
    let ann = served.client(ANN);
    assert_eq!(ann.send("GET /nothing", &[], "").await.status, 404, "owners are served");
}

/// A cookie does not depend on the memory of the server that issued it.
#[tokio::test]
async fn i5_a_browser_stays_signed_in_when_the_server_is_started_again() {
    let mut world = World::new().await;
    let first = Served::start(&mut world, &[]).await;
    let mut browser = Browser::signed_in(first.address, ANN).await;
    drop(first);
    let second = Served::start(&mut world, &[]).await;
    // The name of the cookie contains the port, which has changed.
    let port = |address: SocketAddr| format!("_{}=", address.port());
    browser.cookie = browser.cookie.replace(&port(browser.address), &port(second.address));
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

/// I5: characters that control or hide, raw or as entities, are visible on the page and in its files, and have no
/// effect there.
#[tokio::test]
async fn i5_hidden_characters_of_a_report_are_seen_on_the_page_and_in_exports() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let browser = Browser::signed_in(served.address, ANN).await;
    let job = browser.ask("What? [[sim:inject;line=100;words=60;delay_ms=0]]").await;
    let shown = browser.until(&job, "state succeeded").await;
    assert!(shown.body.contains("&lt;U+202E&gt;txt.exe"), "{}", shown.body);
    assert!(shown.body.contains("&lt;U+E0041&gt;"), "{}", shown.body);
    for path in [job.clone(), format!("{job}/export/html"), format!("{job}/export/md")] {
        let body = browser.get(&path).await.body;
        let steers = body.chars().find(|it| {
            (it.is_control() && !matches!(it, '\n' | '\t' | '\r'))
                || matches!(it, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e0fff}')
        });
        assert_eq!(steers, None, "{path}");
    }
}
