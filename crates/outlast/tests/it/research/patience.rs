//! Clients that give up, after one second or after four minutes, with and without progress tokens: repeated calls
//! return every report, and nothing is paid for twice. Time is scaled so that the short form takes seconds; the
//! variable OUTLAST_TEST_PATIENCE=1 runs it in real time.

use super::*;

/// The times that clients wait, in seconds of a patient world.
const PATIENCE: [u32; 5] = [1, 5, 30, 60, 240];
/// The duration of the research there.
const RESEARCH: u32 = 100;

#[expect(clippy::disallowed_methods, reason = "a switch for people with half an hour to spare")]
fn scaled(seconds: u32) -> Duration {
    let scale: u32 =
        std::env::var("OUTLAST_TEST_PATIENCE").map_or(200, |text| text.parse().unwrap());
    Duration::from_secs(seconds.into()) / scale
}

/// Repeats the same call until it is answered, giving up each time after `patience`; returns the number of calls.
async fn until_answered(
    client: &mut Client,
    tool: &str,
    arguments: &Value,
    patience: Duration,
    token: Option<&str>,
) -> (Answer, u32) {
    for times in 1..100_000 {
        let call = client.send(tool, arguments.clone(), token).await;
        if tokio::time::timeout(patience, client.server.answer(call)).await.is_ok() {
            return (client.answer(tool, call).await, times);
        }
        // A client that has given up loses an answer that crosses the cancellation.
        client.give_up(call).await;
    }
    panic!("never answered");
}

fn arguments(patience: u32, token: Option<&str>) -> Value {
    // The simulated provider divides it by its speed.
    let delay = scaled(RESEARCH).as_millis() * 20;
    let question = format!("Patience {patience} {token:?}? [[sim:ok;words=60;delay_ms={delay}]]");
    json!({ "query": question })
}

/// Promise 2, C1: repeated held calls attach; each question is paid for once.
#[tokio::test]
async fn c1_every_impatient_client_gets_its_report_by_calling_again() {
    let (world, mut client) = blocking().await;
    let mut asked = 0;
    let mut repeated = 0;
    for patience in PATIENCE {
        for token in [None, Some("t")] {
            let arguments = arguments(patience, token);
            let (answer, times) =
                until_answered(&mut client, DEEP, &arguments, scaled(patience), token).await;
            assert_eq!(answer.shape["status"], "completed");
            asked += 1;
            repeated += times - 1;
        }
    }
    assert_eq!(world.submits(), asked, "one run for each question");
    assert_eq!(world.simulator.stats().duplicate_submits, 0);
    assert!(
        repeated >= 10,
        "those with less patience than the research takes call again: {repeated}"
    );
    eprintln!("{asked} questions, {repeated} calls given up, {} submits", world.submits());
    let listed = client.ok(LIST, json!({ "limit": 100 })).await.shape;
    assert_eq!(listed["conversations"].as_array().unwrap().len() as u64, asked);
}

/// Promise 2, B16: the same for queued research that is awaited.
#[tokio::test]
async fn b16_every_impatient_client_gets_its_report_by_awaiting_again() {
    let (world, mut client) = queueing().await;
    let mut asked = 0;
    for patience in PATIENCE {
        for token in [None, Some("t")] {
            let id = id_of(&client.ok(DEEP, arguments(patience, token)).await);
            let ids = json!({ "conversationIds": [id] });
            let (answer, _) =
                until_answered(&mut client, AWAIT, &ids, scaled(patience), token).await;
            assert_eq!(answer.shape[&id]["status"]["status"], "completed");
            asked += 1;
        }
    }
    assert_eq!(world.submits(), asked);
    assert_eq!(world.simulator.stats().duplicate_submits, 0);
}

/// Promise 2: two identical concurrent held calls share one job, and both are answered.
#[tokio::test]
async fn two_identical_held_calls_share_one_job() {
    let (world, mut client) = blocking().await;
    let arguments = query("ok;words=60;hold=true");
    let first = client.send(DEEP, arguments.clone(), None).await;
    let second = client.send(DEEP, arguments, Some("t")).await;
    eventually("it is submitted", || world.submits() == 1).await;
    client.server.request("ping", json!({})).await;
    release(&world, 1).await;
    let (first, second) = (client.answer(DEEP, first).await, client.answer(DEEP, second).await);
    assert_eq!(first, second);
    assert_eq!(world.submits(), 1);
}

/// Promise 2: a result that no client received waits for the same call.
#[tokio::test]
async fn a_report_that_no_client_received_is_there_for_the_same_call() {
    let (world, mut client) = blocking().await;
    let arguments = query("ok;words=60;hold=true");
    let call = client.send(DEEP, arguments.clone(), None).await;
    eventually("it is submitted", || world.submits() == 1).await;
    client.give_up(call).await;
    release(&world, 1).await;
    client.server.logged("Job completed").await;
    client.server.close_input();
    client.server.ended().await;
    let mut next = Client::of(world.serve().await).await;
    let answer = next.ok(DEEP, arguments).await;
    assert_eq!(answer.shape["status"], "completed");
    assert_eq!(world.submits(), 1);
}
