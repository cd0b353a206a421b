//! Nothing is paid for twice without the owner's consent, and unknown outcomes are reported: the real binary against a
//! provider that counts its paid runs.

use std::time::Duration;

use outlast_simulator::{Options, SonarMode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{CANCEL, POLL, START, World, eventually, finished, question, running, start};

const DEEP: &str = "perplexity_deep_research";

async fn sonar() -> World {
    let mut world = World::with(Options { sonar: SonarMode::Live, ..Options::default() }).await;
    world.set("PERPLEXITY_API", "sonar");
    world
}

fn query(scenario: &str) -> Value {
    json!({ "query": format!("Why is the sky blue? [[sim:{scenario}]]") })
}

/// Returns the number of requests to begin something at the provider.
fn posts(world: &World) -> usize {
    let requests = world.simulator.requests();
    requests.iter().filter(|seen| seen.method == "POST" && !seen.path.contains("cancel")).count()
}

/// A5, B9a: runs that cannot be found for some time exist; none of them is bought again.
#[tokio::test]
async fn b9a_runs_that_are_not_found_for_a_while_are_not_bought_again() {
    let world = World::new().await;
    let mut doomed = world.serve_with(&["--concurrency", "20"]).await;
    let scenario = "http;on=poll;status=404;times=3|ok;words=60;hold";
    let mut ids = Vec::new();
    for number in 0..20 {
        let content = format!("Question {number}? [[sim:{scenario}]]");
        let asked = json!({ "messages": [{ "role": "user", "content": content }] });
        ids.push(doomed.structured(START, asked).await["jobId"].as_str().unwrap().to_owned());
    }
    for id in &ids {
        running(&world, id).await;
    }
    doomed.kill().await;
    world.simulator.release();
    // A minute later the runs are no longer new.
    let clock = world.data_dir().join("shift");
    std::fs::write(&clock, "60000").unwrap();
    let flags = ["--concurrency", "20", "--clock-file", clock.to_str().unwrap()];
    let mut server = world.serve_with(&flags).await;
    for id in &ids {
        let ended = finished(&mut server, id).await;
        assert_eq!(ended["status"], "COMPLETED", "{ended}");
    }
    assert_eq!(world.submits(), 20);
}

/// B9a: a gateway answers, in any words, while the provider works.
#[tokio::test]
async fn b9a_a_gateways_timeout_in_json_is_unknown_and_not_sent_again() {
    let world = World::new().await;
    let mut server = world.serve().await;
    for (number, status) in [408, 502, 504, 520, 524].into_iter().enumerate() {
        let id = start(&mut server, &format!("gateway;status={status}")).await;
        let ended = finished(&mut server, &id).await;
        let error = ended["error"].as_str().unwrap();
        assert!(error.starts_with("SUBMIT_UNKNOWN: "), "{status}: {ended}");
        assert!(error.contains(&format!("`outlast jobs retry {id} --again`")), "{error}");
        assert!(error.contains("paid for a second time"), "{error}");
        assert!(ended["message"].as_str().unwrap().contains("--again"), "{ended}");
        assert_eq!(world.submits(), number as u64 + 1, "{status}");
    }
}

/// P6: an accepted submit whose answer is late ends SUBMIT_UNKNOWN in the Sonar dialect too; a retry needs consent, and
/// sends the same key, which is paid for once.
#[tokio::test]
async fn p6_a_late_answer_of_sonar_is_unknown_and_retried_only_with_again_under_the_same_key() {
    let mut world = sonar().await;
    world.set("PERPLEXITY_TIMEOUT_MS", "700");
    let mut server = world.serve().await;
    let refused = server.call(DEEP, query("late_submit;ms=60000|ok;words=60;delay_ms=0")).await;
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("SUBMIT_UNKNOWN: "), "{text}");
    assert!(text.contains("--again`") && text.contains("paid for a second time"), "{text}");
    assert_eq!(world.submits(), 1);

    let listed = world.run(&["jobs", "list", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let id = listed["jobs"][0]["id"].as_str().unwrap().to_owned();
    let ran = world.run(&["jobs", "retry", &id]).await;
    crate::cli::assert_usage_error(&ran, "paid for a second time", "--again");
    assert_eq!(posts(&world), 1, "nothing was sent");

    let ran = world.run(&["jobs", "retry", &id, "--again"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let retry = ran.stdout.trim().to_owned();
    let ended = finished(&mut server, &retry).await;
    assert_eq!(ended["status"], "COMPLETED", "{ended}");
    let stats = world.simulator.stats();
    assert_eq!((stats.submits, stats.replayed_submits), (1, 1), "the same key");
    let ran = world.run(&["jobs", "retry", &id]).await;
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), retry.as_str()), "made already: {ran:?}");
    assert!(ran.stderr.contains("was retried as this one before; it is succeeded"), "{ran:?}");
}

/// A3: a cancel while the request is on its way reports what is unknown, also after a kill -9; no answer is a plain
/// "Cancelled."
#[tokio::test]
async fn a3_a_cancel_during_the_submit_and_a_kill_leave_the_doubt_on_record() {
    let world = World::new().await;
    let mut doomed = world.serve().await;
    let id = start(&mut doomed, "late_submit;ms=1200000|stuck").await;
    eventually("the run is bought", || world.submits() == 1).await;
    let cancelled = doomed.structured(CANCEL, json!({ "jobId": id })).await;
    let said = "may have been begun and paid for";
    assert!(cancelled["message"].as_str().unwrap().contains(said), "{cancelled}");
    doomed.kill().await;
    let mut server = world.serve().await;
    let poll = server.structured(POLL, json!({ "jobId": id })).await;
    assert_eq!(poll["status"], "CANCELLED", "{poll}");
    assert!(poll["message"].as_str().unwrap().contains("could not be stopped"), "{poll}");
    let shown = world.run(&["jobs", "show", &id]).await;
    assert!(shown.stdout.contains("a run may have been begun"), "{}", shown.stdout);
    let retried = world.run(&["jobs", "retry", &id]).await;
    assert_eq!(retried.code, Some(2), "P6: only on the owner's word: {retried:?}");
    assert!(retried.stderr.contains("--again"), "{retried:?}");
    assert_eq!(world.submits(), 1);
}

/// A3: if the process is still running, the run is stopped once it is known.
#[tokio::test]
async fn a3_a_cancel_during_the_submit_stops_the_run_once_it_is_known() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let id = start(&mut server, "late_submit;ms=30000|stuck").await;
    eventually("the run is bought", || world.submits() == 1).await;
    server.structured(CANCEL, json!({ "jobId": id })).await;
    eventually("the provider is notified", || world.simulator.stats().cancels == 1).await;
    // The worker records it after the provider has counted it.
    let recorded = async {
        while !world
            .run(&["jobs", "show", &id])
            .await
            .stdout
            .contains("run was stopped, or ended without a report")
        {}
    };
    tokio::time::timeout(Duration::from_secs(20), recorded).await.expect("it is recorded");
}

/// A3: the Sonar dialect has no cancel call, and the answer does not claim that the provider is notified.
#[tokio::test]
async fn a3_a_cancel_of_sonar_says_that_the_run_may_still_finish() {
    let world = sonar().await;
    let mut server = world.serve().await;
    let id = start(&mut server, "stuck").await;
    running(&world, &id).await;
    let cancelled = server.structured(CANCEL, json!({ "jobId": id })).await;
    let message = cancelled["message"].as_str().unwrap();
    assert!(message.contains("may still finish") && !message.contains("being told"), "{message}");
    let id = start(&mut server, "stuck;words=61").await;
    running(&world, &id).await;
    let ran = world.run(&["jobs", "cancel", &id]).await;
    assert!(ran.stderr.contains("may still finish"), "{ran:?}");
    assert!(!ran.stderr.contains("being told"), "{ran:?}");
}

/// P7: a cost over a dollar is in the log, in every answer, and in the footer of the command line.
#[tokio::test]
async fn p7_a_run_over_a_dollar_is_reported_in_the_log_and_in_the_answer() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let dear = "cost;total=1.25|ok;words=60;delay_ms=0";
    let said = "This run cost $1.25 (as the provider reports), which is over $1.";
    let answer = server.call(DEEP, query(dear)).await;
    let text = answer["content"].to_string();
    assert!(text.contains(said), "{text}");
    server.logged(said).await;
    let id = answer["structuredContent"]["conversationId"].clone();
    let history = server.call("get_conversation_history", json!({ "conversationId": id })).await;
    assert!(history["content"].to_string().contains(said), "{history}");
    let id = start(&mut server, dear).await;
    let ended = finished(&mut server, &id).await;
    assert!(ended["message"].as_str().unwrap().contains(said), "{ended}");
    let ran = world.run(&["research", &format!("Why so? [[sim:{dear}]]")]).await;
    assert!(ran.stderr.contains(said), "{ran:?}");
    let ran = world.run(&["research", "Why so? [[sim:cost;total=0.99|ok;words=60;delay_ms=0]]"]);
    let ran = ran.await;
    assert!(!ran.stderr.contains("over $1"), "{ran:?}");
}

/// C10: before a run that usually costs over a dollar, in every interface.
#[tokio::test]
async fn c10_a_question_likely_to_cost_over_a_dollar_is_logged_before_it_is_sent() {
    let world = sonar().await;
    let server = &mut world.serve().await;
    let mut asked = question("ok;words=60;delay_ms=0");
    asked["reasoning_effort"] = json!("high");
    server.structured(START, asked).await;
    server.logged("likely to cost over $1").await;
}

/// B9a: a run that was stopped at the provider ends the job with that reason.
#[tokio::test]
async fn b9a_a_run_stopped_at_the_provider_ends_the_job() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let id = start(&mut server, "stuck").await;
    running(&world, &id).await;
    let run = world.simulator.stats().runs[0].id.clone();
    let address = world.simulator.url().trim_start_matches("http://").to_owned();
    let mut provider = tokio::net::TcpStream::connect(&address).await.unwrap();
    let request = format!(
        "POST /v1/agent/{run}/cancel HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer k\r\n\
         content-length: 0\r\nconnection: close\r\n\r\n"
    );
    provider.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    provider.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let ended = finished(&mut server, &id).await;
    assert_eq!(ended["status"], "FAILED", "{ended}");
    assert!(ended["error"].as_str().unwrap().contains("stopped at the provider"), "{ended}");
    assert_eq!(world.submits(), 1);
}

/// P5: thinking is hidden in the Agent dialect too, unless it is asked for.
#[tokio::test]
async fn p5_thinking_is_hidden_in_the_agent_dialect() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let thinks = "ok;thinks;words=60;delay_ms=0";
    for (show, shown) in [(false, false), (true, true)] {
        let mut asked = query(thinks);
        asked["query"] = format!("{} {show}", asked["query"].as_str().unwrap()).into();
        asked["showThinking"] = show.into();
        let answer = server.call("perplexity_search", asked).await;
        let text = answer["structuredContent"]["rawResultText"].as_str().unwrap();
        assert_eq!(text.contains("Now I can write the report."), shown, "{text}");
        assert_eq!(text.contains("<think>"), shown, "{text}");
    }
    for strip in [true, false] {
        let mut asked = question(thinks);
        asked["strip_thinking"] = strip.into();
        let id = server.structured(START, asked).await["jobId"].as_str().unwrap().to_owned();
        let ended = finished(&mut server, &id).await;
        let response = ended["response"].as_str().unwrap();
        assert_eq!(response.contains("<think>"), !strip, "{response}");
    }
}

/// B6: a client that follows the progress sees the approaching end.
#[tokio::test]
async fn b6_the_end_of_a_report_is_announced() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let mut call = json!({ "name": DEEP, "arguments": query("ok;words=5000") });
    call["_meta"] = json!({ "progressToken": "t" });
    let call = server.send("tools/call", call).await;
    let mut seen = Vec::new();
    let answered = async {
        loop {
            let message = server.message().await.expect("the server goes on");
            if message["id"] == json!(call) {
                return message;
            }
            if message["method"] == "notifications/progress" {
                seen.push((
                    message["params"]["progress"].as_f64().unwrap(),
                    message["params"]["message"].as_str().unwrap().to_owned(),
                ));
            }
        }
    };
    let limit = std::time::Duration::from_secs(90);
    tokio::time::timeout(limit, answered).await.expect("it is answered");
    let near = seen.iter().find(|(_, message)| message == "Finalizing research report...");
    let (percent, _) = near.unwrap_or_else(|| panic!("{seen:?}"));
    assert!((75.0..=95.0).contains(percent), "{seen:?}");
}

/// A provider's answer over the limit ends the job with the reason; it is fetched once.
#[tokio::test]
async fn an_answer_over_the_limit_ends_the_job_and_is_not_fetched_again() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let huge = "malformed;kind=huge;bytes=34000000;on=poll|no_terminal;delay_ms=0";
    let id = start(&mut server, huge).await;
    let ended = finished(&mut server, &id).await;
    assert!(ended["error"].as_str().unwrap().contains("larger than the 32 MiB"), "{ended}");
    let stats = world.simulator.stats();
    assert_eq!((stats.submits, stats.polls), (1, 1));
}
