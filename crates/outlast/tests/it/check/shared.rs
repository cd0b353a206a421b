//! J1, J4: checks next to other work: two at a time in a process, cancelled, reported to others, and in a restored store.

use std::path::PathBuf;
use std::time::Duration;

use outlast_testkit::mcp_process::McpProcess;
use serde_json::{Value, json};

use super::killed::{ANSWERED, SOURCES, finish, report, until_listed};
use super::web::Web;
use crate::http::client::{ANN, BOB, Served};
use crate::support::{World, eventually};

const CHECK: &str = "check_citations";

async fn jobs(world: &World) -> Vec<Value> {
    let listed = world.run(&["jobs", "list", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    listed["jobs"].as_array().unwrap().clone()
}

/// Sends a check of one page of this web; returns the number of the request.
async fn send(server: &mut McpProcess, web: &Web, page: u8) -> u64 {
    let text =
        format!("Lake Vostok is 250 km long [1].\n\n[1]: {}\n", web.url(page, &page.to_string()));
    server.send("tools/call", json!({ "name": CHECK, "arguments": { "text": text } })).await
}

fn file(world: &World, text: &str) -> PathBuf {
    std::fs::create_dir_all(world.data_dir()).unwrap();
    let file = world.data_dir().join("report.md");
    std::fs::write(&file, text).unwrap();
    file
}

/// J1: a third check of a process waits, and begins when one of the others is cancelled.
#[tokio::test]
async fn j1_two_checks_run_at_a_time_and_a_cancelled_one_makes_room() {
    let mut world = World::new().await;
    world.set("OUTLAST_CITATIONS_ALLOW_PRIVATE", "true");
    let web = Web::holding_after(0);
    let mut server = world.serve().await;
    for page in 1..=3 {
        send(&mut server, &web, page).await;
        let begun = usize::from(page.min(2));
        eventually("the first two begin", || web.asked().len() == begun).await;
    }
    until_listed(&world, "Waiting for other checks").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(web.asked(), ["1", "2"], "the third one waits");
    let all = jobs(&world).await;
    assert!(all.iter().all(|job| job["state"] == "running"), "{all:#?}");
    // Newest first.
    let first = all[2]["id"].as_str().unwrap();
    let cancelled = world.run(&["jobs", "cancel", first]).await;
    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
    eventually("the third one begins", || web.asked().len() == 3).await;
    let shown = world.run(&["check", first]).await;
    assert_eq!(shown.code, Some(1), "{shown:?}");
    assert!(shown.stderr.contains("cancelled"), "{shown:?}");
    web.release();
    let ended = async {
        while jobs(&world).await.iter().any(|job| job["state"] == "running") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), ended).await.expect("the others end");
    let states: Vec<_> = jobs(&world).await.into_iter().map(|job| job["state"].clone()).collect();
    assert_eq!(states, ["succeeded", "succeeded", "cancelled"]);
}

/// J1, E7: the verdicts of a check are counted, for its owner and for the operator.
#[tokio::test]
async fn j1_verdicts_are_counted() {
    let mut world = World::new().await;
    world.set("OUTLAST_CITATIONS_ALLOW_PRIVATE", "true");
    world.set("OUTLAST_OWNER", "ann");
    let web = Web::serve();
    let served = Served::start(&mut world, &[]).await;
    let text = format!(
        "Lake Vostok is 250 km long [1]. Its area is 14,000 km² [1].\n\n[1]: {}\n",
        web.url(1, "lakes")
    );
    let (ann, bob) = (served.client(ANN), served.client(BOB));
    let done = ann.call(CHECK, json!({ "text": text })).await;
    assert_eq!(done["status"], "completed", "{done:#}");
    let figures = ann.send("GET /metrics", &[], "").await.body().await;
    for line in [
        r#"outlast_citation_claims_total{verdict="supported"} 1"#,
        r#"outlast_citation_claims_total{verdict="differs"} 1"#,
        r#"outlast_citation_sources_total{verdict="ok"} 1"#,
    ] {
        assert!(figures.contains(line), "{line}: {figures}");
    }
    let of_bob = bob.send("GET /metrics", &[], "").await.body().await;
    assert!(!of_bob.contains("outlast_citation_claims_total{"), "{of_bob}");
}

/// J1, G7: the operator is notified of the end of a check that somebody left.
#[tokio::test]
async fn j1_the_end_of_a_check_is_a_notice() {
    let mut world = World::new().await;
    world.set("OUTLAST_CITATIONS_ALLOW_PRIVATE", "true");
    let folder = PathBuf::from(world.variable("HOME")).join(".config/outlast");
    std::fs::create_dir_all(&folder).unwrap();
    let script = "read -r line; printf '%s\\\\n' \\\"$line\\\" >> reported";
    let notify = format!("[notify]\ncommand = [\"/bin/sh\", \"-c\", \"{script}\"]\n");
    std::fs::write(folder.join("outlast.toml"), notify).unwrap();
    let web = Web::serve();
    let file = file(&world, &report(&web));
    let left = world.run(&["check", file.to_str().unwrap(), "--detach"]).await;
    assert_eq!(left.code, Some(0), "{left:?}");
    let reported = folder.join("reported");
    let read = || std::fs::read_to_string(&reported).unwrap_or_default();
    eventually("the notice arrives", || read().ends_with('\n')).await;
    let notice: Value = serde_json::from_str(&read()).unwrap();
    assert_eq!(notice["jobId"], left.stdout.trim(), "{notice:#}");
    assert!(notice["title"].as_str().unwrap().starts_with("Citations: "), "{notice:#}");
}

/// J4: a restored store checks nothing by itself. A check that was under way in the backup goes on if somebody asks for
/// it, and does not fetch again what was recorded before the backup.
#[tokio::test]
async fn j4_a_restored_store_checks_nothing_by_itself() {
    let mut world = World::new().await;
    let ran = world.run(&["research", "Why? [[sim:ok;words=80;delay_ms=0]]", "--json"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    world.set("OUTLAST_CITATIONS_ALLOW_PRIVATE", "true");
    let web = Web::holding_after(ANSWERED);
    let file = file(&world, &report(&web));
    let left = world.run(&["check", file.to_str().unwrap(), "--detach"]).await;
    let id = left.stdout.trim().to_owned();
    until_listed(&world, &format!("{ANSWERED} of {SOURCES} sources")).await;
    let backup = world.data_dir().join("backup.db");
    let made = world.run(&["store", "backup", backup.to_str().unwrap()]).await;
    assert_eq!(made.code, Some(0), "{made:?}");
    let recorded = web.asked()[..ANSWERED].to_vec();
    let cancelled = world.run(&["jobs", "cancel", &id]).await;
    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
    for pid in world.detached_workers() {
        outlast_testkit::mcp_process::signal(pid, outlast_testkit::mcp_process::Signal::KILL);
    }
    web.release();
    let restored = world.run(&["store", "restore", backup.to_str().unwrap(), "--force"]).await;
    assert_eq!(restored.code, Some(0), "{restored:?}");
    world.set("OUTLAST_CHECK_CITATIONS", "always");
    let mut server = world.serve().await;
    let listed = server.call("list_conversations", json!({})).await;
    assert!(listed["structuredContent"].is_object(), "{listed:#}");
    tokio::time::sleep(Duration::from_millis(500)).await;
    let checks = jobs(&world).await.into_iter().filter(|job| job["workflow"] == CHECK).count();
    assert_eq!(checks, 1, "the report was not checked by itself");
    finish(&world, &web, &id, &recorded).await;
}
