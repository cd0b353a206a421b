//! J3, J4: checks of citations on the page.

use super::browser::Browser;
use crate::http::client::{ANN, BOB, Served};
use crate::support::World;

/// J3: a button starts the check, its own view follows it, and the report and its exports show the result.
#[tokio::test]
async fn j3_the_page_checks_a_report_and_shows_what_was_found() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let browser = Browser::signed_in(served.address, ANN).await;
    let report = browser.ask("How long is a lease? [[sim:ok;words=80;sources=3]]").await;
    let shown = browser.until(&report, "state succeeded").await.body;
    assert!(shown.contains("Check citations<") && !shown.contains("Citation check"), "{shown}");
    let started = browser.post(&format!("{report}/check"), &[]).await;
    let check = started.location.unwrap_or_else(|| panic!("{}", started.body));
    assert_ne!(check, report);
    let ended = browser.until(&check, "Citation check").await.body;
    assert!(ended.contains(&format!("href=\"{report}\"")), "the check links its report: {ended}");
    let shown = browser.get(&report).await.body;
    assert!(shown.contains("Citation check") && shown.contains("Check citations again"), "{shown}");
    assert!(shown.contains("class=\"verdict unchecked\""), "sentences have marks: {shown}");
    assert!(shown.contains("class=\"source-verdict"), "sources have marks: {shown}");
    assert!(shown.contains("only-unchecked"), "claims are filtered by verdict: {shown}");
    let html = browser.get(&format!("{report}/export/html")).await.body;
    assert!(html.contains("class=\"verdict unchecked\"") && html.contains("Citation check"));
    let markdown = browser.get(&format!("{report}/export/md")).await.body;
    assert!(
        markdown.contains("## Citation check") && markdown.contains("**unchecked**"),
        "{markdown}"
    );
    let other = Browser::signed_in(served.address, BOB).await;
    assert_eq!(other.post(&format!("{report}/check"), &[]).await.status, 404);
    assert_eq!(other.get(&check).await.status, 404);
}

/// J4: a report with text of local documents needs a confirmation before its pages are fetched, and none for its files.
#[tokio::test]
async fn j4_a_report_of_the_library_asks_first() {
    let mut world = World::new().await;
    let library = world.data_dir().parent().unwrap().join("library");
    std::fs::create_dir_all(&library).unwrap();
    let otters = "# Otters\n\nThe otter sleeps by day, see http://127.0.0.1:1/otter.\n";
    std::fs::write(library.join("otter.md"), otters).unwrap();
    std::fs::write(library.join("heron.md"), "# Herons\n\nThe heron nests in high trees.\n")
        .unwrap();
    world.set("OUTLAST_LIBRARY", library.to_str().unwrap());
    world.set("OUTLAST_PROVIDERS", "library");
    let served = Served::start(&mut world, &[]).await;
    let browser = Browser::signed_in(served.address, ANN).await;
    let report = browser.ask("When does the otter sleep?").await;
    browser.until(&report, "state succeeded").await;
    let asked = browser.post(&format!("{report}/check"), &[]).await;
    assert_eq!(asked.status, 200);
    assert!(asked.body.contains("text of local documents"), "{}", asked.body);
    let started = browser.post(&format!("{report}/check"), &[("confirmed", "yes")]).await;
    let check = started.location.unwrap_or_else(|| panic!("{}", started.body));
    browser.until(&check, "Citation check").await;
    let report = browser.ask("Where does the heron nest?").await;
    browser.until(&report, "state succeeded").await;
    let started = browser.post(&format!("{report}/check"), &[]).await;
    let check = started.location.unwrap_or_else(|| panic!("{}", started.body));
    browser.until(&check, "Citation check").await;
}
