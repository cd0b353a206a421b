//! A clock that jumps by an hour, forward and back, under running servers (`--clock-file`).

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use crate::support::{POLL, ShiftedClock, World, finished, running, start, status};

const HOUR: i64 = 3_600_000;

/// Promise 4, promise 5: an hour forward ends every lease by the clock. Running workers keep their jobs all the same.
#[tokio::test]
async fn a_clock_set_forward_takes_no_job_from_a_running_worker() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "100");
    let shift = ShiftedClock::new(&world);
    let lease = ["--lease-ms", "4000", "--concurrency", "1"];
    let mut holder = shift.serve(&world, &lease).await;
    let id = start(&mut holder, "ok;words=60;hold=true").await;
    running(&world, &id).await;
    let mut other = shift.serve(&world, &lease).await;
    // The first has no room for it, so when it is done the second has looked at the clock.
    let short = start(&mut other, "ok;words=60;delay_ms=0").await;
    assert_eq!(finished(&mut other, &short).await["status"], "COMPLETED");
    for millis in [HOUR, 0, HOUR] {
        shift.set(millis);
        if millis == HOUR {
            other.logged("the clock was set forward").await;
        }
    }
    other.logged("leases count again").await;
    let poll = other.structured(POLL, json!({ "jobId": id })).await;
    assert_eq!(poll["status"], "IN_PROGRESS", "unfinished jobs outlive any retention: {poll}");
    world.simulator.release();
    assert_eq!(finished(&mut other, &id).await["status"], "COMPLETED");
    for (server, dequeued) in [(holder, 1), (other, 1)] {
        let log = server.log();
        assert_eq!(log.matches("Job dequeued").count(), dequeued, "{log}");
        assert!(!log.contains("remote run resumed"), "{log}");
    }
    assert_eq!(world.submits(), 2);
}

/// Promise 1: a job that was queued by a clock an hour ahead is due at once by the right one, not in an hour.
#[tokio::test]
async fn a_clock_set_back_holds_up_neither_new_jobs_nor_retries() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_RETRY_BASE_MS", "60000");
    world.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "200");
    let shift = ShiftedClock::new(&world);
    shift.set(HOUR);
    let mut idle = shift.serve(&world, &["--no-worker"]).await;
    let queued = start(&mut idle, "ok;words=60;delay_ms=0").await;
    shift.set(0);
    let mut server = shift.serve(&world, &[]).await;
    let ended = finished(&mut server, &queued).await;
    assert_eq!(ended["status"], "COMPLETED");
    assert_eq!(ended["elapsedSec"], 0.0, "it ended before it began, by the clock: {ended}");

    shift.set(HOUR);
    let retried = start(&mut server, "http;status=503;times=1|ok;words=60;delay_ms=0").await;
    server.logged("Job will be retried").await;
    // A whole budget passes: the worker has looked for work since, and found nothing due.
    assert_eq!(status(&mut server, &retried).await, "IN_PROGRESS");
    shift.set(0);
    let set_back = Instant::now();
    let poll = server.structured(POLL, json!({ "jobId": retried })).await;
    assert!(poll["elapsedSec"].as_f64().unwrap() >= 0.0, "{poll}");
    assert_eq!(finished(&mut server, &retried).await["status"], "COMPLETED");
    let waited = set_back.elapsed();
    assert!(
        waited < Duration::from_secs(15),
        "at once, when the clock is looked at next: {waited:?}"
    );
    assert_eq!(world.submits(), 2, "each once");
}

/// Promise 1: retention follows the clock, so a finished job is hidden while the clock is ahead, and only then.
#[tokio::test]
async fn a_clock_set_forward_hides_finished_jobs_until_it_is_right_again() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "100");
    let shift = ShiftedClock::new(&world);
    let mut server = shift.serve(&world, &[]).await;
    let done = start(&mut server, "ok;words=60;delay_ms=0").await;
    let report = finished(&mut server, &done).await;
    let under_way = start(&mut server, "ok;words=60;hold=true").await;
    running(&world, &under_way).await;
    shift.set(HOUR);
    assert_eq!(status(&mut server, &done).await, "NOT_FOUND", "kept for half an hour");
    assert_eq!(status(&mut server, &under_way).await, "IN_PROGRESS");
    shift.set(0);
    assert_eq!(finished(&mut server, &done).await, report);
    world.simulator.release();
    assert_eq!(finished(&mut server, &under_way).await["status"], "COMPLETED");
    assert_eq!(world.submits(), 2);
}
