//! B12, B13: conversations that are continued.

use super::*;

/// Returns the roles and texts of a submit's input.
fn said(body: &Value) -> Vec<(String, String)> {
    let items = body["input"].as_array().cloned().unwrap_or_default();
    let said = items.iter().map(|item| {
        let text = |key: &str| item[key].as_str().unwrap_or_default().to_owned();
        (text("role"), text("content"))
    });
    said.collect()
}

/// B12 and defect B4 of the older server: both follow-ups are refused while a job is pending or in progress.
#[tokio::test]
async fn b12_a_busy_conversation_takes_no_follow_up() {
    let (world, mut client) = queueing_with(&[("OUTLAST_CONCURRENCY", "1")]).await;
    let running = client.queue("ok;words=60;hold=true").await;
    client.until(&running, |history| history["status"] == "in_progress").await;
    let pending = client.queue(QUICK).await;
    for (id, status) in [(&running, "in_progress"), (&pending, "pending")] {
        for tool in [DEEP_FOLLOWUP, SEARCH_FOLLOWUP] {
            let (code, sentence) = client.refused(tool, followup(id, QUICK)).await;
            assert_eq!(code, "JOB_IN_PROGRESS", "{tool}");
            for word in [id.as_str(), status, HISTORY] {
                assert!(sentence.contains(word), "{tool} {word}: {sentence}");
            }
        }
    }
    release(&world, 1).await;
    assert_eq!(client.ended(&running).await.shape["messageCount"], 2);
}

/// B12: of two at once exactly one is accepted.
#[tokio::test]
async fn b12_of_two_follow_ups_at_once_one_is_accepted() {
    let (world, mut client) = queueing().await;
    let id = client.queue(QUICK).await;
    client.ended(&id).await;
    let mut other = Client::of(world.serve().await).await;
    for round in 0..5 {
        let question = |who: &str| json!({ "conversationId": id, "query": format!("{who} {round}? [[sim:ok;words=60;hold=true]]") });
        let calls = [
            client.send(DEEP_FOLLOWUP, question("one"), None).await,
            client.send(DEEP_FOLLOWUP, question("two"), None).await,
        ];
        let third = other.send(DEEP_FOLLOWUP, question("three"), None).await;
        let mut results = vec![other.server.answer(third).await.unwrap()];
        for call in calls {
            results.push(client.server.answer(call).await.unwrap());
        }
        let refused: Vec<_> =
            results.iter().filter(|answer| answer["result"]["isError"] == true).collect();
        assert_eq!(refused.len(), 2, "{results:?}");
        for answer in refused {
            assert_eq!(refusal(&answer["result"]).0, "JOB_IN_PROGRESS");
        }
        release(&world, 2 + round).await;
        let history = client.ended(&id).await.shape;
        assert_eq!(history["messageCount"], 4 + 2 * round, "nothing interleaved");
    }
}

/// B13 and defect B9 of the older server: a follow-up sends all earlier messages, and is a new job.
#[tokio::test]
async fn b13_a_follow_up_is_a_new_job_on_the_same_conversation() {
    let (world, mut client) = queueing().await;
    let id = client.queue(&format!("http;status=503;times=1|{QUICK}")).await;
    let first = client.ended(&id).await.shape;
    assert_eq!(first["attempts"], 1);
    client.ok(DEEP_FOLLOWUP, followup(&id, QUICK)).await;
    let second = client.ended(&id).await.shape;
    assert_eq!((&second["status"], &second["attempts"]), (&json!("completed"), &json!(0)));
    assert!(second.get("errorHistory").is_none(), "{second}");
    let batch = client.ok(HISTORIES, json!({ "conversationIds": [id] })).await.shape;
    let status = &batch[&id]["status"];
    assert_eq!(status["toolName"], "perplexity_deep_research_followup");
    assert!(status["startedAt"].as_str() > first["createdAt"].as_str(), "{status}");
    assert_eq!(second["messageCount"], 4);
    assert_eq!(second["createdAt"], first["createdAt"]);

    let sent = submitted(&world).pop().unwrap();
    let roles: Vec<String> = said(&sent).into_iter().map(|(role, _)| role).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    assert_eq!(said(&sent)[1].1, first["messages"][1]["content"].as_str().unwrap());
    assert!(sent["instructions"].as_str().unwrap().contains("executive summary"));
    let total = second["usage"]["total_tokens"].as_u64();
    assert!(total > first["usage"]["total_tokens"].as_u64(), "C9: usage in total");
}

/// B13: a follow-up that failed for good is marked, and not sent upstream again.
#[tokio::test]
async fn b13_a_failed_follow_up_is_marked_and_not_sent_again() {
    let (world, mut client) = queueing().await;
    let id = client.queue(QUICK).await;
    client.ended(&id).await;
    let bad = json!({ "conversationId": id, "query": "Bad? [[sim:http;status=400]]" });
    client.ok(DEEP_FOLLOWUP, bad).await;
    let failed = client.ended(&id).await;
    assert_eq!(failed.shape["status"], "failed");
    let messages = failed.shape["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 3);
    assert_eq!(messages[2]["failed"], true);
    assert!(messages[0].get("failed").is_none());
    assert!(failed.text.contains("(not answered)"), "{}", failed.text);

    let next = json!({ "conversationId": id, "query": format!("Good? [[sim:{QUICK}]]") });
    client.ok(DEEP_FOLLOWUP, next).await;
    assert_eq!(client.ended(&id).await.shape["status"], "completed");
    let sent = said(&submitted(&world).pop().unwrap());
    assert_eq!(sent.len(), 3);
    assert!(!sent.iter().any(|(_, text)| text.starts_with("Bad?")), "{sent:?}");
}

/// B12, defect B3 of the older server: research follows on a conversation that a search began, and the other way round.
#[tokio::test]
async fn b12_research_follows_a_search_and_a_search_follows_research() {
    let (_world, mut client) = queueing().await;
    let searched = client.ok(SEARCH, query(QUICK)).await;
    let id = id_of(&searched);
    client.ok(DEEP_FOLLOWUP, followup(&id, QUICK)).await;
    let history = client.ended(&id).await.shape;
    assert_eq!((&history["status"], &history["messageCount"]), (&json!("completed"), &json!(4)));
    let again = client.ok(SEARCH_FOLLOWUP, followup(&id, QUICK)).await;
    assert!(again.text.starts_with("🔁 **Conversation Continued**\n"), "{}", again.text);
    assert_eq!(id_of(&again), id);
    assert_eq!(client.history(&id).await.shape["messageCount"], 6);
}

/// B12, C1: in blocking mode a follow-up is held like a first question; one that fails leaves no trace.
#[tokio::test]
async fn a_held_follow_up_is_appended_or_leaves_no_trace() {
    let (_world, mut client) = blocking().await;
    let id = id_of(&client.ok(DEEP, query(QUICK)).await);
    let (code, _) = client.refused(DEEP_FOLLOWUP, followup(&id, "http;status=400")).await;
    assert_eq!(code, "EXECUTION_ERROR");
    assert_eq!(client.history(&id).await.shape["messageCount"], 2, "C5");
    let again = client.ok(DEEP_FOLLOWUP, followup(&id, QUICK)).await;
    assert!(again.text.starts_with("🔁 **Conversation Continued**\n"), "{}", again.text);
    assert_eq!(client.history(&id).await.shape["messageCount"], 4);
}
