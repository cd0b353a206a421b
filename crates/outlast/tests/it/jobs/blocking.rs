//! Off: each workflow is a tool of its name that returns its result.

use serde_json::{Value, json};

use super::{Shop, ended, start};
use crate::support::{assert_refused, eventually};

const BLOCKING: [&str; 2] = ["--tools", "research-jobs"];

/// E1: the result is returned unchanged; a failure is a refusal with its code.
#[tokio::test]
async fn e1_a_blocking_workflow_returns_its_result() {
    let shop = Shop::new().await;
    let mut server = shop.serve_with(&BLOCKING).await;
    let got = server.call("echo", json!({ "message": "hi" })).await;
    assert_eq!(got["content"], json!([{ "type": "text", "text": "hi" }]));
    assert_eq!(got["isError"], false);
    assert_eq!(got["structuredContent"]["content"][0]["text"], "hi");
    let got = server.call("echo", json!({ "message": "{\"a\": 1}" })).await;
    assert_eq!(got["structuredContent"], json!({ "a": 1 }), "its own, where it has one");
    let failed = server.call("fail", json!({})).await;
    assert_refused(&failed, "EXECUTION_ERROR", true);
    assert!(!failed.to_string().contains("secret words"));
    let bad = server.call("echo", json!({ "text": 1 })).await;
    assert_refused(&bad, "VALIDATION_ERROR", false);
}

/// E1: with progress, for clients that request it.
#[tokio::test]
async fn e1_a_blocking_workflow_reports_its_progress() {
    let shop = Shop::new().await;
    let mut server = shop.serve_with(&BLOCKING).await;
    let script = "echo '{\"progress\": 40, \"message\": \"scanning\"}' >&2; while [ ! -e go ]; do sleep 0.01; done";
    let call = json!({
        "name": "shell", "arguments": { "message": script }, "_meta": { "progressToken": "p" }
    });
    let call = server.send("tools/call", call).await;
    let scanning = |message: &Value| {
        let params = &message["params"];
        message["method"] == "notifications/progress"
            && params["progress"].as_f64().is_some_and(|at| (40.0..41.0).contains(&at))
            && params["message"] == "scanning"
            && params["progressToken"] == "p"
    };
    while !scanning(&server.message().await.unwrap()) {}
    shop.go();
    assert_eq!(server.answer(call).await.unwrap()["result"]["isError"], false);
}

/// Promise 2: a client that gives up and calls again picks up the same run.
#[tokio::test]
async fn e1_the_same_repeated_call_attaches() {
    let shop = Shop::new().await;
    let mut server = shop.serve_with(&BLOCKING).await;
    let call = json!({ "name": "wait", "arguments": {} });
    let first = server.send("tools/call", call.clone()).await;
    eventually("it runs", || shop.file("begun").exists()).await;
    server.notify("notifications/cancelled", json!({ "requestId": first })).await;
    std::fs::remove_file(shop.file("begun")).unwrap();
    let second = server.send("tools/call", call).await;
    shop.go();
    let got = server.answer(second).await.unwrap();
    assert_eq!(got["result"]["content"][0]["text"], "gone\n", "{got}");
    assert!(!shop.file("begun").exists(), "it ran once");
}

/// design.md: a client that declares tasks gets one, and reads its result from it.
#[tokio::test]
async fn e1_a_client_with_tasks_gets_a_task() {
    let shop = Shop::new().await;
    let config = shop.config();
    let mut server = shop.world.spawn(&["serve", "--config", &config, "--tools", "research-jobs"]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "extensions": { "io.modelcontextprotocol/tasks": {} } },
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    });
    let call = json!({ "name": "echo", "arguments": { "message": "hi" }, "_meta": meta });
    let task = server.request("tools/call", call).await["result"].clone();
    let id = task["taskId"].as_str().unwrap_or_else(|| panic!("{task}")).to_owned();
    let done = async {
        loop {
            let asked = json!({ "taskId": id, "_meta": meta });
            let task = server.request("tasks/get", asked).await["result"].clone();
            if task["status"] != "working" {
                return task;
            }
        }
    };
    let limit = std::time::Duration::from_secs(30);
    let task = tokio::time::timeout(limit, done).await.expect("the task ends");
    assert_eq!(task["result"]["content"][0]["text"], "hi", "{task}");
    assert!(task["ttlMs"].is_u64(), "{task}");
}

/// One id space: jobs that async mode started are there when it is off again.
#[tokio::test]
async fn e7_a_job_outlives_a_change_of_mode() {
    let shop = Shop::new().await;
    let mut server = shop.serve().await;
    let id = start(&mut server, "echo", "hi").await;
    ended(&mut server, &id).await;
    let mut server = shop.serve_with(&["--tools", "research-jobs"]).await;
    let poll = crate::support::finished(&mut server, &id).await;
    assert_eq!(poll["response"], "hi");
}
