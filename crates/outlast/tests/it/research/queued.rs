//! B: deep research that is queued and polled.

use std::collections::BTreeSet;

use super::*;

fn notice(first: &str, id: &str) -> String {
    format!(
        "{first}\n\
         Conversation ID: `{id}`\n\
         Deep research query has been queued for background processing.\n\
         \n\
         **To check status and retrieve results:**\n\
         Use the `get_conversation_history` tool with this conversation ID.\n\
         The system will process your query in the background and stream results as they become available."
    )
}

/// B2: the notice, word for word, for a first question and a follow-up.
#[tokio::test]
async fn b2_a_submit_is_answered_with_the_notice() {
    let (_world, mut client) = queueing().await;
    let queued = client.ok(DEEP, query(QUICK)).await;
    let id = id_of(&queued);
    let first = notice("🆕 **New Conversation Started**", &id);
    assert!(queued.text.starts_with(&format!("{first}\n")), "{}", queued.text);
    assert_eq!(queued.shape["rawResultText"], queued.text);
    assert_eq!(queued.shape["responseId"], "queued");
    assert_eq!(queued.shape["status"], "pending");
    assert_eq!(queued.shape["searchResults"], json!([]));
    let zeros = json!({ "prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0 });
    assert_eq!(queued.shape["usage"], zeros);
    assert!(["estimate", "unknown"].contains(&queued.shape["cost"]["kind"].as_str().unwrap()));
    assert!(queued.text.contains("Estimated cost: "), "C10: {}", queued.text);
    client.ended(&id).await;

    let again = client.ok(DEEP_FOLLOWUP, followup(&id, QUICK)).await;
    let first = notice("🔁 **Conversation Continued**", &id);
    assert!(again.text.starts_with(&format!("{first}\n")), "{}", again.text);
    assert_eq!(client.ended(&id).await.shape["messageCount"], 4);
}

/// B2: the answer never waits for a silent upstream.
#[tokio::test]
async fn b2_a_submit_never_waits_on_the_upstream() {
    let mut world = World::new().await;
    world.set(SWITCH, "true");
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    world.set("PERPLEXITY_BASE_URL", &format!("http://{}", silent.local_addr().unwrap()));
    let mut client = Client::of(world.serve().await).await;
    client.queue("ok").await;
}

/// Defect B2 of the older server: a burst of submits gives as many conversations, and overwrites none.
#[tokio::test]
async fn b2_a_burst_gives_every_question_its_own_conversation() {
    let (_world, mut client) = queueing().await;
    let mut calls = Vec::new();
    for n in 0..60 {
        let arguments = json!({ "query": format!("Question {n}? [[sim:{QUICK}]]") });
        calls.push(client.send(DEEP, arguments, None).await);
    }
    let mut ids = Vec::new();
    for call in calls {
        ids.push(id_of(&client.answer(DEEP, call).await));
    }
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 60);
    for (n, id) in ids.iter().enumerate() {
        let history = client.ended(id).await;
        let asked = history.shape["messages"][0]["content"].as_str().unwrap();
        assert!(asked.starts_with(&format!("Question {n}?")), "{asked}");
        assert_eq!(history.shape["messageCount"], 2);
    }
}

/// B5, B6: a running job shows its progress; 0 while pending, at least 25 while running, 100 at the end, never
/// decreasing.
#[tokio::test]
async fn b5_progress_is_shown_and_never_goes_down() {
    let (world, mut client) = queueing_with(&[("OUTLAST_CONCURRENCY", "1")]).await;
    let first = client.queue("ok;words=400;hold=true").await;
    let waiting = client.queue("ok;words=60").await;
    let running = client.until(&first, |history| history["status"] == "in_progress").await;
    let progress = &running.shape["progress"];
    assert!(progress["percentage"].as_u64().unwrap() >= 25, "{progress}");
    assert!(progress["message"].is_string() && progress["elapsedMs"].is_u64(), "{progress}");
    assert!(progress.get("attempt").is_none(), "the first try has no number: {progress}");
    let message = running.shape["statusMessage"].as_str().unwrap();
    assert!(message.contains(" %)") && message.contains("Elapsed: "), "{message}");
    assert!(running.text.starts_with(message));
    let pending = client.history(&waiting).await;
    assert_eq!(pending.shape["status"], "pending");
    assert_eq!(pending.shape["progress"]["percentage"], 0);
    assert!(pending.text.contains("waits for its turn"), "{}", pending.text);

    release(&world, 1).await;
    let mut highest = 0;
    loop {
        let history = client.history(&first).await.shape;
        let percentage = history["progress"]["percentage"].as_u64().unwrap();
        assert!(percentage >= highest, "{percentage} after {highest}");
        highest = percentage;
        if history["status"] == "completed" {
            break;
        }
    }
    assert_eq!(highest, 100);
}

/// B6: the provider's events change message and percentage.
#[tokio::test]
async fn b6_real_signals_move_the_progress() {
    let (world, mut client) = queueing().await;
    let id = client.queue("ok;words=60;hold=true").await;
    let moved = |history: &Value| history["progress"]["percentage"].as_u64() > Some(25);
    let history = client.until(&id, moved).await;
    assert_ne!(history.shape["progress"]["message"], "Querying Perplexity API...");
    release(&world, 1).await;
    assert_eq!(client.ended(&id).await.shape["progress"]["percentage"], 100);
}

/// B7: jobs run concurrently up to the capacity, the rest waits, and an error affects no other.
#[tokio::test]
async fn b7_jobs_run_side_by_side_up_to_capacity() {
    let (world, mut client) = queueing().await;
    let mut held = Vec::new();
    for n in 0..7 {
        let scenario = format!("ok;words={};hold=true", 60 + n);
        held.push(client.queue(&scenario).await);
    }
    eventually("five are at the provider", || world.submits() == 5).await;
    let mut words = Vec::new();
    for id in &held {
        let history = client.history(id).await.shape;
        words.push(history["status"].as_str().unwrap().to_owned());
    }
    assert_eq!(words.iter().filter(|word| *word == "in_progress").count(), 5, "{words:?}");
    assert_eq!(words.iter().filter(|word| *word == "pending").count(), 2, "{words:?}");
    assert_eq!(world.submits(), 5, "no more than there is room for");
    let bad = client.queue("http;status=400").await;
    release(&world, 5).await;
    assert_eq!(client.ended(&bad).await.shape["status"], "failed");
    release(&world, 7).await;
    for id in held {
        assert_eq!(client.ended(&id).await.shape["status"], "completed");
    }
}

/// B8: highest priority first, then oldest first.
#[tokio::test]
async fn b8_priority_first_then_age() {
    let mut world = World::new().await;
    world.set(SWITCH, "true");
    let mut idle = Client::of(world.serve_with(&["--no-worker"]).await).await;
    let mut ids = Vec::new();
    for (name, priority) in [("first", 0), ("second", 0), ("urgent", 5), ("late", -3)] {
        let question = format!("{name} [[sim:{QUICK}]]");
        let queued = idle.ok(DEEP, json!({ "query": question, "priority": priority })).await;
        ids.push(id_of(&queued));
    }
    let waiting = idle.history(&ids[0]).await;
    assert!(waiting.text.contains("outlast worker"), "says why it waits: {}", waiting.text);
    world.set("OUTLAST_CONCURRENCY", "1");
    let mut client = Client::of(world.serve().await).await;
    for id in &ids {
        client.ended(id).await;
    }
    let runs = world.simulator.stats().runs;
    let order: Vec<&str> = runs.iter().map(|run| run.submitted_input.as_str()).collect();
    assert_eq!(order, ["urgent", "first", "second", "late"]);
}

/// B15: the log has the history of a job.
#[tokio::test]
async fn b15_the_log_has_the_life_of_a_job() {
    let (_world, mut client) = queueing().await;
    let good = client.queue(QUICK).await;
    client.ended(&good).await;
    let bad = client.queue("http;status=400").await;
    client.ended(&bad).await;
    let retried = client.queue(&format!("http;status=503;times=1|{QUICK}")).await;
    client.ended(&retried).await;
    client.server.close_input();
    let (_, log) = client.server.ended().await;
    let has = |needles: &[&str]| {
        log.lines().any(|line| needles.iter().all(|needle| line.contains(needle)))
    };
    let tool = "tool=\"perplexity_deep_research\"";
    assert!(has(&["Job enqueued", &good, tool]), "{log}");
    assert!(has(&["Job dequeued", "job.id=", &good, tool, "priority=0"]), "{log}");
    let figures = ["duration_ms=", "tokens=", "cost=", "retries=0"];
    assert!(has(&[&["Job completed", &good, tool][..], &figures].concat()), "{log}");
    assert!(has(&["Job completed", &retried, tool, "retries=1"]), "{log}");
    assert!(has(&["Job failed", &bad, tool, "error=", "outcome=\"permanent\""]), "{log}");
    assert!(has(&["Job failed", &retried, tool, "outcome=\"retry\""]), "{log}");
    assert!(!log.contains("Why is the sky blue"), "no questions at info: {log}");
}

/// P8: every tool has its own name in the log, and a conversation's events are found by its id.
#[tokio::test]
async fn p8_log_lines_have_the_conversation_and_the_tool_s_own_name() {
    let mut world = World::new().await;
    world.set("OUTLAST_TOOLS", "perplexity,research,research-jobs,jobs");
    let mut server = world.serve().await;
    let query = format!("Why is the sky blue? [[sim:{QUICK}]]");
    let messages = json!([{ "role": "user", "content": query }]);
    let first = server.call(DEEP, json!({ "query": query })).await;
    let id = first["structuredContent"]["conversationId"].as_str().unwrap().to_owned();
    let followup = json!({ "conversationId": id, "query": query });
    let started = json!({ "workflow": "deep_research", "message": query });
    let cancelled = server.structured(crate::support::START, json!({ "messages": messages })).await;
    let cancelled = json!({ "jobId": cancelled["jobId"] });
    for (tool, arguments) in [
        (DEEP_FOLLOWUP, followup.clone()),
        (SEARCH_FOLLOWUP, followup),
        ("perplexity_ask", json!({ "messages": messages })),
        ("start_job", started),
        (crate::support::CANCEL, cancelled),
    ] {
        let result = server.call(tool, arguments).await;
        assert_ne!(result["isError"], true, "{tool}: {result}");
    }
    let line = |what: &str, tool: &str| format!("{what} {tool}");
    let log = server.log();
    let lines: Vec<_> = log.lines().filter(|line| line.contains("Job ")).collect();
    for tool in [DEEP, DEEP_FOLLOWUP, SEARCH_FOLLOWUP] {
        for what in ["Job enqueued", "Job dequeued", "Job completed"] {
            let named = format!("tool=\"{tool}\"");
            let told = lines
                .iter()
                .any(|line| line.contains(what) && line.contains(&named) && line.contains(&id));
            assert!(told, "{}: {log}", line(what, tool));
        }
    }
    for tool in ["perplexity_ask", "start_job", "perplexity_research_start"] {
        let named = format!("tool=\"{tool}\"");
        let told = lines.iter().any(|line| line.contains("Job enqueued") && line.contains(&named));
        assert!(told, "{tool}: {log}");
    }
}

/// Defect B6 of the older server: sources, usage, model and cost of queued research can be read.
#[tokio::test]
async fn c9_queued_research_keeps_sources_usage_and_cost() {
    let (_world, mut client) = queueing().await;
    let id = client.queue("ok;words=100;sources=3;delay_ms=0").await;
    let history = client.ended(&id).await;
    let shape = &history.shape;
    assert_eq!(shape["searchResults"].as_array().unwrap().len(), 3);
    assert!(shape["usage"]["total_tokens"].as_u64().unwrap() > 0);
    assert_eq!(shape["cost"]["kind"], "reported");
    assert!(shape["reportCheck"]["words"].as_u64().unwrap() > 0);
    assert!(history.text.contains("\nSources:\n[1] "), "{}", history.text);
    assert!(history.text.contains("Cost: $") && history.text.contains("Model: "));
}

/// E9: the same key is the same conversation, in its present state.
#[tokio::test]
async fn an_idempotency_key_names_one_conversation() {
    let (world, mut client) = queueing().await;
    let keyed = |scenario: &str| {
        let mut arguments = query(scenario);
        arguments["idempotency_key"] = json!("k-1");
        arguments
    };
    let first = client.ok(DEEP, keyed("ok;words=60;hold=true")).await;
    let second = client.ok(DEEP, keyed("ok;words=60;hold=true")).await;
    assert_eq!(id_of(&first), id_of(&second));
    let (code, _) = client.refused(DEEP, keyed(QUICK)).await;
    assert_eq!(code, "IDEMPOTENCY_CONFLICT");
    release(&world, 1).await;
    client.ended(&id_of(&first)).await;
    let third = client.ok(DEEP, keyed("ok;words=60;hold=true")).await;
    assert_eq!((&third.shape["status"], id_of(&third)), (&json!("completed"), id_of(&first)));
    assert_eq!(world.submits(), 1);
    // Start tools never attach without a key.
    let one = client.queue(QUICK).await;
    let other = client.queue(QUICK).await;
    assert_ne!(one, other);
}
