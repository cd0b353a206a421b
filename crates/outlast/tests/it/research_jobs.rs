//! Tool set `research-jobs` on the real binary over a real pipe: A1-A5, A7, A10, A12, and bad input.

use crate::support::{
    CANCEL, POLL, START, World, eventually, finished, park_poll, question, running, start,
};
use outlast_testkit::mcp_process::Signal;
use serde_json::json;

/// A1, A2, A4, E15: the happy path of start and poll.
#[tokio::test]
async fn a1_a_start_answers_with_an_id_and_a_poll_brings_the_report() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let started = server.structured(START, question("ok;words=120;sources=4")).await;
    let id = started["jobId"].as_str().unwrap().to_owned();
    assert_eq!(id.len(), 32);
    assert!(matches!(started["status"].as_str(), Some("CREATED" | "IN_PROGRESS")), "{started}");
    assert!(started["message"].as_str().unwrap().contains(POLL), "says what to do next: {started}");
    assert!(started.get("response").is_none() && started.get("error").is_none());

    let ended = finished(&mut server, &id).await;
    assert_eq!(ended["status"], "COMPLETED", "{ended}");
    let response = ended["response"].as_str().unwrap();
    let (report, citations) =
        response.rsplit_once("\n\nCitations:\n").expect("citations at the end");
    assert!(report.contains("[1]"), "{report}");
    assert_eq!(citations.lines().count(), 4, "{citations}");
    assert!(
        citations.lines().all(|line| line.starts_with('[') && line.contains("] http")),
        "{citations}"
    );
    assert!(ended["elapsedSec"].is_number());
    assert_eq!(
        finished(&mut server, &id).await,
        ended,
        "A2: the same answer again, elapsedSec frozen"
    );
}

/// A1: the start does not wait for an upstream that never answers.
#[tokio::test]
async fn a1_a_start_never_waits_on_the_upstream() {
    let mut world = World::new().await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    world.set("PERPLEXITY_BASE_URL", &format!("http://{}", silent.local_addr().unwrap()));
    let mut server = world.serve().await;
    start(&mut server, "ok").await;
}

/// A2, E15: a poll of a running job returns within its budget.
#[tokio::test]
async fn a2_a_poll_of_a_running_job_returns_within_its_budget() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "50");
    let mut server = world.serve().await;
    let id = start(&mut server, "stuck").await;
    running(&world, &id).await;
    let poll = server.structured(POLL, json!({ "jobId": id })).await;
    assert_eq!(poll["status"], "IN_PROGRESS", "{poll}");
    assert!(poll["elapsedSec"].as_f64().unwrap() >= 0.0);
    assert!(poll["message"].as_str().unwrap().starts_with("Still running"), "{poll}");
}

/// A2: a parked poll answers when the job ends, not when its budget does.
#[tokio::test]
async fn a2_a_parked_poll_answers_the_moment_the_job_ends() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "3600000");
    let mut server = world.serve().await;
    let id = start(&mut server, "ok;words=60;hold=true").await;
    running(&world, &id).await;
    let poll = park_poll(&mut server, &id).await;
    world.simulator.release();
    let answer = server.answer(poll).await.unwrap();
    assert_eq!(answer["result"]["structuredContent"]["status"], "COMPLETED");
}

/// A3, E15: cancel ends the job, notifies the provider, and is idempotent.
#[tokio::test]
async fn a3_a_cancel_ends_the_job_and_stops_the_remote_run() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let id = start(&mut server, "stuck").await;
    running(&world, &id).await;
    let cancelled = server.structured(CANCEL, json!({ "jobId": id })).await;
    assert_eq!(cancelled["status"], "CANCELLED", "{cancelled}");
    let again = server.structured(CANCEL, json!({ "jobId": id })).await;
    assert_eq!(again["status"], "CANCELLED");
    let poll = server.structured(POLL, json!({ "jobId": id })).await;
    assert_eq!(poll["status"], "CANCELLED");
    eventually("the provider is notified", || world.simulator.stats().cancels >= 1).await;
}

/// A3: a crash does not lose the duty to stop the remote run.
#[tokio::test]
async fn a3_a_pending_stop_survives_a_crash() {
    let world = World::new().await;
    let mut doomed = world.serve().await;
    let id = start(&mut doomed, "stuck").await;
    running(&world, &id).await;
    doomed.kill().await;
    let mut idle = world.serve_with(&["--no-worker"]).await;
    let cancelled = idle.structured(CANCEL, json!({ "jobId": id })).await;
    assert_eq!(cancelled["status"], "CANCELLED", "{cancelled}");
    idle.kill().await;
    assert_eq!(world.simulator.stats().cancels, 0);
    let _worker = world.serve().await;
    eventually("the next worker notifies the provider", || world.simulator.stats().cancels == 1)
        .await;
}

/// A3: a finished job keeps its status.
#[tokio::test]
async fn a3_a_cancel_of_a_finished_job_changes_nothing() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let id = start(&mut server, "ok;words=60;delay_ms=0").await;
    let ended = finished(&mut server, &id).await;
    let cancelled = server.structured(CANCEL, json!({ "jobId": id })).await;
    assert_eq!(cancelled, ended);
}

/// A4, E7, E15: anything that is not an id of the caller is NOT_FOUND, without an error.
#[tokio::test]
async fn a4_hostile_and_unknown_ids_are_not_found() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let long = "a".repeat(10_000);
    let ids = [
        "0123456789abcdef0123456789abcdef",
        "",
        "a",
        long.as_str(),
        "' OR 1=1; DROP TABLE jobs; --",
        "../../../../etc/passwd",
        "0123456789ABCDEF0123456789ABCDEF",
        "\u{1b}[31mred\u{0}",
    ];
    for id in ids {
        for tool in [POLL, CANCEL] {
            let answer = server.structured(tool, json!({ "jobId": id })).await;
            assert_eq!(answer["status"], "NOT_FOUND", "{tool} {id:?}");
            assert_eq!(answer["elapsedSec"], 0.0, "{tool} {id:?}");
            let echoed = answer["jobId"].as_str().unwrap();
            assert!(
                echoed.chars().count() <= 64 && !echoed.contains(['\u{1b}', '\0']),
                "{echoed:?}"
            );
            assert!(answer["message"].as_str().unwrap().contains("30 minutes"), "{answer}");
        }
    }
}

/// A7: a client that gives up on a call never stops the job.
#[tokio::test]
async fn a7_a_cancelled_poll_leaves_the_job_running() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let id = start(&mut server, "ok;words=60;hold=true").await;
    running(&world, &id).await;
    let poll = park_poll(&mut server, &id).await;
    server
        .notify("notifications/cancelled", json!({ "requestId": poll, "reason": "timeout" }))
        .await;
    server.request("ping", json!({})).await;
    world.simulator.release();
    let ended = finished(&mut server, &id).await;
    assert_eq!(ended["status"], "COMPLETED");
    assert_eq!(world.submits(), 1);
}

/// A10, E15: a submit answer without an id.
#[tokio::test]
async fn a10_an_answer_without_an_id_fails_the_job_and_is_not_retried() {
    assert_no_id_fails(&World::new().await).await;
}

/// Checks that an answer without an id fails the job, which is not retried.
pub(crate) async fn assert_no_id_fails(world: &World) {
    let mut server = world.serve().await;
    let id = start(&mut server, "no_id").await;
    let ended = finished(&mut server, &id).await;
    assert_eq!(ended["status"], "FAILED", "{ended}");
    assert!(ended["error"].as_str().unwrap().contains("no job id"), "{ended}");
    let posts = world.simulator.requests().iter().filter(|seen| seen.method == "POST").count();
    assert_eq!(posts, 1, "no retry");
    let shown = world.shown(&id).await;
    assert_ne!(shown["checkpoint"]["at"], "running", "no remote run is recorded");
}

/// A12: the instructions teach the flow; the server identifies itself.
#[tokio::test]
async fn a12_the_instructions_name_the_three_tools() {
    let world = World::new().await;
    let mut server = world.spawn(&["serve"]);
    let greeting = server.greet().await;
    assert_eq!(greeting["serverInfo"]["name"], "outlast");
    let instructions = greeting["instructions"].as_str().unwrap();
    for tool in [START, POLL, CANCEL] {
        assert!(instructions.contains(tool), "{instructions}");
    }
    assert!(instructions.split_whitespace().count() < 200);
}

/// tools.md: schemas that validate strictly, titles, annotations.
#[tokio::test]
async fn the_listed_tools_keep_their_contract() {
    let world = World::new().await;
    let mut server = world.serve_with(&["--tools", "research-jobs"]).await;
    let listed = server.request("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, [START, POLL, CANCEL]);
    for tool in tools {
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{tool}");
        assert_eq!(tool["outputSchema"]["type"], "object", "{tool}");
        assert!(tool["title"].is_string() && tool["annotations"].is_object(), "{tool}");
        assert!(!tool.to_string().contains("\"format\""), "formats make validators warn");
        let job_id = &tool["inputSchema"]["properties"]["jobId"];
        assert!(job_id.get("pattern").is_none() && job_id.get("maxLength").is_none(), "E7");
    }
    assert_eq!(tools[1]["annotations"]["readOnlyHint"], true);
    assert_eq!(tools[0]["annotations"]["readOnlyHint"], false);
    assert_eq!(tools[2]["annotations"]["idempotentHint"], true);
    let bytes = crate::support::bytes_for_a_model(&listed["result"]["tools"]);
    assert!(bytes < 6_000, "tools/list is sent with every conversation: {bytes} bytes");
}

/// tools.md: bad arguments are an error that a model can correct.
#[tokio::test]
async fn bad_arguments_name_the_field() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let cases = [
        (START, json!({}), "messages is missing"),
        (START, json!({ "messages": [] }), "messages must have 1 to 100 entries"),
        (START, json!({ "messages": [{ "role": "robot", "content": "x" }] }), "messages[0].role"),
        (START, json!({ "messages": [{ "role": "user" }] }), "messages[0].content is missing"),
        (START, json!({ "messages": [{ "role": "user", "content": " " }] }), "messages[0].content"),
        (
            START,
            json!({ "messages": [{ "role": "user", "content": "x" }], "reasoning_effort": "max" }),
            "reasoning_effort",
        ),
        (START, json!({ "messages": [{ "role": "user", "content": "x" }], "depth": 3 }), "depth"),
        (
            START,
            json!({ "messages": [{ "role": "user", "content": "x" }], "idempotency_key": "" }),
            "idempotency_key",
        ),
        (POLL, json!({}), "jobId is missing"),
        (POLL, json!({ "jobId": 7 }), "jobId"),
    ];
    for (tool, arguments, field) in cases {
        let result = server.call(tool, arguments.clone()).await;
        assert_eq!(result["isError"], true, "{tool} {arguments}");
        assert!(result.get("structuredContent").is_none(), "clients validate it");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(
            text.starts_with(&format!("VALIDATION_ERROR: {field}")),
            "{tool} {arguments}: {text}"
        );
        let meta = &result["_meta"]["outlast/error"];
        assert_eq!(meta["code"], "VALIDATION_ERROR");
        assert_eq!(meta["retryable"], false);
    }
    let unknown =
        server.request("tools/call", json!({ "name": "perplexity_dance", "arguments": {} })).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    assert_eq!(world.submits(), 0);
}

/// A wrong key ends the job at once, and its error names the setting to fix.
#[tokio::test]
async fn a5_a_wrong_key_fails_the_job_and_points_at_the_setting() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_API_KEY", "pplx-wrong");
    let mut server = world.serve().await;
    let id = start(&mut server, "ok").await;
    let ended = finished(&mut server, &id).await;
    assert_eq!(ended["status"], "FAILED");
    let error = ended["error"].as_str().unwrap();
    assert!(error.starts_with("UNAUTHORIZED: ") && error.contains("PERPLEXITY_API_KEY"), "{error}");
    assert!(!ended.to_string().contains("pplx-wrong"));
}

/// tools.md: never an upstream body or a key, neither to a client nor in the log.
#[tokio::test]
async fn a_secret_in_an_upstream_error_reaches_no_client() {
    let world = World::new().await;
    let mut server = world.serve().await;
    for scenario in
        ["http;status=400;secret=hunter2-pplx-abc123", "http;status=503;secret=hunter2-pplx-abc123"]
    {
        let id = start(&mut server, scenario).await;
        let ended = finished(&mut server, &id).await;
        assert_eq!(ended["status"], "FAILED", "{ended}");
        assert!(!ended["error"].to_string().contains("hunter2"), "{ended}");
        assert!(!ended["message"].to_string().contains("hunter2"), "{ended}");
    }
    server.close_input();
    let (_, log) = server.ended().await;
    assert!(!log.contains("pplx-abc123") && !log.contains("pplx-test"), "{log}");
}

/// B9: temporary refusals are retried; the run is paid for once.
#[tokio::test]
async fn b9_a_busy_provider_is_tried_again() {
    let world = World::new().await;
    let mut server = world.serve().await;
    for scenario in ["http;status=429;times=1;retry_after=0", "http;status=503;times=2"] {
        let before = world.submits();
        let id = start(&mut server, &format!("{scenario}|ok;words=60;delay_ms=0")).await;
        let ended = finished(&mut server, &id).await;
        assert_eq!(ended["status"], "COMPLETED", "{scenario}: {ended}");
        assert_eq!(world.submits(), before + 1, "{scenario}");
    }
}

/// B9a: a lost answer is not sent again.
#[tokio::test]
async fn b9a_a_dropped_submit_is_unknown_and_not_repeated() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let id = start(&mut server, "drop_submit").await;
    let ended = finished(&mut server, &id).await;
    assert_eq!(ended["status"], "FAILED", "{ended}");
    assert!(ended["error"].as_str().unwrap().starts_with("SUBMIT_UNKNOWN: "), "{ended}");
    assert_eq!(world.submits(), 1);
}

/// E8: over a limit there is a clear, retryable error with a wait; nothing is lost.
#[tokio::test]
async fn e8_limits_are_refused_with_a_wait() {
    let mut world = World::new().await;
    world.set("OUTLAST_MAX_JOBS_PER_OWNER", "1");
    world.set("OUTLAST_MAX_POLLS_PER_JOB", "1");
    let mut server = world.serve().await;
    let id = start(&mut server, "ok;words=60;hold=true").await;
    running(&world, &id).await;
    let refused = server.call(START, question("ok")).await;
    assert_eq!(refused["isError"], true);
    let error = &refused["_meta"]["outlast/error"];
    assert_eq!(
        (&error["code"], &error["retryable"]),
        (&json!("TOO_MANY_JOBS"), &json!(true)),
        "{refused}"
    );
    assert!(error["retry_after_seconds"].is_u64(), "{refused}");

    let poll = json!({ "name": POLL, "arguments": { "jobId": id } });
    // Either may be the first to wait for the job: the other is answered at once.
    let polls =
        [server.send("tools/call", poll.clone()).await, server.send("tools/call", poll).await];
    let refused = loop {
        let message = server.message().await.unwrap();
        if polls.iter().any(|poll| message["id"] == *poll) {
            break message;
        }
    };
    let code = &refused["result"]["_meta"]["outlast/error"]["code"];
    assert_eq!(*code, "TOO_MANY_POLLS", "{refused}");
    let [parked] = polls.into_iter().filter(|poll| refused["id"] != *poll).collect::<Vec<_>>()[..]
    else {
        panic!("one poll waits");
    };
    world.simulator.release();
    let answer = server.answer(parked).await.unwrap();
    assert_eq!(answer["result"]["structuredContent"]["status"], "COMPLETED", "{answer}");
    start(&mut server, "ok").await;
}

/// E9: the same key is the same job; another question under it is a conflict.
#[tokio::test]
async fn e9_an_idempotency_key_names_one_job() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let keyed = |scenario: &str| {
        let mut arguments = question(scenario);
        arguments["idempotency_key"] = json!("k-1");
        arguments
    };
    let first = server.structured(START, keyed("ok;words=60")).await;
    let second = server.structured(START, keyed("ok;words=60")).await;
    assert_eq!(first["jobId"], second["jobId"]);
    let conflict = server.call(START, keyed("ok;words=70")).await;
    assert_eq!(conflict["isError"], true);
    assert_eq!(conflict["_meta"]["outlast/error"]["code"], "IDEMPOTENCY_CONFLICT");
    finished(&mut server, first["jobId"].as_str().unwrap()).await;
    assert_eq!(world.submits(), 1);
}

/// Promise 7: the end of input, or SIGTERM, loses nothing and takes no time.
#[tokio::test]
async fn leaving_answers_parked_polls_and_gives_jobs_back() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let id = start(&mut server, "ok;words=60;hold=true").await;
    running(&world, &id).await;
    let poll = park_poll(&mut server, &id).await;
    server.request("ping", json!({})).await;
    server.signal(Signal::TERM);
    let answer = server.answer(poll).await.expect("a parked poll is answered");
    assert_eq!(answer["result"]["structuredContent"]["status"], "IN_PROGRESS", "{answer}");
    let (status, log) = server.ended().await;
    assert_eq!(status.code(), Some(0), "{log}");

    let mut next = world.serve().await;
    world.simulator.release();
    let ended = finished(&mut next, &id).await;
    assert_eq!(ended["status"], "COMPLETED");
    assert_eq!(world.submits(), 1);
    next.close_input();
    let (status, log) = next.ended().await;
    assert_eq!(status.code(), Some(0), "{log}");
}

/// Promise 1: a client that writes calls and closes the pipe still gets every answer, including ids.
#[tokio::test]
async fn calls_sent_before_the_end_of_input_are_answered() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let start = json!({ "name": START, "arguments": question("stuck") });
    let first = server.send("tools/call", start.clone()).await;
    let poll = json!({ "name": POLL, "arguments": { "jobId": "nope" } });
    let second = server.send("tools/call", poll).await;
    server.close_input();
    let started = server.answer(first).await.expect("the start is answered");
    assert!(started["result"]["structuredContent"]["jobId"].is_string(), "{started}");
    let polled = server.answer(second).await.expect("the poll is answered");
    assert_eq!(polled["result"]["structuredContent"]["status"], "NOT_FOUND", "{polled}");
    let (status, log) = server.ended().await;
    assert_eq!(status.code(), Some(0), "{log}");
}

/// The end of input before a greeting is a normal end.
#[tokio::test]
async fn an_end_of_input_before_the_greeting_is_no_failure() {
    let world = World::new().await;
    let mut server = world.spawn(&["serve"]);
    server.close_input();
    let (status, log) = server.ended().await;
    assert_eq!(status.code(), Some(0), "{log}");
}

/// A client of the stateless era works on the same pipe.
#[tokio::test]
async fn a_client_of_2026_07_28_needs_no_greeting() {
    let world = World::new().await;
    let mut server = world.spawn(&["serve"]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "testkit", "version": "0" }
    });
    let discovered = server.request("server/discover", json!({ "_meta": meta })).await;
    assert!(
        discovered["result"]["supportedVersions"].to_string().contains("2026-07-28"),
        "{discovered}"
    );
    let arguments = question("ok;words=60;delay_ms=0");
    let call = json!({ "name": START, "arguments": arguments, "_meta": meta });
    let started = server.request("tools/call", call).await;
    assert_eq!(started["result"]["resultType"], "complete", "{started}");
    let id = started["result"]["structuredContent"]["jobId"].clone();
    let poll = json!({ "name": POLL, "arguments": { "jobId": id }, "_meta": meta });
    let ended = server.request("tools/call", poll).await;
    assert_eq!(ended["result"]["structuredContent"]["status"], "COMPLETED", "{ended}");
}
