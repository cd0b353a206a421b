//! Promise 6: with a full disk, new jobs are refused and finished ones are served; the fault ends when there is room.

use serde_json::json;

use super::small_disk::{SmallDisk, with_own_mounts};
use crate::support::{
    POLL, START, World, assert_refused, finished, question, running, start, status,
};

const KIB: u32 = 1024;

async fn world_on_a_small_disk() -> (World, SmallDisk) {
    let mut world = World::new().await;
    world.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "200");
    let disk = SmallDisk::mount(&world.data_dir(), KIB);
    (world, disk)
}

/// Promise 6, promise 1: everything acknowledged before stays readable, and the server needs no restart.
#[test]
fn a_full_disk_refuses_new_jobs_serves_finished_ones_and_heals_by_itself() {
    let name =
        "faults::full_disk::a_full_disk_refuses_new_jobs_serves_finished_ones_and_heals_by_itself";
    with_own_mounts(name, async || {
        let (world, disk) = world_on_a_small_disk().await;
        let mut server = world.serve().await;
        let before = start(&mut server, "ok;words=60;delay_ms=0").await;
        let report = finished(&mut server, &before).await;
        disk.fill();
        for _ in 0..3 {
            assert_refused(&server.call(START, question("ok;words=60")).await, "STORE_FULL", true);
        }
        assert_eq!(finished(&mut server, &before).await, report, "finished jobs can still be read");
        assert_eq!(world.submits(), 1, "what was refused was not bought");
        disk.empty();
        let after = start(&mut server, "ok;words=60;delay_ms=0").await;
        assert_eq!(finished(&mut server, &after).await["status"], "COMPLETED");
        assert_eq!(finished(&mut server, &before).await, report);
        server.close_input();
        let (status, log) = server.ended().await;
        assert!(status.success(), "{log}");
        assert!(log.contains("STORE_FULL"), "E14: {log}");
    });
}

/// Promise 6, E14: a disk that is full for some time loses neither progress nor the end of an attempt.
#[test]
fn a_job_that_runs_through_a_full_disk_ends_when_there_is_room() {
    let name = "faults::full_disk::a_job_that_runs_through_a_full_disk_ends_when_there_is_room";
    with_own_mounts(name, async || {
        let (world, disk) = world_on_a_small_disk().await;
        let mut server = world.serve().await;
        let through = start(&mut server, "ok;words=60;hold=true").await;
        running(&world, &through).await;
        disk.fill();
        assert_refused(&server.call(START, question("ok")).await, "STORE_FULL", true);
        disk.empty();
        assert_eq!(status(&mut server, &through).await, "IN_PROGRESS", "nothing happened to it");

        disk.fill();
        world.simulator.release();
        crate::support::eventually("the run has ended", || {
            world.simulator.stats().runs.iter().all(|run| run.status == "completed")
        })
        .await;
        for _ in 0..3 {
            let poll = server.structured(POLL, json!({ "jobId": through })).await;
            assert_eq!(poll["status"], "IN_PROGRESS", "not reported before it is stored: {poll}");
        }
        disk.empty();
        let room = tokio::time::Instant::now();
        assert_eq!(finished(&mut server, &through).await["status"], "COMPLETED");
        assert!(room.elapsed().as_secs() < 5, "right after: {:?}", room.elapsed());
        assert_eq!(world.submits(), 1);
        server.close_input();
        let (_, log) = server.ended().await;
        assert!(log.contains("the end of a try is not stored, will try again"), "E14: {log}");
    });
}

/// Promise 1, promise 6: killed while the disk is full, the next process finds everything once there is room.
#[test]
fn a_server_killed_on_a_full_disk_loses_nothing_that_was_acknowledged() {
    let name =
        "faults::full_disk::a_server_killed_on_a_full_disk_loses_nothing_that_was_acknowledged";
    with_own_mounts(name, async || {
        let (world, disk) = world_on_a_small_disk().await;
        let mut server = world.serve().await;
        let done = start(&mut server, "ok;words=60;delay_ms=0").await;
        let report = finished(&mut server, &done).await;
        let through = start(&mut server, "ok;words=60;hold=true").await;
        running(&world, &through).await;
        disk.fill();
        assert_refused(&server.call(START, question("ok")).await, "STORE_FULL", true);
        server.kill().await;

        // The log and its index exist already, so that reading needs no room.
        let mut next = world.serve().await;
        assert_eq!(finished(&mut next, &done).await, report);
        assert_refused(&next.call(START, question("ok")).await, "STORE_FULL", true);
        disk.empty();
        world.simulator.release();
        assert_eq!(finished(&mut next, &through).await["status"], "COMPLETED");
        assert_eq!(world.submits(), 2, "resumed, not bought again");
    });
}

/// Promise 6: without room even for SQLite's working files, the start names the next step.
#[test]
fn a_server_started_on_a_full_disk_asks_for_room() {
    let name = "faults::full_disk::a_server_started_on_a_full_disk_asks_for_room";
    with_own_mounts(name, async || {
        let (world, disk) = world_on_a_small_disk().await;
        let mut server = world.serve().await;
        let done = start(&mut server, "ok;words=60;delay_ms=0").await;
        finished(&mut server, &done).await;
        server.close_input();
        server.ended().await;
        disk.fill();
        let ran = world.run(&["serve"]).await;
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("hint: make room on the disk"), "{ran:?}");
        disk.empty();
        let mut server = world.serve().await;
        assert_eq!(status(&mut server, &done).await, "COMPLETED");
    });
}
