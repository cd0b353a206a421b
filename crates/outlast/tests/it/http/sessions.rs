//! Sessions of the older era: their owners, their lifetime, and that a long silence does not end them.

use serde_json::json;

use super::client::{ANN, BOB, Client, JSON, Served, call, initialize};
use crate::support::{POLL, START, World, question};

fn ping() -> serde_json::Value {
    json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" })
}

/// Returns true if the server holds the session, that is, has a stream for it.
async fn is_held(client: &Client, session: &str) -> bool {
    let stream = client.send("GET /mcp", &[("Mcp-Session-Id", session), JSON[1]], "").await;
    assert!(matches!(stream.status, 200 | 405), "{}", stream.head);
    stream.status == 200
}

#[tokio::test]
async fn a_session_lasts_from_initialize_to_delete() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let ann = served.client(ANN);
    let session = ann.initialize().await;
    let started = call(START, &question("ok;words=60;delay_ms=0"), &json!({}));
    let answer = ann.post(Some(&session), &started).await.result().await;
    assert!(answer["result"]["structuredContent"]["jobId"].is_string(), "{answer}");
    let ended = ann.send("DELETE /mcp", &[("Mcp-Session-Id", &session)], "").await;
    assert_eq!(ended.status, 204);
    for id in [session.as_str(), "never-was", ""] {
        let reply = ann.post(Some(id), &ping()).await;
        assert_eq!(reply.status, 404, "{id}");
        assert!(reply.body().await.contains("SESSION_NOT_FOUND"));
        let stream = ann.send("GET /mcp", &[("Mcp-Session-Id", id), JSON[1]], "").await;
        assert_eq!(stream.status, 404, "{id}");
        let again = ann.send("DELETE /mcp", &[("Mcp-Session-Id", id)], "").await;
        assert_eq!(again.status, 404, "{id}");
    }
}

/// E7: a session id is not a token.
#[tokio::test]
async fn e7_another_owners_session_is_an_unknown_one() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let (ann, bob) = (served.client(ANN), served.client(BOB));
    let session = ann.initialize().await;
    assert_eq!(bob.post(Some(&session), &ping()).await.status, 404);
    let headers = [("Mcp-Session-Id", session.as_str()), JSON[1]];
    assert_eq!(bob.send("GET /mcp", &headers, "").await.status, 404);
    assert_eq!(bob.send("DELETE /mcp", &headers, "").await.status, 404);
    assert_eq!(ann.post(Some(&session), &ping()).await.result().await["result"], json!({}));
}

/// A call that is silent for far longer than the lifetime of an idle session is answered in its session.
#[tokio::test]
async fn a_silent_call_outlives_the_time_of_idle_sessions() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "1500");
    let served = Served::start(&mut world, &["--session-idle-ms", "60"]).await;
    let ann = served.client(ANN);
    let id = ann.call(START, question("stuck")).await["jobId"].clone();
    let session = ann.initialize().await;
    let poll = call(POLL, &json!({ "jobId": id }), &json!({}));
    let answer = ann.post(Some(&session), &poll).await.result().await;
    let status = &answer["result"]["structuredContent"]["status"];
    assert!(status == "IN_PROGRESS" || status == "CREATED", "{answer}");
}

/// The call continues without its listener, who may come back for the answer.
#[tokio::test]
async fn a_call_whose_client_left_keeps_its_session() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "3600000");
    let served = Served::start(&mut world, &["--session-idle-ms", "100"]).await;
    let (ann, bob) = (served.client(ANN), served.client(BOB));
    let id = ann.call(START, question("stuck")).await["jobId"].clone();
    let session = ann.initialize().await;
    let poll = call(POLL, &json!({ "jobId": id }), &json!({ "progressToken": 1 }));
    let mut left = ann.post(Some(&session), &poll).await;
    assert_eq!(left.event().await.unwrap()["method"], "notifications/progress");
    drop(left);
    bob.initialize().await;
    served.process.logged("idle sessions ended").await;
    assert!(is_held(&ann, &session).await);
}

/// Only the stream is forgotten: a request is answered all the same.
#[tokio::test]
async fn an_abandoned_session_is_reaped_and_one_with_a_listener_is_not() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &["--session-idle-ms", "300"]).await;
    let (ann, bob) = (served.client(ANN), served.client(BOB));
    let kept = ann.initialize().await;
    let headers = [("Mcp-Session-Id", kept.as_str()), JSON[1]];
    let listening = ann.send("GET /mcp", &headers, "").await;
    assert_eq!(listening.status, 200, "{}", listening.head);
    let abandoned = bob.initialize().await;
    served.process.logged("idle sessions ended").await;
    assert!(!is_held(&bob, &abandoned).await);
    assert!(is_held(&ann, &kept).await);
    for (client, session) in [(bob, abandoned), (ann, kept)] {
        assert_eq!(client.post(Some(&session), &ping()).await.result().await["result"], json!({}));
    }
}

/// An owner may abandon any number of sessions: only a limited number is kept, and the newest work.
#[tokio::test]
async fn abandoned_sessions_make_room_for_new_ones() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let (ann, bob) = (served.client(ANN), served.client(BOB));
    let other = bob.initialize().await;
    let mut sessions = Vec::new();
    for _ in 0..103 {
        sessions.push(ann.initialize().await);
    }
    let mut held = Vec::new();
    for session in &sessions {
        held.push(is_held(&ann, session).await);
        assert_eq!(ann.post(Some(session), &ping()).await.status, 200);
    }
    assert_eq!(held.iter().filter(|held| **held).count(), 100);
    assert_eq!(held[..4], [false, false, false, true], "the oldest make room");
    assert!(is_held(&bob, &other).await, "not at another owner's cost");
}

#[tokio::test]
async fn where_every_session_is_in_use_a_new_one_has_to_wait() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let ann = served.client(ANN);
    let mut listening = Vec::new();
    for _ in 0..100 {
        let session = ann.initialize().await;
        let headers = [("Mcp-Session-Id", session.as_str()), JSON[1]];
        listening.push(ann.send("GET /mcp", &headers, "").await);
    }
    let refused = ann.post(None, &initialize()).await;
    assert_eq!(refused.status, 503, "{}", refused.head);
    assert!(refused.header("retry-after").is_some(), "{}", refused.head);
    assert!(refused.body().await.contains("TOO_MANY_SESSIONS"));
    served.client(BOB).initialize().await;
}

/// The newer era has no sessions: a header that names one has no effect.
#[tokio::test]
async fn the_newer_era_ignores_session_ids() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "50");
    let served = Served::start(&mut world, &[]).await;
    let ann = served.client(ANN);
    let headers = [
        JSON[0],
        JSON[1],
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", POLL),
        ("Mcp-Session-Id", "never-was"),
    ];
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}
    });
    let poll = call(POLL, &json!({ "jobId": "0".repeat(32) }), &meta).to_string();
    let answer = ann.send("POST /mcp", &headers, &poll).await.result().await;
    assert_eq!(answer["result"]["structuredContent"]["status"], "NOT_FOUND", "{answer}");
}

/// The newest era has no initialize: a client that sends one gets an error about the method, not about its parameters.
#[tokio::test]
async fn the_newest_era_has_no_initialize() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let headers =
        [JSON[0], JSON[1], ("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "initialize")];
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    } } });
    let reply = served.client(ANN).send("POST /mcp", &headers, &message.to_string()).await;
    assert_eq!(reply.status, 404);
    assert!(reply.body().await.contains("-32601"));
}
