//! The content of the page.

use super::browser::Browser;
use crate::http::client::{ANN, BOB, Served};
use crate::support::World;

/// I1: one server, one page, no build step and no resources from other servers.
#[tokio::test]
async fn i1_the_http_server_has_the_page_and_all_of_it_is_small_and_its_own() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let browser = Browser::signed_in(served.address, ANN).await;
    let root = browser.get("/").await;
    assert_eq!((root.status, root.location.as_deref()), (303, Some("/ui")));
    let mut bytes = 0;
    for asset in ["/ui/page.css", "/ui/page.js", "/ui/icon.svg"] {
        let shown = Browser::new(served.address).get(asset).await;
        assert_eq!(shown.status, 200, "{asset} needs no token (I8)");
        bytes += shown.body.len();
    }
    assert!(bytes < 60_000, "{bytes} bytes of assets");
    for path in ["/ui", "/ui/conversations", "/ui/ask", "/ui/spend"] {
        let shown = browser.get(path).await;
        assert_eq!(shown.status, 200, "{path}");
        for from_elsewhere in ["src=\"http", "href=\"http", "url(", "<style", "onclick", "style=\""]
        {
            assert!(!shown.body.contains(from_elsewhere), "{path}: {from_elsewhere}");
        }
    }
}

#[tokio::test]
async fn i2_the_list_has_counts_filters_search_and_pages() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let browser = Browser::signed_in(served.address, ANN).await;
    assert!(browser.get("/ui").await.body.contains("No jobs yet."));
    let done = browser.ask("How do leases outlive their workers?").await;
    browser.until(&done, "state succeeded").await;
    let running = browser.ask("What is a fence? [[sim:ok;words=60;hold]]").await;
    browser.until(&running, "state running").await;

    let list = browser.until("/ui", "running <b>1</b>").await.body;
    for part in ["all <b>2</b>", "succeeded <b>1</b>", "failed <b>0</b>", "perplexity", "Today $"] {
        assert!(list.contains(part), "{part}: {list}");
    }
    let cases = [
        ("/ui?state=succeeded", true, false),
        ("/ui?state=running", false, true),
        ("/ui?q=lease", true, false),
        ("/ui?q=fence+what", false, true),
        ("/ui?q=fence&state=succeeded", false, false),
        ("/ui?provider=perplexity", true, true),
        ("/ui?provider=library", false, false),
        ("/ui?owner=bob", true, true),
    ];
    for (address, has_done, has_running) in cases {
        let body = browser.get(address).await.body;
        assert_eq!(body.contains(&format!("href=\"{done}\"")), has_done, "{address}");
        assert_eq!(body.contains(&format!("href=\"{running}\"")), has_running, "{address}");
    }
    let failed = browser.ask("Does it fail? [[sim:drop_submit]]").await;
    browser.until(&failed, "state failed").await;
    for (address, is_listed) in [
        ("/ui?code=SUBMIT_UNKNOWN", true),
        ("/ui?code=SUBMIT_UNKNOWN&q=fail", true),
        ("/ui?code=TIMEOUT", false),
        ("/ui?code=SUBMIT_UNKNOWN&state=running", false),
    ] {
        let body = browser.get(address).await.body;
        assert_eq!(body.contains(&format!("href=\"{failed}\"")), is_listed, "{address}");
        assert!(!is_listed || body.contains("class=\"code\">SUBMIT_UNKNOWN</b>"), "{address}");
        assert!(!body.contains(&format!("href=\"{done}\"")), "{address}");
    }
    let id = done.rsplit('/').next().unwrap();
    assert!(browser.get(&format!("/ui?q={}", &id[..12])).await.body.contains(&done), "by id");
    assert!(browser.get("/ui?q=nosuchword").await.body.contains("Nothing fits these filters."));
}

#[tokio::test]
async fn i3_a_job_has_its_timeline_money_report_sources_and_exports() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let browser = Browser::signed_in(served.address, ANN).await;
    let job = browser.ask("How do leases outlive their workers?").await;
    let shown = browser.until(&job, "state succeeded").await.body;
    for part in [
        "<h1 class=\"question\" dir=\"auto\">How do leases outlive their workers?</h1>",
        "class=\"cite\" href=\"#s1-1\"",
        "id=\"s1-1\"",
        "accepted by perplexity",
        "Remote run",
        "(reported by the provider)",
        "by the page",
        "Ask on",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    for (format, part) in [("md", "## Sources"), ("html", "class=\"cite\""), ("json", "\"turns\"")]
    {
        let file = browser.get(&format!("{job}/export/{format}")).await;
        assert_eq!(file.status, 200, "{format}");
        assert!(file.body.contains(part), "{format}: {}", file.body);
        assert!(file.head.to_lowercase().contains("attachment; filename="), "{}", file.head);
    }
    let conversations = browser.get("/ui/conversations").await.body;
    let path = conversations.split("href=\"/ui/conversations/").nth(1).unwrap();
    let path = format!("/ui/conversations/{}", path.split('"').next().unwrap());
    assert!(browser.get(&path).await.body.contains("id=\"s1-1\""));
    assert_eq!(browser.get("/ui/jobs/nothing").await.status, 404);
}

/// A failed job: every attempt, and the line about money.
#[tokio::test]
async fn i3_tries_and_errors_are_in_one_list() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let browser = Browser::signed_in(served.address, ANN).await;
    let job = browser.ask("Why not? [[sim:fail]]").await;
    let shown = browser.until(&job, "state failed").await.body;
    for part in ["try 1 failed", "failed for good", "<dt>A retry</dt>", "notice bad", "<dd>maybe $"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

/// I5, I8: another owner's jobs, counts, search words and changes are not there.
#[tokio::test]
async fn i8_an_owner_sees_nothing_of_another() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let ann = Browser::signed_in(served.address, ANN).await;
    let bob = Browser::signed_in(served.address, BOB).await;
    let job = ann.ask("A secret of hers").await;
    let shown = ann.until(&job, "state succeeded").await.body;
    let conversation =
        shown.split("name=\"conversation\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    for path in ["/ui", "/ui?q=secret", "/ui?owner=ann", "/ui/conversations", "/ui/spend"] {
        let body = bob.get(path).await.body;
        assert!(!body.contains("secret of"), "{path}");
        assert!(!body.contains("succeeded <b>1</b>"), "{path}");
        assert!(!body.contains("name=\"owner\""), "{path}: no owner filter");
    }
    assert_eq!(bob.get(&job).await.status, 404);
    for path in [format!("{job}/cancel"), format!("{job}/retry"), format!("{job}/delete")] {
        assert_eq!(bob.post(&path, &[("confirmed", "yes")]).await.status, 404, "{path}");
    }
    let id = job.rsplit('/').next().unwrap();
    for path in [
        format!("{job}/export/md"),
        format!("/ui/events?job={id}"),
        format!("/ui/conversations/{conversation}"),
        format!("/ui/conversations/{conversation}/export/html"),
    ] {
        assert_eq!(bob.get(&path).await.status, 404, "{path}");
    }
    let fields =
        [("conversation", conversation), ("question", "What was it?"), ("confirmed", "yes")];
    let refused = bob.post("/ui/ask", &fields).await;
    assert!(refused.body.contains("no such conversation"), "{}", refused.body);
    assert_eq!(ann.get(&job).await.status, 200);
}

/// Live: an open page is notified of a change, but not of another owner's.
#[tokio::test]
async fn i2_an_open_page_is_notified_of_changes_to_its_jobs() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let ann = Browser::signed_in(served.address, ANN).await;
    let bob = Browser::signed_in(served.address, BOB).await;
    let mut anns = ann.reply("GET /ui/events", &[], "").await;
    let mut bobs = bob.reply("GET /ui/events", &[], "").await;
    assert_eq!(anns.header("content-type"), Some("text/event-stream"));
    assert!(anns.text_event().await.contains("event: open"));
    assert!(bobs.text_event().await.contains("event: open"));
    let job = ann.ask("Something").await;
    while !anns.text_event().await.contains("event: change") {}
    ann.until(&job, "state succeeded").await;
    // Everything that he received before the change of his job was not a change.
    let own = bob.ask("His own [[sim:ok;words=60;hold]]").await;
    bob.until(&own, "state running").await;
    let first = bobs.text_event().await;
    assert!(first.starts_with(": quiet") || first.contains("event: change"), "{first}");
}
