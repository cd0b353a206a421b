//! D13: a call that is answered with a task is followed to its end.

use std::sync::Arc;

use outlast_client::{CallOptions, ClientError, GivenUpTask, Limit, StartedCall, TaskFate};
use outlast_testkit::peer::{Peer, result};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::support::{calling, greeted_stateless, ms, remembering, timed_out};

fn task(status: &str, message: &str) -> Value {
    json!({
        "resultType": "complete",
        "taskId": "t-1",
        "status": status,
        "statusMessage": message,
        "createdAt": "2026-11-15T00:00:00Z",
        "lastUpdatedAt": "2026-11-15T00:00:00Z",
        "ttlMs": null,
        "pollIntervalMs": 2_000
    })
}

fn with(mut task: Value, name: &str, value: Value) -> Value {
    task[name] = value;
    task
}

/// Answers the call with a task; returns the time of the answer.
async fn becomes_a_task(peer: &mut Peer) -> Instant {
    let asked = peer.call().await;
    let capabilities = &asked.params["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    let declared = &capabilities["extensions"]["io.modelcontextprotocol/tasks"];
    assert_eq!(declared, &json!({}), "the extension is declared: {asked:?}");
    peer.answer(&asked.id, with(task("working", "0 %: Queued"), "resultType", json!("task"))).await;
    Instant::now()
}

/// Returns the next request, which must be this one about the task.
async fn asked_after(peer: &mut Peer, method: &str) -> Value {
    let message = peer.hear().await;
    assert_eq!(message["method"], method, "{message}");
    assert_eq!(message["params"]["taskId"], "t-1");
    message["id"].clone()
}

#[tokio::test(start_paused = true)]
async fn d13_a_task_is_polled_at_the_servers_interval_until_it_is_done() {
    let (client, mut peer) = greeted_stateless().await;
    let (options, told) = remembering(CallOptions::default());
    let call = calling(&client, options);
    let mut last = becomes_a_task(&mut peer).await;
    for percent in [10, 10, 60] {
        let id = asked_after(&mut peer, "tasks/get").await;
        assert_eq!(last.elapsed().as_millis(), 2_000);
        last = Instant::now();
        peer.answer(&id, task("working", &format!("{percent} %: Reading"))).await;
    }
    let id = asked_after(&mut peer, "tasks/get").await;
    peer.answer(&id, with(task("completed", "Done"), "result", result("the report"))).await;
    assert_eq!(call.await.unwrap().unwrap().text, "the report");
    let told: Vec<String> = told.lock().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(told, ["0 %: Queued", "10 %: Reading", "60 %: Reading"]);
}

#[tokio::test(start_paused = true)]
async fn d13_an_error_of_the_tool_is_an_answer_and_a_failed_task_is_not() {
    let (client, mut peer) = greeted_stateless().await;
    let call = calling(&client, CallOptions::default());
    becomes_a_task(&mut peer).await;
    let id = asked_after(&mut peer, "tasks/get").await;
    let wrong = with(result("no such repository"), "isError", json!(true));
    peer.answer(&id, with(task("completed", "Done"), "result", wrong)).await;
    let answer = call.await.unwrap().unwrap();
    assert!(answer.is_error && answer.text == "no such repository", "{answer:?}");

    let call = calling(&client, CallOptions::default());
    becomes_a_task(&mut peer).await;
    let id = asked_after(&mut peer, "tasks/get").await;
    let error = json!({ "code": -32603, "message": "the disk is full" });
    peer.answer(&id, with(task("failed", "Failed"), "error", error)).await;
    let called = call.await.unwrap();
    assert!(matches!(called, Err(ClientError::Refused { code: -32603, .. })), "{called:?}");

    let call = calling(&client, CallOptions::default());
    becomes_a_task(&mut peer).await;
    let id = asked_after(&mut peer, "tasks/get").await;
    peer.answer(&id, task("cancelled", "Cancelled")).await;
    let called = call.await.unwrap();
    assert!(matches!(called, Err(ClientError::TaskCancelled { .. })), "{called:?}");
}

/// Our reading of D13: giving up ends the wait but not the task, unless the caller asked for that.
#[tokio::test(start_paused = true)]
async fn d13_the_total_timeout_covers_the_whole_and_the_task_goes_on() {
    let (client, mut peer) = greeted_stateless().await;
    let began = Instant::now();
    let options = CallOptions::default().timeout(ms(4_000)).reset_timeout_on_progress();
    let call = calling(&client, options.max_total_timeout(ms(9_000)));
    becomes_a_task(&mut peer).await;
    for percent in 1..=4 {
        let id = asked_after(&mut peer, "tasks/get").await;
        peer.answer(&id, task("working", &format!("{percent} %"))).await;
    }
    let timed_out = timed_out(call.await.unwrap());
    assert_eq!(began.elapsed().as_millis(), 9_000);
    assert_eq!((timed_out.limit, timed_out.told, timed_out.notes), (Limit::Total, true, 5));
    assert_eq!(timed_out.task, given_up(TaskFate::GoesOn));
    Arc::into_inner(client).unwrap().close().await;
    assert_eq!(peer.try_hear().await, None, "nothing was cancelled");
}

fn given_up(fate: TaskFate) -> Option<GivenUpTask> {
    Some(GivenUpTask { id: "t-1".to_owned(), fate })
}

#[tokio::test(start_paused = true)]
async fn d13_a_task_is_cancelled_at_a_limit_if_the_caller_asked_for_that() {
    let (client, mut peer) = greeted_stateless().await;
    let began = Instant::now();
    let options = CallOptions::default().max_total_timeout(ms(3_000)).cancel_on_give_up();
    let call = calling(&client, options.clone());
    becomes_a_task(&mut peer).await;
    let id = asked_after(&mut peer, "tasks/get").await;
    peer.answer(&id, task("working", "1 %")).await;
    let id = asked_after(&mut peer, "tasks/cancel").await;
    assert_eq!(began.elapsed().as_millis(), 3_000);
    assert!(!call.is_finished(), "the server is notified first");
    peer.answer(&id, json!({ "resultType": "complete" })).await;
    assert_eq!(timed_out(call.await.unwrap()).task, given_up(TaskFate::Cancelled));

    let call = calling(&client, options);
    let began = becomes_a_task(&mut peer).await;
    let id = asked_after(&mut peer, "tasks/get").await;
    peer.answer(&id, task("working", "1 %")).await;
    asked_after(&mut peer, "tasks/cancel").await;
    // The server never answers this; the client waits one second.
    assert_eq!(timed_out(call.await.unwrap()).task, given_up(TaskFate::CancelUnconfirmed));
    assert_eq!(began.elapsed().as_millis(), 4_000);
}

/// A silent task does not mean a silent server.
#[tokio::test(start_paused = true)]
async fn d13_an_answered_poll_resets_the_idle_timeout_of_a_silent_task() {
    for resets in [true, false] {
        let (client, mut peer) = greeted_stateless().await;
        let mut options = CallOptions::default().timeout(ms(5_000));
        if resets {
            options = options.reset_timeout_on_progress();
        }
        let call = calling(&client, options);
        let began = becomes_a_task(&mut peer).await;
        let looks = if resets { 10 } else { 2 };
        for _ in 0..looks {
            let id = asked_after(&mut peer, "tasks/get").await;
            peer.answer(&id, task("working", "0 %: Queued")).await;
        }
        if resets {
            let id = asked_after(&mut peer, "tasks/get").await;
            peer.answer(&id, with(task("completed", ""), "result", result("the report"))).await;
            assert_eq!(call.await.unwrap().unwrap().text, "the report");
        } else {
            let timed_out = timed_out(call.await.unwrap());
            assert_eq!((timed_out.limit, timed_out.notes), (Limit::Idle, 1));
            assert_eq!(began.elapsed().as_millis(), 5_000);
        }
    }
}

/// A poll that the server does not answer is abandoned at the limit of the call.
#[tokio::test(start_paused = true)]
async fn d13_a_poll_without_an_answer_ends_with_the_call() {
    let (client, mut peer) = greeted_stateless().await;
    let call = calling(&client, CallOptions::default().max_total_timeout(ms(5_000)));
    becomes_a_task(&mut peer).await;
    let look = asked_after(&mut peer, "tasks/get").await;
    let cancelled = peer.hear().await;
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], look, "the poll is cancelled, not the task");
    assert_eq!(timed_out(call.await.unwrap()).task, given_up(TaskFate::GoesOn));
}

#[tokio::test(start_paused = true)]
async fn d13_a_dropped_call_cancels_its_task_only_if_the_caller_asked_for_that() {
    let (client, mut peer) = greeted_stateless().await;
    let call = calling(&client, CallOptions::default());
    becomes_a_task(&mut peer).await;
    sleep(ms(1_000)).await;
    call.abort();
    assert!(tokio::time::timeout(ms(5_000), peer.hear()).await.is_err(), "the task goes on");

    let call = calling(&client, CallOptions::default().cancel_on_give_up());
    becomes_a_task(&mut peer).await;
    sleep(ms(1_000)).await;
    call.abort();
    asked_after(&mut peer, "tasks/cancel").await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_asks_for_input_ends_the_call() {
    let (client, mut peer) = greeted_stateless().await;
    for options in [CallOptions::default(), CallOptions::default().cancel_on_give_up()] {
        let asked_to_cancel = format!("{options:?}").contains("cancel_on_give_up: true");
        let call = calling(&client, options);
        becomes_a_task(&mut peer).await;
        let id = asked_after(&mut peer, "tasks/get").await;
        let asks = with(task("input_required", "Which one?"), "inputRequests", json!({}));
        peer.answer(&id, asks).await;
        let called = call.await.unwrap();
        assert!(matches!(called, Err(ClientError::NeedsInput)), "{called:?}");
        if asked_to_cancel {
            asked_after(&mut peer, "tasks/cancel").await;
        } else {
            assert!(tokio::time::timeout(ms(5_000), peer.hear()).await.is_err(), "it goes on");
        }
    }
}

/// A task outlives its caller if it was left running, and can be resumed by its id, even over another
/// connection.
#[tokio::test(start_paused = true)]
async fn d13_a_task_that_was_left_running_is_resumed_by_its_id() {
    let (client, mut peer) = greeted_stateless().await;
    let calling = client.clone();
    let call = tokio::spawn(async move {
        match calling.start_tool("slow", json!({}), CallOptions::default()).await? {
            StartedCall::Task(task) => Ok(task.leave_running().id().to_owned()),
            StartedCall::Answered(answer) => panic!("not a task: {answer:?}"),
        }
    });
    becomes_a_task(&mut peer).await;
    let id = call.await.unwrap().map_err(|error: ClientError| error).unwrap();
    assert_eq!(id, "t-1");
    let heard = tokio::time::timeout(ms(5_000), peer.hear()).await;
    assert!(heard.is_err(), "the task is neither polled nor cancelled: {heard:?}");

    let (options, told) = remembering(CallOptions::default());
    let began = Instant::now();
    let resumed =
        tokio::spawn(async move { client.resume_task(&id, options).unwrap().finish().await });
    let look = asked_after(&mut peer, "tasks/get").await;
    assert_eq!(began.elapsed().as_millis(), 0, "it is polled first");
    peer.answer(&look, task("working", "60 %: Reading")).await;
    let look = asked_after(&mut peer, "tasks/get").await;
    assert_eq!(began.elapsed().as_millis(), 2_000, "then at the server's interval");
    peer.answer(&look, with(task("completed", "Done"), "result", result("the report"))).await;
    assert_eq!(resumed.await.unwrap().unwrap().text, "the report");
    assert_eq!(told.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn d13_a_limit_cancels_a_task_even_if_it_was_left_running() {
    let (client, mut peer) = greeted_stateless().await;
    let options = CallOptions::default().max_total_timeout(ms(3_000)).cancel_on_give_up();
    let resumed = tokio::spawn(async move {
        client.resume_task("t-1", options).unwrap().leave_running().finish().await
    });
    for _ in 0..2 {
        let look = asked_after(&mut peer, "tasks/get").await;
        peer.answer(&look, task("working", "60 %: Reading")).await;
    }
    let id = asked_after(&mut peer, "tasks/cancel").await;
    peer.answer(&id, json!({ "resultType": "complete" })).await;
    assert_eq!(timed_out(resumed.await.unwrap()).limit, Limit::Total);
}

#[tokio::test(start_paused = true)]
async fn a_task_is_cancelled_by_its_id_and_an_unknown_task_is_reported() {
    let (client, mut peer) = greeted_stateless().await;
    let cancelling = client.clone();
    let cancelled = tokio::spawn(async move {
        cancelling.resume_task("t-1", CallOptions::default()).unwrap().cancel().await
    });
    let id = asked_after(&mut peer, "tasks/cancel").await;
    peer.answer(&id, json!({ "resultType": "complete" })).await;
    cancelled.await.unwrap().unwrap();

    let resumed = tokio::spawn(async move {
        client.resume_task("t-1", CallOptions::default()).unwrap().finish().await
    });
    let id = asked_after(&mut peer, "tasks/get").await;
    let error = json!({ "code": -32_602, "message": "there is no such task" });
    peer.say(&json!({ "jsonrpc": "2.0", "id": id, "error": error })).await;
    let resumed = resumed.await.unwrap();
    assert!(matches!(resumed, Err(ClientError::TaskUnknown { .. })), "{resumed:?}");
}
