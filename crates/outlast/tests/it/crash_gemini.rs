//! Gemini as the provider of the real server, which is killed with SIGKILL at each step: what is paid for is what
//! docs/vendors/gemini.md says (G3, G4).

use serde_json::json;

use crate::crash::killed_at;
use crate::support::{CANCEL, START, World, finished, question, running, start};

/// A world in which Gemini answers, and no other key is set.
async fn world() -> World {
    let mut world = World::new().await;
    let url = world.simulator.url().to_owned();
    world.unset("PERPLEXITY_API_KEY");
    world.set("OUTLAST_PROVIDERS", "gemini");
    world.set("OUTLAST_TOOLS", "research-jobs");
    world.set("GEMINI_API_KEY", "gemini-test");
    world.set("GEMINI_BASE_URL", &url);
    world
}

/// G3: wherever the run's id is known, or nothing was sent, the report arrives and one run was paid for.
#[tokio::test]
async fn g3_killed_at_any_point_but_the_send_the_report_arrives_and_is_paid_for_once() {
    for point in ["after-insert", "after-claim", "after-running", "before-settle", "after-settle"] {
        let (world, ended) = killed_at(world().await, point, "ok;words=80;delay_ms=2000").await;
        assert_eq!(ended["status"], "COMPLETED", "{point}: {ended}");
        assert!(ended["response"].as_str().unwrap().contains("Citations:\n["), "{ended}");
        assert_eq!(world.submits(), 1, "{point}: paid once");
        assert_eq!(world.simulator.stats().runs[0].api, "gemini");
    }
}

/// G4, B9a: the API cannot be asked for a lost run, so it is not sent again.
#[tokio::test]
async fn g4_killed_around_the_send_the_submit_is_unknown_and_not_repeated() {
    for (point, paid) in [("after-beginning", 0), ("after-answer", 1)] {
        let (world, ended) = killed_at(world().await, point, "ok").await;
        assert_eq!(ended["status"], "FAILED", "{point}: {ended}");
        assert!(ended["error"].as_str().unwrap().starts_with("SUBMIT_UNKNOWN: "), "{ended}");
        assert_eq!(world.submits(), paid, "{point}");
    }
}

/// G3: killed from outside in the middle of a run; the next server takes it up.
#[tokio::test]
async fn g3_killed_at_the_middle_of_a_run_the_report_arrives() {
    let world = world().await;
    let mut doomed = world.serve().await;
    let id = start(&mut doomed, "ok;words=80;hold=true").await;
    running(&world, &id).await;
    doomed.kill().await;
    let mut server = world.serve().await;
    world.simulator.release();
    let ended = finished(&mut server, &id).await;
    assert_eq!(ended["status"], "COMPLETED", "{ended}");
    assert_eq!(world.submits(), 1);
    let again = finished(&mut server, &id).await;
    assert_eq!(again, ended, "A2: the same answer on every later poll");
}

/// A3, G3: a cancel whose server dies before the run was stopped is carried out by the next one.
#[tokio::test]
async fn g3_a_cancel_is_carried_out_after_a_crash() {
    let world = world().await;
    let mut doomed = world.serve().await;
    let id = start(&mut doomed, "http;on=cancel;status=503;times=1|stuck").await;
    running(&world, &id).await;
    let cancelled = doomed.structured(CANCEL, json!({ "jobId": id })).await;
    assert_eq!(cancelled["status"], "CANCELLED", "{cancelled}");
    doomed.kill().await;
    let _server = world.serve().await;
    let stopped = async {
        while world.simulator.stats().runs[0].status != "cancelled" {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), stopped).await.expect("it is stopped");
    assert_eq!(world.submits(), 1);
}

/// B9a, G5: an answer that is lost on its way is told as what it is, and nothing is sent again.
#[tokio::test]
async fn g5_a_lost_answer_is_unknown_and_a_refused_one_is_sent_again() {
    let world = world().await;
    let mut server = world.serve().await;
    for (scenario, status, submits) in
        [("drop_submit", "FAILED", 1), ("503x1;words=80;delay_ms=0", "COMPLETED", 2)]
    {
        let started = server.structured(START, question(scenario)).await;
        let ended = finished(&mut server, started["jobId"].as_str().unwrap()).await;
        assert_eq!(ended["status"], status, "{scenario}: {ended}");
        assert_eq!(world.submits(), submits, "{scenario}");
    }
}
