//! Search: a quick answer in a new conversation.

use super::*;

/// A search answers at once in every mode, begins a conversation and can be followed up.
#[tokio::test]
async fn a_search_answers_and_begins_a_conversation() {
    let mut world = World::new().await;
    for mode in ["false", "true"] {
        world.set(SWITCH, mode);
        let mut client = Client::of(world.serve().await).await;
        let answer = client.ok(SEARCH, query(QUICK)).await;
        assert_eq!(answer.shape["status"], "completed");
        assert!(answer.shape.get("reportCheck").is_none(), "a search has no report to check");
        assert!(answer.text.contains("\nSources:\n[1] "), "{}", answer.text);
        let id = id_of(&answer);
        let again = client.ok(SEARCH_FOLLOWUP, followup(&id, QUICK)).await;
        assert!(again.text.contains("\nSources:\n[1] "), "defect B7: {}", again.text);
        let history = client.history(&id).await.shape;
        assert_eq!(
            (&history["status"], &history["messageCount"]),
            (&json!("completed"), &json!(4))
        );
        for message in history["messages"].as_array().unwrap() {
            assert!(!message["content"].as_str().unwrap().contains("<think>"), "defect B7");
        }
    }
}

/// A search that fails leaves no conversation behind.
#[tokio::test]
async fn c5_a_search_that_fails_leaves_no_conversation() {
    let (_world, mut client) = blocking().await;
    let (code, _) = client.refused(SEARCH, query("http;status=503")).await;
    assert_eq!(code, "SERVICE_UNAVAILABLE");
    assert_eq!(client.ok(LIST, json!({})).await.shape["conversations"], json!([]));
}
