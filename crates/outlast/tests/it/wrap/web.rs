//! H3, H4 for a server at an address (`--url`), in both eras.

use serde_json::{Value, json};

use super::{Wrapping, text};

#[tokio::test]
async fn h3_a_server_at_an_address_is_wrapped_in_both_eras() {
    let wrapping = Wrapping::new().flags(&["--after", "300ms"]).set("TOKEN", "secret");
    let flags = ["--bearer-env", "TOKEN", "--header", "X-Own: 1"];
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
