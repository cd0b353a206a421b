//! G4: the real server is killed with SIGKILL at each step of a run at Anthropic, started again and polled. The
//! provider counts its paid runs.

use serde_json::{Value, json};

use crate::crash::killed_in;
use crate::support::{CANCEL, ShiftedClock, World, eventually, finished, start};

/// Longer than the grace of a minute, in milliseconds.
const BEYOND_THE_GRACE: i64 = 61_000;

async fn world() -> World {
    let mut world = World::new().await;
    let url = world.simulator.url().to_owned();
    world.set("OUTLAST_PROVIDERS", "anthropic");
    world.set("ANTHROPIC_API_KEY", "sk-ant-test");
    world.set("ANTHROPIC_BASE_URL", &url);
    world.set("OUTLAST_TOOLS", "research-jobs");
    world
}

/// Kills a server at `point`; returns the outcome of the job with the next server, whose clock is set forward.
async fn killed_at(point: &str, scenario: &str, forward: i64) -> (World, Value) {
    let world = world().await;
    let id = killed_in(&world, point, scenario).await;
    let clock = ShiftedClock::new(&world);
    clock.set(forward);
    let ended = finished(&mut clock.serve(&world, &[]).await, &id).await;
    (world, ended)
}

/// G4: at every other kill point, the session and its question are found again, and paid for once.
#[tokio::test]
async fn g4_killed_at_any_other_point_the_job_is_done_once() {
    for point in [
        "after-insert",
        "after-claim",
        "after-beginning",
        "after-answer",
        "after-running",
        "before-sent",
        "before-settle",
        "after-settle",
    ] {
        let (world, ended) = killed_at(point, "ok;words=80;delay_ms=2000", 0).await;
        assert_eq!(ended["status"], "COMPLETED", "{point}: {ended}");
        assert!(ended["response"].as_str().unwrap().contains("Citations:\n["), "{ended}");
        assert_eq!(world.submits(), 1, "{point}: paid once");
    }
}

/// G4: the question was about to be sent, and is not there when the grace has ended: in doubt, and not sent.
#[tokio::test]
async fn g4_killed_when_it_was_about_to_send_the_question_is_unknown_and_not_sent() {
    let (world, ended) = killed_at("after-sending", "ok", BEYOND_THE_GRACE).await;
    assert_eq!(ended["status"], "FAILED", "{ended}");
    assert!(ended["error"].as_str().unwrap().starts_with("SUBMIT_UNKNOWN: "), "{ended}");
    assert_eq!(world.submits(), 0, "it had not been sent");
}

/// G4: the vendor shows the question a second late, which is within the grace: found, and not sent again.
#[tokio::test]
async fn g4_killed_after_the_send_a_question_that_is_shown_late_is_found() {
    let scenario = "late_list;ms=20000|ok;words=80;delay_ms=2000";
    let (world, ended) = killed_at("before-sent", scenario, 0).await;
    assert_eq!(ended["status"], "COMPLETED", "{ended}");
    assert_eq!(world.submits(), 1, "paid once");
}

/// G4: the vendor shows the question later than the grace: in doubt, and not sent again.
#[tokio::test]
async fn g4_killed_after_the_send_a_question_that_is_shown_too_late_is_unknown() {
    let (world, ended) =
        killed_at("before-sent", "late_list;ms=72000000|ok", BEYOND_THE_GRACE).await;
    assert_eq!(ended["status"], "FAILED", "{ended}");
    assert!(ended["error"].as_str().unwrap().starts_with("SUBMIT_UNKNOWN: "), "{ended}");
    assert_eq!(world.submits(), 1, "not a second time");
}

/// G3: a run that is killed in the middle is resumed; one that is cancelled after a crash is stopped at the vendor.
#[tokio::test]
async fn g3_killed_in_the_middle_the_run_is_resumed_or_cancelled() {
    for cancels in [false, true] {
        let world = world().await;
        let mut doomed = world.serve().await;
        let id = start(&mut doomed, "ok;words=80;hold=true").await;
        eventually("the question is sent", || world.submits() == 1).await;
        doomed.kill().await;
        let mut server = world.serve().await;
        if cancels {
            let answer = server.structured(CANCEL, json!({ "jobId": id })).await;
            assert_eq!(answer["status"], "CANCELLED", "{answer}");
            eventually("the provider is notified", || world.simulator.stats().cancels == 1).await;
        } else {
            world.simulator.release();
            let ended = finished(&mut server, &id).await;
            assert_eq!(ended["status"], "COMPLETED", "{ended}");
        }
        assert_eq!(world.submits(), 1);
    }
}
