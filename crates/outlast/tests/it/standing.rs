//! The standing of an unfinished job (P4): true, and the same sentence in every interface.

use outlast_testkit::mcp_process::McpProcess;
use serde_json::{Value, json};

use crate::support::{POLL, START, World, question, running, start};

/// Returns the messages of progress notes up to one that fits.
async fn noted(server: &mut McpProcess, fits: impl Fn(&str) -> bool) -> String {
    let mut seen = Vec::new();
    loop {
        let message = server.message().await.unwrap_or_else(|| panic!("never: {seen:?}"));
        if message["method"] != "notifications/progress" {
            continue;
        }
        let text = message["params"]["message"].as_str().unwrap_or_default().to_owned();
        if fits(&text) {
            return text;
        }
        seen.push(text);
    }
}

/// P4: a silent run is not reported as waiting for a worker.
#[tokio::test]
async fn p4_a_silent_run_is_never_said_to_wait_for_a_worker() {
    let world = World::new().await;
    let file = world.data_dir().parent().unwrap().join("outlast.toml");
    let (ready, go) = (file.with_file_name("ready"), file.with_file_name("go"));
    let script =
        format!("touch {}; until [ -e {} ]; do sleep 0.02; done", ready.display(), go.display());
    let text = format!("[[workflow]]\nname = \"silent\"\ncommand = [\"sh\", \"-c\", {script:?}]\n");
    std::fs::write(&file, text).unwrap();
    let mut server = world.serve_with(&["--config", file.to_str().unwrap()]).await;
    let call = json!({ "name": "silent", "arguments": {}, "_meta": { "progressToken": "p" } });
    let call = server.send("tools/call", call).await;
    let running = noted(&mut server, |text| text.starts_with("Running")).await;
    assert_eq!(running, "Running");
    std::fs::write(&go, "").unwrap();
    assert_ne!(server.answer(call).await.unwrap()["result"]["isError"], true);
}

/// P4: without a running worker every interface reports it in the same words, and none claims that the job continues.
#[tokio::test]
async fn p4_without_a_worker_every_interface_says_so_in_the_same_words() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_ENABLE_ASYNC_DEEP_RESEARCH", "true");
    world.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "50");
    world.set("OUTLAST_TOOLS", "research,research-jobs,jobs");
    let mut server = world.serve_with(&["--no-worker"]).await;
    let asked = json!({ "query": "Why is the sky blue? [[sim:ok;words=60;delay_ms=0]]" });
    let conversation = server.call("perplexity_deep_research", asked).await;
    let conversation =
        conversation["structuredContent"]["conversationId"].as_str().unwrap().to_owned();
    let id = start(&mut server, "ok;words=60;delay_ms=0").await;
    let short: String = id.chars().take(8).collect();

    let expected = "no live worker has the provider and key it was asked with; `outlast serve` or `outlast worker` \
                    with the same settings would run it";
    let said =
        |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").contains(expected);
    let history =
        server.call("get_conversation_history", json!({ "conversationId": conversation })).await;
    let history = history["structuredContent"].clone();
    assert!(said(history["statusMessage"].as_str().unwrap()), "{history}");
    assert!(said(history["progress"]["message"].as_str().unwrap()), "{history}");
    let poll = server.structured(POLL, json!({ "jobId": id })).await;
    assert!(said(poll["message"].as_str().unwrap()), "{poll}");
    let job = server.structured("get_job", json!({ "job_id": id, "wait_seconds": 0 })).await;
    assert!(said(job["user_message"].as_str().unwrap()), "{job}");
    assert!(said(job["next_instruction_for_model"].as_str().unwrap()), "{job}");
    let token =
        json!({ "name": POLL, "arguments": { "jobId": id }, "_meta": { "progressToken": "p" } });
    server.send("tools/call", token).await;
    noted(&mut server, said).await;

    let waited = world.run(&["jobs", "wait", &short, "--timeout", "50ms"]).await;
    assert!(waited.code == Some(3) && said(&waited.stderr), "{waited:?}");
    assert!(!waited.stderr.contains("goes on") && !waited.stderr.contains("go on"), "{waited:?}");
    let shown = world.run(&["jobs", "show", &short]).await;
    assert!(said(&shown.stdout), "{shown:?}");
}

/// P4: a job whose worker was killed is reported neither as running nor as continuing.
#[tokio::test]
async fn p4_a_killed_worker_s_job_is_not_said_to_go_on() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let id = start(&mut server, "stuck").await;
    running(&world, &id).await;
    let alive = world.run(&["jobs", "wait", &id, "--timeout", "50ms"]).await;
    assert!(alive.code == Some(3) && alive.stderr.contains("it goes on"), "{alive:?}");
    let listed = world.run(&["jobs", "list"]).await;
    assert!(listed.stdout.contains("running"), "{listed:?}");
    server.kill().await;
    let listed = world.run(&["jobs", "list"]).await;
    assert!(listed.stdout.contains("queued") && !listed.stdout.contains("running"), "{listed:?}");
    let shown = world.run(&["jobs", "show", &id]).await;
    assert!(shown.stdout.contains("no live worker"), "{shown:?}");
    let dead = world.run(&["jobs", "wait", &id, "--timeout", "50ms"]).await;
    assert!(dead.code == Some(3) && dead.stderr.contains("no live worker"), "{dead:?}");
    assert!(!dead.stderr.contains("goes on"), "{dead:?}");
}

/// P4: the last attempt's failure and the time of the next one, in every interface.
#[tokio::test]
async fn p4_what_failed_last_and_when_the_next_try_comes_is_said_everywhere() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_RETRY_BASE_MS", "600000");
    world.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "50");
    world.set("OUTLAST_TOOLS", "research-jobs,jobs");
    let mut server = world.serve().await;
    let started = server.structured(START, question("503x2|ok;words=60;delay_ms=0")).await;
    let id = started["jobId"].as_str().unwrap().to_owned();
    server.logged("outcome=\"retry\"").await;
    let poll: Value = server.structured(POLL, json!({ "jobId": id })).await;
    let job = server.structured("get_job", json!({ "job_id": id, "wait_seconds": 0 })).await;
    let shown = world.run(&["jobs", "show", &id]).await;
    for text in
        [poll["message"].as_str().unwrap(), job["user_message"].as_str().unwrap(), &shown.stdout]
    {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("it waits for its next try at 2"), "{text}");
        assert!(text.contains("; attempt 2, after SERVICE_UNAVAILABLE: "), "{text}");
    }
}
