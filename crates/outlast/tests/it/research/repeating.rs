//! Promise 2: a repeated held call returns the same report and buys nothing, whatever happened to the first answer; a
//! repeated answer is marked as one.

use outlast_testkit::mcp_process::Signal;

use super::*;
use crate::http::client::{ANN, Client as HttpClient, Served, call as http_call};
use crate::support::{ShiftedClock, assert_refused};

const MINUTE: i64 = 60_000;

/// Returns the sentence of a repeated answer, which is its last block; `None` if the answer is not marked as one.
fn repeated(result: &Value) -> Option<String> {
    let blocks = result["content"].as_array().unwrap();
    let last = blocks.last().unwrap()["text"].as_str().unwrap_or_default();
    match &result["_meta"]["outlast/replayed"] {
        Value::Null => {
            assert!(!last.contains(" ago"), "{result}");
            None
        }
        mark => {
            assert!(*mark == json!(true) && blocks.len() > 1, "{result}");
            Some(last.to_owned())
        }
    }
}

async fn auto_with(environment: &[(&str, &str)]) -> (World, Client) {
    let mut world = World::new().await;
    world.set(SWITCH, "auto");
    for (name, value) in environment {
        world.set(name, value);
    }
    let client = Client::of(world.serve().await).await;
    (world, client)
}

/// Promise 2: a client that gives up silently and asks three times pays once; structured content stays unchanged.
#[tokio::test]
async fn a_client_that_gives_up_silently_gets_the_answer_again_and_pays_once() {
    for mode in ["false", "auto"] {
        let mut world = World::new().await;
        world.set(SWITCH, mode);
        let mut client = Client::of(world.serve().await).await;
        let first = client.server.call(DEEP, query(QUICK)).await;
        assert_eq!(repeated(&first), None);
        for _ in 0..2 {
            let again = client.server.call(DEEP, query(QUICK)).await;
            let sentence = repeated(&again).expect("a repeated answer says so");
            assert!(sentence.contains(" ago"), "how old it is: {sentence}");
            assert!(sentence.contains("new `idempotency_key`"), "how to ask again: {sentence}");
            assert_eq!(again["structuredContent"], first["structuredContent"]);
            let blocks = first["content"].as_array().unwrap();
            assert_eq!(&again["content"].as_array().unwrap()[..blocks.len()], &blocks[..]);
            client.checked(DEEP, &again);
        }
        assert_eq!(world.submits(), 1, "{mode}");
        let mut anew = query(QUICK);
        anew["idempotency_key"] = json!("anew");
        assert_eq!(repeated(&client.server.call(DEEP, anew.clone()).await), None);
        assert!(repeated(&client.server.call(DEEP, anew).await).is_some(), "E9: under its key");
        assert_eq!(world.submits(), 2, "{mode}: a new key asks again");
    }
}

/// Promise 2: a stdio client that dies with the answer unread.
#[tokio::test]
async fn an_answer_that_a_dead_client_never_read_is_replayed() {
    let (world, mut client) = blocking().await;
    client.send(DEEP, query(QUICK), None).await;
    client.server.logged("Job completed").await;
    client.server.close_input();
    client.server.ended().await;
    let mut next = Client::of(world.serve().await).await;
    assert_eq!(next.ok(DEEP, query(QUICK)).await.shape["status"], "completed");
    assert_eq!(world.submits(), 1, "paid once");
}

/// Promise 2: an HTTP client that resets its connection with the answer unread, in a session and without one.
#[tokio::test]
async fn an_answer_that_a_reset_connection_lost_is_replayed() {
    for in_session in [true, false] {
        let mut world = World::new().await;
        let server = Served::start(&mut world, &[]).await;
        let ask = async |client: HttpClient| match in_session {
            true => {
                let session = client.initialize().await;
                client.post(Some(&session), &http_call(DEEP, &query(QUICK), &json!({}))).await
            }
            false => client.ask(DEEP, query(QUICK), json!({})).await,
        };
        let unread = ask(server.client(ANN)).await;
        server.process.logged("Job completed").await;
        drop(unread);
        server.process.signal(Signal::TERM);
        server.process.ended().await;
        let server = Served::start(&mut world, &[]).await;
        let answer = ask(server.client(ANN)).await.result().await;
        assert_eq!(answer["result"]["structuredContent"]["status"], "completed", "{answer}");
        assert_eq!(world.submits(), 1, "in a session: {in_session}");
    }
}

/// Promise 2, B1: mode auto, cancelled by the client and repeated.
#[tokio::test]
async fn b1_in_mode_auto_the_identical_call_attaches() {
    let (world, mut client) = auto_with(&[]).await;
    let arguments = query("ok;words=60;hold=true");
    for _ in 0..2 {
        let call = client.send(DEEP, arguments.clone(), None).await;
        eventually("it is submitted", || world.submits() >= 1).await;
        client.give_up(call).await;
    }
    let call = client.send(DEEP, arguments, None).await;
    client.server.request("ping", json!({})).await;
    release(&world, 1).await;
    let answer = client.answer(DEEP, call).await;
    assert_eq!(answer.shape["status"], "completed");
    assert_eq!(world.submits(), 1, "paid once");
    let listed = client.ok(LIST, json!({})).await.shape;
    assert_eq!(listed["conversations"].as_array().unwrap().len(), 1, "{listed}");
}

/// B1: after the inline budget the identical call gets the queued text with the same conversation, and later the
/// report.
#[tokio::test]
async fn b1_in_mode_auto_the_identical_call_is_queued_once() {
    let (world, mut client) = auto_with(&[("OUTLAST_INLINE_BUDGET_MS", "50")]).await;
    let scenario = "ok;words=60;hold=true";
    let id = client.queue(scenario).await;
    assert_eq!(client.queue(scenario).await, id, "the same conversation");
    release(&world, 1).await;
    assert_eq!(client.ended(&id).await.shape["status"], "completed");
    let first = client.server.call(DEEP, query(scenario)).await;
    assert_eq!(repeated(&first), None, "no call was answered with the report before");
    assert_eq!(first["structuredContent"]["conversationId"], id.as_str());
    let again = client.server.call(DEEP, query(scenario)).await;
    assert!(repeated(&again).is_some());
    assert_eq!(again["structuredContent"], first["structuredContent"]);
    assert_eq!(world.submits(), 1, "paid once");
}

/// Promise 2: start tools and async submits attach by a key alone.
#[tokio::test]
async fn a_repeated_async_submit_is_another_one() {
    let (_world, mut client) = queueing().await;
    let first = client.queue(QUICK).await;
    assert_ne!(client.queue(QUICK).await, first);
}

/// Promise 2: the time limit: 10 minutes after the end once a call was answered, 1 minute for a quick answer.
#[tokio::test]
async fn a_report_is_replayed_for_ten_minutes_and_a_quick_answer_for_one() {
    let world = World::new().await;
    let clock = ShiftedClock::new(&world);
    let mut client = Client::of(clock.serve(&world, &[]).await).await;
    for (tool, minutes) in [(DEEP, 10), (SEARCH, 1)] {
        clock.set(0);
        let before = world.submits();
        let first = client.server.call(tool, query(QUICK)).await;
        assert_eq!(repeated(&first), None);
        // Earlier by the time that the test may take; the rules' own table has the exact moment.
        clock.set(minutes * MINUTE - MINUTE / 2);
        let again = client.server.call(tool, query(QUICK)).await;
        let sentence = repeated(&again).expect("a repeated answer says so");
        if tool == SEARCH {
            assert!(sentence.contains("ask again after 20"), "{sentence}");
            assert!(sentence.contains("or change the wording"), "{sentence}");
        } else {
            assert!(sentence.contains("9 min ago"), "{sentence}");
        }
        assert_eq!(again["structuredContent"], first["structuredContent"]);
        assert_eq!(world.submits(), before + 1, "{tool}");
        clock.set(minutes * MINUTE);
        assert_eq!(repeated(&client.server.call(tool, query(QUICK)).await), None);
        assert_eq!(world.submits(), before + 2, "{tool}: its time is over");
    }
}

/// Promise 2: the time limit: 30 minutes after the end while no call was answered.
#[tokio::test]
async fn a_report_no_call_was_answered_with_waits_for_half_an_hour() {
    for (tool, minutes, submits) in [(DEEP, 29, 1), (SEARCH, 29, 1), (DEEP, 30, 2), (SEARCH, 30, 2)]
    {
        let world = World::new().await;
        let clock = ShiftedClock::new(&world);
        let mut client = Client::of(clock.serve(&world, &[]).await).await;
        let arguments = query("ok;words=60;hold=true");
        let call = client.send(tool, arguments.clone(), None).await;
        eventually("it is submitted", || world.submits() == 1).await;
        client.give_up(call).await;
        release(&world, 1).await;
        client.server.logged("Job completed").await;
        clock.set(minutes * MINUTE);
        let again = client.send(tool, arguments, None).await;
        if submits == 2 {
            release(&world, 2).await;
        }
        let again = client.server.answer(again).await.unwrap();
        assert_eq!(repeated(&again["result"]), None);
        assert_eq!(world.submits(), submits, "{tool} after {minutes} minutes");
    }
}

/// Promise 2: a failure that was answered is not repeated: the same call asks again, at once.
#[tokio::test]
async fn a_failure_that_was_answered_is_asked_again() {
    let (world, mut client) = blocking().await;
    for (scenario, code) in
        [("http;status=429", "RATE_LIMITED"), ("fail;delay_ms=0", "EXECUTION_ERROR")]
    {
        let before = submitted(&world).len();
        for times in 1..=2 {
            let refused = client.server.call(DEEP, query(scenario)).await;
            assert_eq!(refusal(&refused).0, code);
            assert_eq!(repeated(&refused), None);
            assert_eq!(submitted(&world).len(), before + times, "{code}: the provider is asked");
        }
    }
}

/// Promise 2: a failure that left a paid run behind: the same call resumes that run and submits nothing.
#[tokio::test]
async fn a_call_whose_time_ran_out_resumes_its_run_when_it_is_repeated() {
    for mode in ["false", "auto"] {
        let mut world = World::new().await;
        world.set(SWITCH, mode);
        world.set("PERPLEXITY_POLLING_TIMEOUT_MS", "400");
        world.set("PERPLEXITY_MAX_JOB_RETRIES", "0");
        let mut client = Client::of(world.serve().await).await;
        let scenario = "ok;words=60;hold=true";
        let refused = client.server.call(DEEP, query(scenario)).await;
        assert_refused(&refused, "TIMEOUT", true);
        let text = refused["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("so does the same call made again"), "{text}");
        release(&world, 1).await;
        world.set("PERPLEXITY_POLLING_TIMEOUT_MS", "60000");
        let mut client = Client::of(world.serve().await).await;
        let answer = client.server.call(DEEP, query(scenario)).await;
        assert_eq!(answer["structuredContent"]["status"], "completed", "{answer}");
        assert_eq!(repeated(&answer), None);
        assert_eq!(world.submits(), 1, "{mode}: the run was paid for once");
    }
}

/// Promise 2: a submit with an unknown outcome is reported again for 30 minutes and sends nothing; only with the
/// caller's consent does a new run begin.
#[tokio::test]
async fn a_submit_of_unknown_outcome_is_replayed_and_sends_nothing() {
    let world = World::new().await;
    let clock = ShiftedClock::new(&world);
    let mut client = Client::of(clock.serve(&world, &[]).await).await;
    for (tool, how) in [(DEEP, "new `idempotency_key`"), (SEARCH, "ask again after 20")] {
        clock.set(0);
        let before = submitted(&world).len();
        let first = client.server.call(tool, query("drop_submit")).await;
        assert_refused(&first, "SUBMIT_UNKNOWN", false);
        assert!(refusal(&first).1.contains("for 30 minutes and sends nothing"), "{first}");
        assert_eq!(repeated(&first), None);
        for minutes in [0, 29] {
            clock.set(minutes * MINUTE);
            let again = client.server.call(tool, query("drop_submit")).await;
            assert_eq!(refusal(&again), refusal(&first));
            let sentence = repeated(&again).expect("a repeated answer says so");
            assert!(sentence.contains(how) && sentence.contains("--again"), "{sentence}");
        }
        assert_eq!(submitted(&world).len(), before + 1, "{tool}: nothing was sent again");
        if tool == DEEP {
            let mut anew = query("drop_submit");
            anew["idempotency_key"] = json!("my word");
            client.server.call(tool, anew).await;
            assert_eq!(submitted(&world).len(), before + 2, "the caller's word begins again");
        } else {
            clock.set(30 * MINUTE);
            client.server.call(tool, query("drop_submit")).await;
            assert_eq!(submitted(&world).len(), before + 2, "its time is over");
        }
    }
}

/// B9a: a check that a proxy or the provider refuses ends the job, not the run: the same call resumes it.
#[tokio::test]
async fn b9a_a_run_whose_check_was_refused_is_resumed_by_the_same_call() {
    let (world, mut client) = blocking().await;
    for status in ["400", "403", "407", "410"] {
        let before = world.submits();
        let scenario = format!(
            "drop;after_events=1|http;on=poll;status={status};times=1|ok;words=60;delay_ms=2000"
        );
        let failed = client.server.call(DEEP, query(&scenario)).await;
        if failed["isError"] == true {
            let answer = client.ok(DEEP, query(&scenario)).await;
            assert_eq!(answer.shape["status"], "completed");
        }
        assert_eq!(world.submits(), before + 1, "{status}: {failed}");
    }
}

/// Promises 1 and 2: a blocking server runs a job that mode auto queued when it gets that job's call, although it
/// claims nothing from the queue.
#[tokio::test]
async fn b1_a_call_that_mode_auto_began_goes_on_in_a_blocking_server() {
    let (mut world, mut client) = auto_with(&[("OUTLAST_TOOLS", "research")]).await;
    let arguments = query("ok;words=60;hold=true");
    client.send(DEEP, arguments.clone(), None).await;
    eventually("it is submitted", || world.submits() == 1).await;
    client.server.kill().await;
    release(&world, 1).await;
    world.set(SWITCH, "false");
    let mut blocking = Client::of(world.serve().await).await;
    let answer = blocking.server.call(DEEP, arguments).await;
    // The kill may have come before the run was recorded: then its payment is unknown.
    let unknown = answer["content"][0]["text"].as_str().unwrap().starts_with("SUBMIT_UNKNOWN");
    assert!(unknown || answer["structuredContent"]["status"] == "completed", "{answer}");
    assert_eq!(world.submits(), 1, "paid once");
}

/// P4: a call that waits for the job of another server does not wait for ever when that server dies: its own server
/// runs the job.
#[tokio::test]
async fn p4_a_call_attached_to_a_job_goes_on_when_the_server_of_the_job_dies() {
    let (mut world, mut client) = auto_with(&[("OUTLAST_TOOLS", "research")]).await;
    let arguments = query("ok;words=60;hold=true");
    client.send(DEEP, arguments.clone(), None).await;
    eventually("it is submitted", || world.submits() == 1).await;
    world.set(SWITCH, "false");
    let mut blocking = Client::of(world.serve().await).await;
    let call = blocking.send(DEEP, arguments, None).await;
    // Answered after the call before it has attached.
    blocking.server.call("list_conversations", json!({})).await;
    client.server.kill().await;
    release(&world, 1).await;
    let answer = blocking.server.answer(call).await.unwrap()["result"].clone();
    let unknown = answer["content"][0]["text"].as_str().unwrap().starts_with("SUBMIT_UNKNOWN");
    assert!(unknown || answer["structuredContent"]["status"] == "completed", "{answer}");
    assert_eq!(world.submits(), 1, "paid once");
}

/// Promise 2, B1: a call in mode auto that attaches to a blocking one gets the queued text after the inline budget; the
/// conversation that it names is shown from then on.
#[tokio::test]
async fn b1_mode_auto_makes_the_job_of_a_blocking_call_a_promised_one() {
    let (mut world, mut holding) = blocking().await;
    let arguments = query("ok;words=60;hold=true");
    let call = holding.send(DEEP, arguments.clone(), None).await;
    eventually("it is submitted", || world.submits() == 1).await;
    world.set(SWITCH, "auto");
    world.set("OUTLAST_INLINE_BUDGET_MS", "50");
    let mut auto = Client::of(world.serve().await).await;
    let queued = auto.ok(DEEP, arguments.clone()).await;
    assert_eq!(queued.shape["responseId"], "queued", "{}", queued.shape);
    assert_eq!(auto.history(&id_of(&queued)).await.shape["status"], "in_progress");
    release(&world, 1).await;
    let answer = holding.answer(DEEP, call).await;
    assert_eq!(id_of(&answer), id_of(&queued), "one job");
    assert_eq!(auto.ok(DEEP, arguments).await.shape["status"], "completed");
    assert_eq!(world.submits(), 1, "paid once");
}

/// P4: a call whose job needs a key that no running server has is refused at once, and buys nothing.
#[tokio::test]
async fn p4_a_call_that_only_another_key_could_go_on_with_does_not_wait_for_ever() {
    let (mut world, mut client) = blocking().await;
    let arguments = query("ok;words=60;hold=true");
    client.send(DEEP, arguments.clone(), None).await;
    eventually("it is submitted", || world.submits() == 1).await;
    client.server.kill().await;
    world.set("PERPLEXITY_API_KEY", "pplx-another");
    let mut next = Client::of(world.serve().await).await;
    let told = next.server.call(DEEP, arguments).await;
    assert_refused(&told, "CONFIGURATION_ERROR", false);
    assert_eq!(world.submits(), 1, "paid once");
}
