//! Promise 1, if the disk is reliable: after a kill -9 the write-ahead log holds the latest commits. The intact part of
//! a damaged log is used, the rest is ignored, and nothing breaks.

use std::path::PathBuf;

use serde_json::Value;

use crate::support::{World, finished, start, status};

/// Returns the path of the log.
fn log_of(world: &World) -> PathBuf {
    world.database().with_extension("db-wal")
}

/// Creates one job that is in the database, and one that is only in the log.
async fn killed_with_a_log() -> (World, (String, Value), String) {
    let world = World::new().await;
    let mut server = world.serve().await;
    let safe = start(&mut server, "ok;words=60;delay_ms=0").await;
    let report = finished(&mut server, &safe).await;
    server.close_input();
    server.ended().await;
    assert!(!log_of(&world).exists(), "a clean end empties the log");
    let mut doomed = world.serve().await;
    let fresh = start(&mut doomed, "ok;words=60;delay_ms=0").await;
    finished(&mut doomed, &fresh).await;
    doomed.kill().await;
    (world, (safe, report), fresh)
}

async fn after_damage(damage: impl FnOnce(&mut Vec<u8>), fresh_is: &[&str]) {
    let (world, (safe, report), fresh) = killed_with_a_log().await;
    let mut log = std::fs::read(log_of(&world)).unwrap();
    assert!(log.len() > 3 * 4120, "several commits are in the log alone: {} bytes", log.len());
    damage(&mut log);
    std::fs::write(log_of(&world), log).unwrap();
    // As if the power had failed before the mark next to the store was written.
    std::fs::remove_file(world.data_dir().join("outlast.db.mark")).unwrap();

    let mut server = world.serve().await;
    assert_eq!(finished(&mut server, &safe).await, report, "what was checkpointed is there");
    let fresh = status(&mut server, &fresh).await;
    assert!(fresh_is.contains(&fresh.as_str()), "{fresh}");
    let next = start(&mut server, "ok;words=60;delay_ms=0").await;
    assert_eq!(finished(&mut server, &next).await["status"], "COMPLETED", "and life goes on");
    server.close_input();
    let (status, said) = server.ended().await;
    assert!(status.success() && !said.contains("panicked"), "{said}");
}

/// Promise 1: with a whole log, nothing is lost.
#[tokio::test]
async fn a_whole_log_brings_back_every_commit() {
    after_damage(|_| {}, &["COMPLETED"]).await;
}

/// The last commits of a job may be gone: it is then in an earlier state and continues from there.
#[tokio::test]
async fn a_log_cut_short_counts_up_to_its_last_whole_commit() {
    let any = ["COMPLETED", "FAILED", "CREATED", "IN_PROGRESS", "NOT_FOUND"];
    after_damage(|log| log.truncate(log.len() / 2 + 7), &any).await;
}

/// Promise 4: a job whose commits are known to be missing does not run again without consent.
#[tokio::test]
async fn b9a_a_store_whose_log_is_known_to_be_lost_does_not_start_by_itself() {
    let (world, (safe, _), _) = killed_with_a_log().await;
    // Opened once more, so that the mark covers all of it.
    let mut server = world.serve().await;
    start(&mut server, "ok;words=60;hold=true").await;
    server.close_input();
    server.ended().await;
    let whole = std::fs::read(world.database()).unwrap();
    let mut server = world.serve().await;
    start(&mut server, "stuck").await;
    server.close_input();
    server.ended().await;
    std::fs::write(world.database(), whole).unwrap();
    let ran = world.run(&["serve"]).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("outlast store restore --in-place"), "{ran:?}");
    assert_eq!(world.run(&["store", "restore", "--in-place"]).await.code, Some(0));
    let mut server = world.serve().await;
    assert_eq!(finished(&mut server, &safe).await["status"], "COMPLETED");
}

/// The same, with bytes that mean nothing.
#[tokio::test]
async fn a_log_of_garbage_is_as_good_as_none() {
    after_damage(|log| log.iter_mut().for_each(|byte| *byte = !*byte), &["NOT_FOUND"]).await;
    after_damage(|log| log.truncate(0), &["NOT_FOUND"]).await;
    after_damage(|log| log[40..4136].fill(0xa5), &["NOT_FOUND"]).await;
}
