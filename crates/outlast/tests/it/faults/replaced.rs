//! A database deleted or replaced under a running server: another file never silently becomes a second store.

use serde_json::json;

use crate::support::{POLL, START, World, assert_refused, finished, question, running, start};

/// Promise 1: a file without a name disappears with the process, so nothing in it may be acknowledged.
#[tokio::test]
async fn a_deleted_database_refuses_every_call_and_is_not_recreated() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let id = start(&mut server, "ok;words=60;delay_ms=0").await;
    finished(&mut server, &id).await;
    std::fs::remove_file(world.database()).unwrap();
    for _ in 0..2 {
        assert_refused(&server.call(START, question("ok")).await, "STORE_CORRUPT", false);
        let poll = server.call(POLL, json!({ "jobId": id })).await;
        assert_refused(&poll, "STORE_CORRUPT", false);
    }
    assert!(!world.database().exists());

    // Its log still exists: a new database would be filled from it.
    let ran = world.run(&["serve"]).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("gone while its -wal file is there"), "{ran:?}");
    assert!(!world.database().exists());

    server.close_input();
    let (status, log) = server.ended().await;
    assert!(status.success() && !log.contains("panicked"), "{log}");
    assert_eq!(world.submits(), 1);
}

/// Promise 1, promise 4: neither database gets writes that were meant for the other.
#[tokio::test]
async fn a_replaced_database_is_noticed_and_the_old_one_is_used_again_when_it_is_back() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let id = start(&mut server, "ok;words=60;hold=true").await;
    running(&world, &id).await;
    let files = ["outlast.db", "outlast.db-wal", "outlast.db-shm"];
    let aside = world.data_dir().join("aside");
    std::fs::create_dir(&aside).unwrap();
    for file in files {
        std::fs::rename(world.data_dir().join(file), aside.join(file)).unwrap();
    }
    let mut stranger = world.serve().await;
    let theirs = start(&mut stranger, "ok;words=60;delay_ms=0").await;
    finished(&mut stranger, &theirs).await;
    assert_refused(&server.call(START, question("ok")).await, "STORE_CORRUPT", false);
    for id in [&id, &theirs] {
        let poll = server.call(POLL, json!({ "jobId": id })).await;
        assert_refused(&poll, "STORE_CORRUPT", false);
    }
    stranger.close_input();
    stranger.ended().await;

    for file in files {
        std::fs::rename(aside.join(file), world.data_dir().join(file)).unwrap();
    }
    world.simulator.release();
    let ended = finished(&mut server, &id).await;
    assert_eq!(ended["status"], "COMPLETED", "the same server goes on: {ended}");
    assert_eq!(world.submits(), 2);
}
