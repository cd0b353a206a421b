//! Bad input, hostile ids, other people's conversations.

use super::*;

/// tools.md: bad arguments name their field; nothing is sent for them.
#[tokio::test]
async fn bad_arguments_name_the_field() {
    let (world, mut client) = queueing().await;
    let long = "x".repeat(10_001);
    let many: Vec<String> = (0..21).map(|n| format!("d{n}.example")).collect();
    let ids = vec!["0123456789abcdef"; 101];
    let cases = [
        (DEEP, json!({}), "query is missing"),
        (DEEP, json!({ "query": "" }), "query must not be empty"),
        (DEEP, json!({ "query": " \n" }), "query must not be empty"),
        (DEEP, json!({ "query": long }), "query must have 1 to 10000 characters, not 10001"),
        (DEEP, json!({ "query": 7 }), "query"),
        (DEEP, json!({ "query": "x", "reasoning_effort": "minimal" }), "reasoning_effort"),
        (DEEP, json!({ "query": "x", "priority": 101 }), "priority must be -100 to 100, not 101"),
        (DEEP, json!({ "query": "x", "priority": -101 }), "priority"),
        (DEEP, json!({ "query": "x", "priority": "high" }), "priority"),
        (DEEP, json!({ "query": "x", "idempotency_key": "" }), "idempotency_key"),
        (DEEP, json!({ "query": "x", "idempotency_key": "k".repeat(201) }), "idempotency_key"),
        (DEEP, json!({ "query": "x", "conversationId": "abcdefgh" }), "conversationId"),
        (DEEP_FOLLOWUP, json!({ "query": "x" }), "conversationId is missing"),
        (DEEP_FOLLOWUP, json!({ "query": "x", "conversationId": 7 }), "conversationId"),
        (
            SEARCH,
            json!({ "query": "x", "search_recency_filter": "decade" }),
            "search_recency_filter",
        ),
        (SEARCH, json!({ "query": "x", "search_mode": "dark" }), "search_mode"),
        (
            SEARCH,
            json!({ "query": "x", "search_domain_filter": many }),
            "search_domain_filter must have 20",
        ),
        (
            SEARCH,
            json!({ "query": "x", "search_domain_filter": ["a.example", "-b.example"] }),
            "search_domain_filter must either",
        ),
        (
            SEARCH,
            json!({ "query": "x", "search_after_date_filter": "2026-01-01" }),
            "search_after_date_filter",
        ),
        (
            SEARCH,
            json!({ "query": "x", "search_before_date_filter": "02/30/2026" }),
            "search_before_date_filter",
        ),
        (SEARCH_FOLLOWUP, json!({ "query": "x" }), "conversationId is missing"),
        (HISTORY, json!({}), "conversationId is missing"),
        (HISTORY, json!({ "conversationId": 7 }), "conversationId"),
        (HISTORY, json!({ "conversationId": [] }), "conversationId must have 1 to 100"),
        (HISTORIES, json!({ "conversationIds": [] }), "conversationIds must have 1 to 100"),
        (HISTORIES, json!({ "conversationIds": ids }), "conversationIds must have 1 to 100"),
        (AWAIT, json!({ "conversationIds": "x" }), "conversationIds"),
        (LIST, json!({ "limit": 0 }), "limit must be 1 to 100, not 0"),
        (LIST, json!({ "limit": 101 }), "limit"),
        (LIST, json!({ "status": "lost" }), "status"),
        (LIST, json!({ "cursor": "x" }), "cursor"),
    ];
    for (tool, arguments, field) in cases {
        let (code, sentence) = client.refused(tool, arguments.clone()).await;
        assert_eq!(code, "VALIDATION_ERROR", "{tool} {arguments}");
        assert!(sentence.starts_with(field), "{tool} {arguments}: {sentence}");
    }
    assert_eq!(submitted(&world).len(), 0);
    assert_eq!(client.ok(LIST, json!({})).await.shape["conversations"], json!([]));
}

/// E7, defects B14 and B15 of the older server: a hostile id is an unknown one, and no answer shows a path or a trace.
#[tokio::test]
async fn e7_hostile_and_unknown_ids_are_not_found() {
    let (world, mut client) = queueing().await;
    let bait = world.data_dir().join("bait");
    std::fs::create_dir_all(&bait).unwrap();
    std::fs::write(bait.join("status.json"), r#"{"status":"completed"}"#).unwrap();
    let long = "a".repeat(10_000);
    let absolute = bait.to_str().unwrap().to_owned();
    let ids = [
        "0123456789abcdef0123456789abcdef",
        "",
        "a",
        &long,
        "' OR 1=1; DROP TABLE jobs; --",
        "../../../../etc/passwd",
        "../bait",
        &absolute,
        "..",
        "%2e%2e%2fbait",
        "\u{1b}[31mred\u{0}",
        "conversation\u{2028}s",
    ];
    for id in ids {
        for tool in [HISTORY, DEEP_FOLLOWUP, SEARCH_FOLLOWUP] {
            let mut arguments = json!({ "conversationId": id });
            if tool != HISTORY {
                arguments["query"] = json!("x");
            }
            let result = client.server.call(tool, arguments).await;
            let text = result["content"][0]["text"].as_str().unwrap();
            assert!(text.starts_with("CONVERSATION_NOT_FOUND: "), "{tool} {id:?}: {text}");
            assert!(text.contains(LIST), "says what to do: {text}");
            assert!(text.len() < 400 && !text.contains(['\u{1b}', '\0']), "{text:?}");
        }
        for tool in [HISTORIES, AWAIT] {
            let batch = client.ok(tool, json!({ "conversationIds": [id] })).await.shape;
            let entry = batch.as_object().unwrap().values().next().unwrap();
            let code = entry["error"]["code"].as_str().unwrap();
            let expected = if id.len() == 32 { "NOT_FOUND" } else { "INVALID_ID" };
            assert_eq!(code, expected, "{tool} {id:?}");
        }
    }
    assert_eq!(submitted(&world).len(), 0);
}

/// E7: another owner's conversation behaves like an unknown one.
#[tokio::test]
async fn e7_a_foreign_conversation_is_an_unknown_one() {
    let (mut world, mut mine) = queueing().await;
    let id = mine.queue(QUICK).await;
    mine.ended(&id).await;
    world.set("OUTLAST_OWNER", "another-owner");
    let mut theirs = Client::of(world.serve().await).await;
    let (code, sentence) = theirs.refused(HISTORY, json!({ "conversationId": id })).await;
    let unknown = "f".repeat(32);
    let (_, other) = theirs.refused(HISTORY, json!({ "conversationId": unknown })).await;
    assert_eq!(code, "CONVERSATION_NOT_FOUND");
    assert_eq!(sentence.replace(&id, &unknown), other, "they cannot be distinguished");
    let (code, _) = theirs.refused(DEEP_FOLLOWUP, followup(&id, QUICK)).await;
    assert_eq!(code, "CONVERSATION_NOT_FOUND");
    let batch = theirs.ok(HISTORIES, json!({ "conversationIds": [id] })).await.shape;
    assert_eq!(batch[&id]["error"]["code"], "NOT_FOUND");
    assert_eq!(theirs.ok(LIST, json!({})).await.shape["conversations"], json!([]));
    assert_eq!(mine.history(&id).await.shape["status"], "completed");
}

/// tools.md: no upstream body or key in any answer about a failed question.
#[tokio::test]
async fn a_secret_in_an_upstream_error_reaches_no_history() {
    let (_world, mut client) = queueing().await;
    for status in [400, 503] {
        let id = client.queue(&format!("http;status={status};secret=hunter2-pplx-abc123")).await;
        let history = client.ended(&id).await;
        let mut said = history.text.clone();
        said.push_str(&history.shape.to_string());
        // The question itself contains the marker; the text about the error must not.
        let said = said.replace("secret=hunter2-pplx-abc123", "");
        assert!(!said.contains("hunter2") && !said.contains("abc123"), "{said}");
        assert!(!said.contains("panicked") && !said.contains("stack"), "{said}");
    }
}
