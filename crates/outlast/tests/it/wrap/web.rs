//! H3, H4 for a server at an address (`--url`), in both eras.

use serde_json::{Value, json};

use super::{Wrapping, text};
use crate::support::eventually;

#[tokio::test]
async fn h3_a_server_at_an_address_is_wrapped_in_both_eras() {
    let wrapping =
        Wrapping::new().flags(&["--after", "300ms"]).set("TOKEN", "secret").set("OWN", "1");
    let flags = ["--bearer-env", "TOKEN", "--header-env", "X-Own=OWN"];
    let (mut wrapped, _server) = wrapping.spawn_web(&flags).await;
    let greeted = wrapped.greet().await;
    assert_eq!(greeted["result"]["serverInfo"]["name"], "web");
    let listed = wrapped.ask("tools/list", json!({})).await;
    assert_eq!(listed["result"]["tools"][0]["name"], "get_result");
    let until = wrapping.path("go").to_str().unwrap().to_owned();
    let params =
        json!({ "name": "wait", "arguments": { "until": until }, "_meta": { "progressToken": 3 } });
    let id = wrapped.send("tools/call", params.clone()).await;
    assert_eq!(wrapped.message().await["params"]["progressToken"], 3);
    let handed_off = wrapped.answer(id).await;
    let job = handed_off["result"]["_meta"]["outlast/jobId"].as_str().unwrap().to_owned();
    wrapping.release("go");
    let mut answer = wrapped.call("get_result", json!({ "job_id": job })).await;
    if text(&answer).contains("still running") {
        answer = wrapped.call("get_result", json!({ "job_id": job })).await;
    }
    assert_eq!(text(&answer), "done", "{answer}");
    let modern = json!({ "name": "wait", "arguments": {}, "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } });
    assert_eq!(text(&wrapped.ask("tools/call", modern).await), "done");
    let (_, code) = wrapped.finish().await;
    assert_eq!(code, Some(0));
    let seen: Vec<Value> =
        wrapping.log("").iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let common = ["Bearer secret", "1"];
    let expected = [
        json!(["initialize", common[0], common[1], null, null, null, null]),
        json!(["notifications/initialized", common[0], common[1], "s1", "2025-11-25", null, null]),
        json!(["tools/list", common[0], common[1], "s1", "2025-11-25", null, null]),
        json!(["tools/call", common[0], common[1], "s1", "2025-11-25", null, null]),
        json!(["tools/call", common[0], common[1], null, "2026-07-28", "tools/call", "wait"]),
        json!(["DELETE", common[0], common[1], "s1", "2025-11-25", null, null]),
    ];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn h3_a_server_at_an_address_that_is_away_or_refuses_is_reported() {
    let wrapping = Wrapping::new().set("WRAPPED_LOCKED", "1");
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (locked, server) = wrapping.spawn_web(&[]).await;
    let away = wrapping.spawn_at(&format!("http://127.0.0.1:{port}/mcp"), &[]);
    let moving = Wrapping::new().set("WRAPPED_MOVED", "1");
    let (moved, _other) = moving.spawn_web(&[]).await;
    for (mut wrapped, why) in
        [(away, "cannot be reached"), (locked, "HTTP 401"), (moved, "HTTP 308")]
    {
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {} });
        for method in ["initialize", "tools/call"] {
            let answer = wrapped.ask(method, params.clone()).await;
            let told = answer["error"]["message"].as_str().unwrap();
            assert!(told.contains(why) && !told.contains("127.0.0.1"), "{answer}");
            assert!(
                told.contains("was not carried out") && !told.contains("may or may"),
                "{answer}"
            );
        }
        assert_eq!(wrapped.finish().await.1, Some(0));
    }
    drop(server);
    wrapping.is_over().await;
}

fn methods(wrapping: &Wrapping) -> Vec<String> {
    let lines = wrapping.log("").into_iter();
    let seen = lines.map(|line| serde_json::from_str::<Value>(&line).unwrap());
    seen.map(|seen| seen[0].as_str().unwrap_or_default().to_owned()).collect()
}

/// In the newest era the end of the response stream is the cancel, and the notification does not exist over HTTP.
#[tokio::test]
async fn h6_a_cancel_closes_the_response_stream_of_the_newest_era() {
    let wrapping = Wrapping::new().flags(&["--after", "60s"]);
    let (mut wrapped, _server) = wrapping.spawn_web(&[]).await;
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28" });
    let hold = json!({ "name": "hold", "arguments": {}, "_meta": meta });
    for method in ["tools/call", "prompts/get"] {
        let id = wrapped.send(method, hold.clone()).await;
        // It is under way.
        wrapped.message().await;
        let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id, "reason": "Esc" } });
        wrapped.line(&cancel.to_string()).await;
    }
    let wait = json!({ "name": "wait", "arguments": {}, "_meta": meta });
    assert_eq!(text(&wrapped.ask("tools/call", wait).await), "done");
    eventually("the server sees it", || {
        methods(&wrapping).contains(&"closed by the client".to_owned())
    })
    .await;
    assert!(!methods(&wrapping).contains(&"notifications/cancelled".to_owned()));
}

#[tokio::test]
async fn h6_a_cancel_of_an_older_era_is_a_notification() {
    let wrapping = Wrapping::new().flags(&["--after", "60s"]);
    let (mut wrapped, _server) = wrapping.spawn_web(&[]).await;
    wrapped.greet().await;
    let id = wrapped.send("tools/call", super::call("hold", json!({}))).await;
    wrapped.message().await;
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id, "reason": "Esc" } });
    wrapped.line(&cancel.to_string()).await;
    eventually("the server sees it", || {
        methods(&wrapping).contains(&"notifications/cancelled".to_owned())
    })
    .await;
    assert_eq!(text(&wrapped.call("wait", json!({})).await), "done");
    assert!(!methods(&wrapping).contains(&"closed by the client".to_owned()));
}

#[tokio::test]
async fn h3_a_notification_that_the_server_holds_blocks_no_call() {
    let wrapping = Wrapping::new().set("WRAPPED_HOLDS_NOTES", "1");
    let (mut wrapped, server) = wrapping.spawn_web(&[]).await;
    wrapped.greet().await;
    assert_eq!(text(&wrapped.call("wait", json!({})).await), "done");
    wrapped.line(r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#).await;
    assert_eq!(text(&wrapped.call("wait", json!({})).await), "done");
    assert_eq!(wrapped.finish().await.1, Some(0));
    drop(server);
    wrapping.is_over().await;
}

#[tokio::test]
async fn h3_a_stream_that_breaks_is_resumed_or_reported() {
    let wrapping = Wrapping::new();
    let (mut wrapped, _server) = wrapping.spawn_web(&[]).await;
    wrapped.greet().await;
    assert_eq!(text(&wrapped.call("resume", json!({})).await), "done");
    let cut = wrapped.call("cut", json!({})).await;
    let told = cut["error"]["message"].as_str().unwrap();
    assert!(told.contains("broke") && told.contains("may or may not have happened"), "{cut}");
    assert_eq!(text(&wrapped.call("wait", json!({})).await), "done");
}

#[tokio::test]
async fn h7_a_lost_session_is_opened_again() {
    let wrapping = Wrapping::new();
    let (mut wrapped, _server) = wrapping.spawn_web(&[]).await;
    wrapped.greet().await;
    assert_eq!(text(&wrapped.call("forget", json!({})).await), "done");
    let lost = wrapped.call("wait", json!({})).await;
    let told = lost["error"]["message"].as_str().unwrap();
    assert!(told.contains("forgotten the session") && !told.contains("may or may"), "{lost}");
    assert_eq!(text(&wrapped.call("wait", json!({})).await), "done");
    wrapped.finish().await;
    let seen: Vec<Value> =
        wrapping.log("").iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let greetings = seen.iter().filter(|it| it[0] == "initialize").count();
    let last = seen.iter().rfind(|it| it[0] == "tools/call").unwrap();
    assert_eq!((greetings, &last[3]), (2, &json!("s2")), "{seen:?}");
}
