//! Promise 6: a damaged database answers STORE_CORRUPT for its damaged parts, never with a panic or a wrong result.

use std::path::Path;

use outlast_testkit::mcp_process::McpProcess;
use serde_json::{Value, json};

use crate::support::{POLL, START, World, assert_refused, finished, question, start};

const PAGE: usize = 4096;

/// Returns a closed database with one finished job.
async fn one_finished_job() -> (World, String, Value) {
    let world = World::new().await;
    let mut server = world.serve().await;
    let id = start(&mut server, "ok;words=60;delay_ms=0").await;
    let report = finished(&mut server, &id).await;
    server.close_input();
    server.ended().await;
    assert!(!world.database().with_extension("db-wal").exists(), "everything is in the one file");
    (world, id, report)
}

/// Returns the first page of a table or an index.
#[expect(clippy::disallowed_methods, reason = "tests open the database directly")]
fn root_page(database: &Path, name: &str) -> usize {
    let connection = rusqlite::Connection::open(database).unwrap();
    let select = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
    connection.query_row(select, [name], |row| row.get::<_, u32>(0)).unwrap() as usize
}

/// Flips every bit of a page's first 100 bytes, in which SQLite keeps its structure.
fn flip(database: &Path, page: usize) {
    let mut bytes = std::fs::read(database).unwrap();
    let from = (page - 1) * PAGE;
    bytes[from..from + 100].iter_mut().for_each(|byte| *byte = !*byte);
    std::fs::write(database, bytes).unwrap();
}

/// Checks that the server ends without a panic when its input ends.
async fn assert_ends_well(mut server: McpProcess) {
    server.close_input();
    let (status, log) = server.ended().await;
    assert!(status.success(), "{log}");
    assert!(!log.contains("panicked"), "{log}");
}

/// Promise 6: without the header or the table of numbers the server cannot answer anything, so it does not start.
#[tokio::test]
async fn a_damaged_header_is_reported_at_the_start() {
    for name in ["the header", "meta"] {
        let (world, _, _) = one_finished_job().await;
        let page = if name == "meta" { root_page(&world.database(), name) } else { 1 };
        flip(&world.database(), page);
        let damaged = std::fs::read(world.database()).unwrap();
        let ran = world.run(&["serve"]).await;
        assert_eq!(ran.code, Some(2), "{name}: {ran:?}");
        assert!(ran.stderr.contains("the store is damaged at "), "{name}: {ran:?}");
        assert!(ran.stderr.contains("hint: restore a backup, or point OUTLAST_STORE"), "{ran:?}");
        assert!(!ran.stderr.contains("panicked"), "{ran:?}");
        assert!(std::fs::read(world.database()).unwrap() == damaged, "{name}: left as it was");
    }
}

/// Promise 6: unreadable data is refused, with a code that says that a retry has no effect.
#[tokio::test]
async fn a_damaged_table_or_index_refuses_what_it_cannot_read() {
    for name in ["jobs", "bodies", "sqlite_autoindex_jobs_1"] {
        let (world, id, _) = one_finished_job().await;
        flip(&world.database(), root_page(&world.database(), name));
        let mut server = world.serve().await;
        let poll = server.call(POLL, json!({ "jobId": id })).await;
        assert_refused(&poll, "STORE_CORRUPT", false);
        let refused = server.call(START, question("ok")).await;
        assert_refused(&refused, "STORE_CORRUPT", false);
        assert_ends_well(server).await;
        assert_eq!(world.submits(), 1, "{name}: nothing was bought");
    }
}

/// Promise 6: new jobs are refused and finished ones are served, as far as the damage allows.
#[tokio::test]
async fn a_damaged_queue_refuses_new_jobs_and_serves_finished_ones() {
    let (world, id, report) = one_finished_job().await;
    flip(&world.database(), root_page(&world.database(), "jobs_claim"));
    let mut server = world.serve().await;
    for _ in 0..2 {
        assert_refused(&server.call(START, question("ok")).await, "STORE_CORRUPT", false);
        assert_eq!(finished(&mut server, &id).await, report);
    }
    assert_ends_well(server).await;
}
