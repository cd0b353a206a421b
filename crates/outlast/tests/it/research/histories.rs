//! B16, B17: reading, awaiting and listing several conversations.

use super::*;

const UNKNOWN: &str = "0123456789abcdef0123456789abcdef";

/// B16, defect B8 of the older server: every id is present, in the right shape; an invalid one affects no other.
#[tokio::test]
async fn b16_a_batch_has_every_id_whatever_became_of_it() {
    let (_world, mut client) = queueing().await;
    let good = client.queue(QUICK).await;
    client.ended(&good).await;
    let bad = client.queue("http;status=400").await;
    client.ended(&bad).await;
    let open = client.queue("stuck").await;
    client.until(&open, |history| history["status"] == "in_progress").await;
    let ids = json!([good, bad, open, UNKNOWN, "../../etc/passwd"]);
    let asked = [(HISTORIES, "conversationIds"), (HISTORY, "conversationId")];
    for (tool, field) in asked {
        let answer = client.ok(tool, json!({ field: ids })).await;
        let batch = &answer.shape;
        assert_eq!(batch.as_object().unwrap().len(), 5, "{tool}: {batch}");
        assert_eq!(batch[&good]["conversation"]["messageCount"], 2);
        assert_eq!(batch[&good]["status"]["status"], "completed");
        assert!(batch[&good]["status"]["completedAt"].is_string());
        assert_eq!(batch[&good]["progress"]["percentage"], 100);
        assert_eq!(batch[&bad]["status"]["status"], "failed");
        assert_eq!(batch[&bad]["status"]["error"]["code"], "EXECUTION_ERROR");
        assert!(batch[&bad].get("error").is_none(), "a failed job was found all the same");
        assert_eq!(batch[&open]["status"]["status"], "in_progress");
        assert!(batch[&open]["progress"]["percentage"].as_u64().unwrap() >= 25);
        assert_eq!(batch[UNKNOWN]["error"]["code"], "NOT_FOUND");
        assert_eq!(batch["../../etc/passwd"]["error"]["code"], "INVALID_ID");
        let report = batch[&good]["conversation"]["messages"][1]["content"].as_str().unwrap();
        assert!(answer.text.contains(report), "the text is complete on its own");
        assert!(answer.text.contains("3 read, 2 not found or not readable, 1 not yet ended"));
    }
}

/// B16: await answers when all are terminal or unknown.
#[tokio::test]
async fn b16_await_answers_when_all_have_ended() {
    let (world, mut client) = queueing().await;
    let slow = client.queue("ok;words=60;hold=true").await;
    let bad = client.queue("http;status=400").await;
    let ids = json!({ "conversationIds": [slow, bad, UNKNOWN, "no"] });
    let call = client.send(AWAIT, ids, None).await;
    client.until(&slow, |history| history["status"] == "in_progress").await;
    let answered = client.server.seen.iter().any(|message| message["id"] == call);
    assert!(!answered, "one is still running");
    release(&world, 1).await;
    let answer = client.answer(AWAIT, call).await;
    assert_eq!(answer.shape[&slow]["status"]["status"], "completed");
    assert_eq!(answer.shape[&bad]["status"]["status"], "failed");
    assert_eq!(answer.shape[UNKNOWN]["error"]["code"], "NOT_FOUND");
    assert!(!answer.text.contains("again with the same ids"), "{}", answer.text);
}

/// B16: without a progress token the wait ends with the inline budget, and asks to call again.
#[tokio::test]
async fn b16_await_without_a_token_ends_with_the_budget() {
    let (world, mut client) = queueing_with(&[("OUTLAST_INLINE_BUDGET_MS", "50")]).await;
    let id = client.queue("ok;words=60;hold=true").await;
    let ids = json!({ "conversationIds": [id] });
    let answer = client.ok(AWAIT, ids.clone()).await;
    assert!(
        ["pending", "in_progress"]
            .contains(&answer.shape[&id]["status"]["status"].as_str().unwrap())
    );
    assert!(
        answer.text.contains(&format!("Call `{AWAIT}` again with the same ids")),
        "{}",
        answer.text
    );

    // With a token it continues beyond the budget.
    let call = client.send(AWAIT, ids, Some("t")).await;
    for _ in 0..3 {
        client.ok(AWAIT, json!({ "conversationIds": [id] })).await;
    }
    assert!(!client.server.seen.iter().any(|message| message["id"] == call));
    release(&world, 1).await;
    let answer = client.answer(AWAIT, call).await;
    assert_eq!(answer.shape[&id]["status"]["status"], "completed");
    assert_eq!(world.submits(), 1, "waiting starts nothing");
}

/// Returns the progress notes for this token.
fn notes(client: &Client, token: &str) -> Vec<f64> {
    let seen = client.server.seen.iter();
    let notes = seen.filter(|message| message["params"]["progressToken"] == token);
    notes.map(|note| note["params"]["progress"].as_f64().unwrap()).collect()
}

/// B16, defect B13 of the older server: progress is sent, rising; a cancelled wait ends at once and harms nothing.
#[tokio::test]
async fn b16_await_sends_progress_and_ends_when_cancelled() {
    let (world, mut client) = queueing().await;
    let id = client.queue("ok;words=60;hold=true").await;
    let ids = json!({ "conversationIds": [id] });
    let call = client.send(AWAIT, ids.clone(), Some("t-1")).await;
    while notes(&client, "t-1").is_empty() {
        client.server.message().await.unwrap();
    }
    client.give_up(call).await;
    let call = client.send(AWAIT, ids, Some("t-2")).await;
    release(&world, 1).await;
    client.answer(AWAIT, call).await;
    for token in ["t-1", "t-2"] {
        let notes = notes(&client, token);
        assert!(notes.is_sorted_by(|earlier, later| earlier < later), "{token}: {notes:?}");
    }
    assert_eq!(client.ended(&id).await.shape["status"], "completed");
    assert_eq!(world.submits(), 1);
}

/// A9: a held call with a token gets rising progress before its answer, one without gets none.
#[tokio::test]
async fn a9_a_held_call_with_a_token_receives_progress() {
    let (world, mut client) = blocking().await;
    let call = client.send(DEEP, query("ok;words=60;hold=true"), Some("t")).await;
    while notes(&client, "t").is_empty() {
        client.server.message().await.unwrap();
    }
    release(&world, 1).await;
    client.answer(DEEP, call).await;
    let reported = notes(&client, "t");
    assert!(reported.is_sorted_by(|earlier, later| earlier < later), "{reported:?}");
    client.ok(DEEP, query(QUICK)).await;
    let strays = client.server.seen.iter().filter(|message| {
        message["method"] == "notifications/progress" && message["params"]["progressToken"] != "t"
    });
    assert_eq!(strays.count(), 0);
}

/// B17: conversations are listed newest first, page by page, by status, and only those that may be shown.
#[tokio::test]
async fn b17_conversations_are_found_again() {
    let (_world, mut client) = queueing().await;
    let mut ids = Vec::new();
    for n in 0..5 {
        let arguments = json!({ "query": format!("Number {n}? [[sim:{QUICK}]]") });
        let id = id_of(&client.ok(DEEP, arguments).await);
        client.ended(&id).await;
        ids.push(id);
    }
    let bad = client.queue("http;status=400").await;
    client.ended(&bad).await;
    client.refused(SEARCH, query("http;status=400")).await;
    ids.push(bad.clone());
    ids.reverse();

    let mut found = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let mut arguments = json!({ "limit": 4 });
        if cursor.is_string() {
            arguments["cursor"] = cursor;
        }
        let page = client.ok(LIST, arguments).await.shape;
        let listed = page["conversations"].as_array().unwrap();
        found.extend(listed.iter().map(|one| one["conversationId"].as_str().unwrap().to_owned()));
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(found, ids);
    let failed = client.ok(LIST, json!({ "status": "failed" })).await;
    let listed = failed.shape["conversations"].as_array().unwrap();
    assert_eq!(listed.len(), 1);
    assert_eq!(
        (&listed[0]["conversationId"], &listed[0]["messageCount"]),
        (&json!(bad), &json!(1))
    );
    assert!(failed.text.contains(&bad), "{}", failed.text);
    let done = client.ok(LIST, json!({ "status": "completed" })).await.shape;
    assert_eq!(done["conversations"][0]["messageCount"], 2);
    assert!(done["conversations"][0]["title"].as_str().unwrap().starts_with("Number 4?"));
}
