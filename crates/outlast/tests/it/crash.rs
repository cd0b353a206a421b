//! A11: the real server is killed with SIGKILL at each step of the one path, started again and polled. The provider
//! counts its paid runs.

use crate::support::{START, World, finished, question, start};
use serde_json::{Value, json};

/// Kills a server at `point`, starts another one and returns the outcome of the job.
pub(crate) async fn killed_at(world: World, point: &str, scenario: &str) -> (World, Value) {
    let id = killed_in(&world, point, scenario).await;
    let ended = finished(&mut world.serve().await, &id).await;
    (world, ended)
}

/// Kills a server of this world at `point` of a new job, and returns the job's id.
pub(crate) async fn killed_in(world: &World, point: &str, scenario: &str) -> String {
    let mut doomed = world.serve_with(&["--kill-at", point]).await;
    let arguments = question(scenario);
    let call = doomed.send("tools/call", json!({ "name": START, "arguments": arguments })).await;
    let answered = doomed.answer(call).await;
    let (status, _) = doomed.ended().await;
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&status),
        Some(9),
        "{point}: died by SIGKILL"
    );

    match answered {
        Some(answer) => answer["result"]["structuredContent"]["jobId"].as_str().unwrap().to_owned(),
        // The caller has no id, but the job is durable: it is found in the list.
        None => only_job(world).await,
    }
}

async fn only_job(world: &World) -> String {
    let listed = world.run(&["jobs", "list", "--json"]).await;
    assert_eq!(listed.code, Some(0), "{listed:?}");
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed["jobs"].as_array().unwrap().len(), 1, "{listed}");
    listed["jobs"][0]["id"].as_str().unwrap().to_owned()
}

pub(crate) async fn completes_with_one_submit(world: World, point: &str) {
    let (world, ended) = killed_at(world, point, "ok;words=80;delay_ms=2000").await;
    assert_eq!(ended["status"], "COMPLETED", "{point}: {ended}");
    assert!(ended["response"].as_str().unwrap().contains("Citations:\n["), "{ended}");
    assert_eq!(world.submits(), 1, "{point}: paid once");
}

#[tokio::test]
async fn a11_killed_after_insert_the_job_is_done_once() {
    completes_with_one_submit(World::new().await, "after-insert").await;
}

/// An observer of the insert that dies with its process loses nothing that a look at the store would not find.
#[tokio::test]
async fn a11_killed_around_each_observer_the_job_is_done_once() {
    for point in ["after-counting", "after-notifying", "after-files"] {
        completes_with_one_submit(World::new().await, point).await;
    }
}

#[tokio::test]
async fn a11_killed_after_claim_the_job_is_done_once() {
    completes_with_one_submit(World::new().await, "after-claim").await;
}

#[tokio::test]
async fn a11_killed_after_running_the_run_is_resumed() {
    completes_with_one_submit(World::new().await, "after-running").await;
}

#[tokio::test]
async fn a11_killed_before_settle_the_provider_is_asked_again() {
    completes_with_one_submit(World::new().await, "before-settle").await;
}

#[tokio::test]
async fn a11_killed_after_settle_the_result_is_there() {
    completes_with_one_submit(World::new().await, "after-settle").await;
}

/// B9a: it is unknown if the request was sent, so it is not sent again.
#[tokio::test]
async fn b9a_killed_after_beginning_the_submit_is_unknown_and_not_repeated() {
    let (world, ended) = killed_at(World::new().await, "after-beginning", "ok").await;
    assert_eq!(ended["status"], "FAILED", "{ended}");
    assert!(ended["error"].as_str().unwrap().starts_with("SUBMIT_UNKNOWN: "), "{ended}");
    assert_eq!(world.submits(), 0, "it had not been sent");
}

/// B9a: the run was bought and its name lost; it must not be bought again.
#[tokio::test]
async fn b9a_killed_after_the_answer_the_submit_is_unknown_and_not_repeated() {
    let (world, ended) = killed_at(World::new().await, "after-answer", "ok").await;
    assert_eq!(ended["status"], "FAILED", "{ended}");
    assert!(ended["error"].as_str().unwrap().starts_with("SUBMIT_UNKNOWN: "), "{ended}");
    assert_eq!(world.submits(), 1);
}

/// A11: killed from outside, in the middle of a run that is under way.
#[tokio::test]
async fn a11_killed_in_the_middle_of_a_run_the_report_arrives() {
    let world = World::new().await;
    let mut doomed = world.serve().await;
    let id = start(&mut doomed, "ok;words=80;hold=true").await;
    crate::support::running(&world, &id).await;
    doomed.kill().await;

    let mut server = world.serve().await;
    world.simulator.release();
    let ended = finished(&mut server, &id).await;
    assert_eq!(ended["status"], "COMPLETED", "{ended}");
    assert_eq!(world.submits(), 1);
    let again = finished(&mut server, &id).await;
    assert_eq!(again, ended, "A2: the same answer on every later poll");
}

/// Promise 5: a second process takes over a dead one's jobs while it is running, not only at its start.
#[tokio::test]
async fn a_running_server_takes_over_from_a_killed_one() {
    let world = World::new().await;
    let mut doomed = world.serve().await;
    let id = start(&mut doomed, "ok;words=80;hold=true").await;
    crate::support::running(&world, &id).await;
    let mut witness = world.serve().await;
    doomed.kill().await;
    world.simulator.release();
    let ended = finished(&mut witness, &id).await;
    assert_eq!(ended["status"], "COMPLETED", "{ended}");
    assert_eq!(world.submits(), 1);
}
