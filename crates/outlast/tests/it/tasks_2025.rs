//! M3: tasks of revision 2025-11-25, over stdio and HTTP.

use std::time::Duration;

use outlast_testkit::mcp_process::McpProcess;
use serde_json::{Value, json};

use crate::http::client::{ANN, BOB, Client, JSON, Served};
use crate::support::{START, World, eventually};

const RESEARCH: &str = "perplexity_research";
const DEEP: &str = "perplexity_deep_research";
const RELATED: &str = "io.modelcontextprotocol/related-task";

fn greeting(version: &str) -> Value {
    json!({
        "protocolVersion": version,
        // What Visual Studio Code declares.
        "capabilities": {
            "roots": { "listChanged": true }, "sampling": {}, "elicitation": { "form": {}, "url": {} },
            "tasks": { "list": {}, "cancel": {}, "requests": { "sampling": { "createMessage": {} }, "elicitation": { "create": {} } } },
        },
        "clientInfo": { "name": "Visual Studio Code", "version": "1.108.0" },
    })
}

fn research(scenario: &str) -> Value {
    let messages = json!([{ "role": "user", "content": format!("why? [[sim:{scenario}]]") }]);
    json!({ "name": RESEARCH, "arguments": { "messages": messages } })
}

fn as_task(mut call: Value) -> Value {
    call["task"] = json!({ "ttl": 300_000 });
    call
}

/// A client that negotiated a revision over stdio.
async fn connect(world: &World, version: &str) -> (McpProcess, Value) {
    let mut server = world.spawn(&["serve", "--tools", "perplexity,research,research-jobs"]);
    let hello = server.request("initialize", greeting(version)).await;
    server.notify("notifications/initialized", json!({})).await;
    (server, hello["result"].clone())
}

async fn task_until(server: &mut McpProcess, id: &str, status: &str) -> Value {
    let waited = async {
        loop {
            let task = server.request("tasks/get", json!({ "taskId": id })).await["result"].clone();
            if task["status"] == status {
                return task;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waited).await.expect("the status")
}

/// M3: the documented sequence of Visual Studio Code: list, call with `task`, get at intervals, result.
#[tokio::test]
async fn m3_the_sequence_of_vs_code_ends_with_the_report() {
    let world = World::new().await;
    let (mut server, hello) = connect(&world, "2025-11-25").await;
    assert_eq!(hello["protocolVersion"], "2025-11-25");
    let offered = json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } });
    assert_eq!(hello["capabilities"]["tasks"], offered);
    let tools = server.request("tools/list", json!({})).await["result"]["tools"].clone();
    for tool in tools.as_array().unwrap() {
        let has_tasks = [RESEARCH, DEEP, "perplexity_deep_research_followup"]
            .contains(&tool["name"].as_str().unwrap());
        let expected = if has_tasks { json!({ "taskSupport": "optional" }) } else { Value::Null };
        assert_eq!(tool["execution"], expected, "{tool}");
    }
    let call = as_task(research("ok;words=60;delay_ms=0;hold=true"));
    let created = server.request("tools/call", call).await["result"].clone();
    let task = &created["task"];
    assert_eq!((&task["status"], &task["ttl"]), (&json!("working"), &Value::Null), "{created}");
    assert!(task["pollInterval"].is_u64() && task["createdAt"].is_string(), "{task}");
    assert!(task["lastUpdatedAt"].is_string() && created.get("content").is_none(), "{created}");
    let id = task["taskId"].as_str().unwrap().to_owned();
    eventually("the job is submitted", || world.submits() == 1).await;
    let asked = server.request("tasks/get", json!({ "taskId": id })).await["result"].clone();
    assert_eq!((&asked["taskId"], &asked["status"]), (&json!(id), &json!("working")), "{asked}");
    assert!(asked.get("resultType").is_none() && asked.get("ttlMs").is_none(), "{asked}");
    // The result waits for the end.
    let waiting = server.send("tasks/result", json!({ "taskId": id })).await;
    world.simulator.release();
    let result = server.answer(waiting).await.unwrap()["result"].clone();
    assert_eq!(result["_meta"][RELATED]["taskId"], json!(id), "{result}");
    assert!(result["content"][0]["text"].as_str().is_some_and(|text| !text.is_empty()));
    assert_ne!(result["isError"], true);
    let ended = task_until(&mut server, &id, "completed").await;
    assert!(ended["ttl"].is_u64(), "{ended}");
    let again = server.request("tasks/result", json!({ "taskId": id })).await["result"].clone();
    assert_eq!(again, result, "the same again");
    let notified = server.seen.iter().filter(|it| it["method"] == "notifications/tasks/status");
    let mut ends = notified.filter(|it| it["params"]["taskId"] == json!(id));
    assert!(ends.next_back().is_some_and(|it| it["params"]["status"].is_string()));
    let listed = server.request("tasks/list", json!({})).await["result"]["tasks"].clone();
    assert_eq!(listed, json!([ended]), "whatever tasks/get finds");
    assert_eq!(world.submits(), 1);
}

/// M3: a plain call is answered as always, also by a client that knows tasks; other tools and revisions have none.
#[tokio::test]
async fn m3_tasks_are_only_for_calls_that_ask_for_one() {
    let world = World::new().await;
    let (mut server, _) = connect(&world, "2025-11-25").await;
    let plain = server.request("tools/call", research("ok;words=60;delay_ms=0")).await;
    assert!(plain["result"]["content"].is_array(), "{plain}");
    let start = as_task(json!({ "name": START, "arguments": {} }));
    let refused = server.request("tools/call", start).await;
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
    let invalid = as_task(json!({ "name": RESEARCH, "arguments": { "messages": 7 } }));
    let refused = server.request("tools/call", invalid).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let unknown = as_task(json!({ "name": "nothing", "arguments": {} }));
    assert_eq!(server.request("tools/call", unknown).await["error"]["code"], -32602);
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        for params in [json!({ "taskId": "0".repeat(32) }), json!({ "taskId": 7 }), json!({})] {
            let refused = server.request(method, params.clone()).await;
            assert_eq!(refused["error"]["code"], -32602, "{method} {params}");
        }
    }
    let (mut older, hello) = connect(&world, "2025-06-18").await;
    assert!(hello["capabilities"].get("tasks").is_none(), "{hello}");
    let tools = older.request("tools/list", json!({})).await["result"]["tools"].clone();
    assert!(!tools.to_string().contains("taskSupport"));
    for method in ["tasks/get", "tasks/result", "tasks/cancel", "tasks/list"] {
        let refused = older.request(method, json!({ "taskId": "x" })).await;
        assert!(refused["error"]["code"].is_i64(), "{method}: {refused}");
    }
    let ignored = older.request("tools/call", as_task(research("ok;words=60;delay_ms=0"))).await;
    assert!(ignored["result"]["content"].is_array(), "an unknown field is ignored: {ignored}");
}

/// M3: a cancelled task is cancelled once; a failed job is a failed task, and its result an error.
#[tokio::test]
async fn m3_tasks_end_as_their_jobs_do() {
    let world = World::new().await;
    let (mut server, _) = connect(&world, "2025-11-25").await;
    let created = server.request("tools/call", as_task(research("stuck"))).await;
    let id = created["result"]["task"]["taskId"].as_str().unwrap().to_owned();
    let cancelled = server.request("tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!(cancelled["result"]["status"], "cancelled", "{cancelled}");
    assert_eq!(cancelled["result"]["taskId"], json!(id));
    let again = server.request("tasks/cancel", json!({ "taskId": id })).await;
    assert_eq!(again["error"]["code"], -32602, "{again}");
    let result = server.request("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(result["result"]["isError"], true, "{result}");
    let created = server.request("tools/call", as_task(research("http;status=401"))).await;
    let id = created["result"]["task"]["taskId"].as_str().unwrap().to_owned();
    let failed = task_until(&mut server, &id, "failed").await;
    assert!(failed["statusMessage"].is_string(), "{failed}");
    let result = server.request("tasks/result", json!({ "taskId": id })).await["result"].clone();
    assert_eq!(result["isError"], true, "{result}");
    assert_eq!(result["_meta"][RELATED]["taskId"], json!(id));
    let listed = server.request("tasks/list", json!({})).await["result"]["tasks"].clone();
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed}");
    let refused = server.request("tasks/list", json!({ "cursor": "x" })).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}

/// M3: the ids are those of the jobs, and survive kill -9; a repeated call is the same task.
#[tokio::test]
async fn m3_a_task_survives_kill_9() {
    let world = World::new().await;
    let (mut server, _) = connect(&world, "2025-11-25").await;
    let scenario = "ok;words=60;delay_ms=0;hold=true";
    let created = server.request("tools/call", as_task(research(scenario))).await;
    let id = created["result"]["task"]["taskId"].as_str().unwrap().to_owned();
    while !task_until(&mut server, &id, "working").await["statusMessage"]
        .as_str()
        .unwrap()
        .contains('%')
    {}
    server.kill().await;
    let (mut server, _) = connect(&world, "2025-11-25").await;
    let again = server.request("tools/call", as_task(research(scenario))).await;
    assert_eq!(again["result"]["task"]["taskId"], json!(id), "{again}");
    world.simulator.release();
    let result = server.request("tasks/result", json!({ "taskId": id })).await;
    assert_ne!(result["result"]["isError"], true, "{result}");
    let again = server.request("tools/call", as_task(research(scenario))).await;
    assert_eq!(again["result"]["task"]["status"], "completed", "an ended task is one too: {again}");
    assert_eq!(world.submits(), 1, "paid for once");
    assert_eq!(world.shown(&id).await["state"], "succeeded");
}

/// Sends a request of the revision over HTTP.
async fn request(client: &Client, session: Option<&str>, method: &str, params: Value) -> Value {
    let mut headers = JSON.to_vec();
    headers.extend(session.map(|id| ("Mcp-Session-Id", id)));
    headers.extend(session.map(|_| ("MCP-Protocol-Version", "2025-11-25")));
    let message = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
    client.send("POST /mcp", &headers, &message.to_string()).await.result().await
}

async fn open_session(client: &Client) -> (String, Value) {
    let message = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": greeting("2025-11-25") });
    let reply = client.send("POST /mcp", &JSON, &message.to_string()).await;
    let session = reply.header("mcp-session-id").unwrap().to_owned();
    let hello = reply.result().await["result"].clone();
    let headers = [JSON[0], JSON[1], ("Mcp-Session-Id", session.as_str())];
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    client.send("POST /mcp", &headers, &initialized.to_string()).await;
    (session, hello)
}

/// M3: over HTTP each owner has its own tasks; a server without tokens does not list any.
#[tokio::test]
async fn m3_over_http_tasks_belong_to_their_owner() {
    let mut world = World::new().await;
    world.set("OUTLAST_TOOLS", "perplexity");
    let served = Served::start(&mut world, &[]).await;
    let (ann, bob) = (served.client(ANN), served.client(BOB));
    let (session, hello) = open_session(&ann).await;
    assert!(hello["capabilities"]["tasks"]["list"].is_object(), "{hello}");
    let call = as_task(research("ok;words=60;delay_ms=0"));
    let created = request(&ann, Some(&session), "tools/call", call).await;
    let id = created["result"]["task"]["taskId"].clone();
    let params = json!({ "taskId": id });
    let result = request(&ann, Some(&session), "tasks/result", params.clone()).await;
    assert_ne!(result["result"]["isError"], true, "{result}");
    let (others, _) = open_session(&bob).await;
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let refused = request(&bob, Some(&others), method, params.clone()).await;
        assert_eq!(refused["error"]["code"], -32602, "{method}: {refused}");
    }
    let listed = request(&bob, Some(&others), "tasks/list", json!({})).await;
    assert_eq!(listed["result"]["tasks"], json!([]), "{listed}");

    let mut alone = World::new().await;
    alone.set("OUTLAST_TOOLS", "perplexity");
    let served = Served::start_as_it_is(&alone, &["--no-auth"]).await;
    let anyone = served.client("x");
    let (session, hello) = open_session(&anyone).await;
    assert!(hello["capabilities"]["tasks"].get("list").is_none(), "{hello}");
    let refused = request(&anyone, Some(&session), "tasks/list", json!({})).await;
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
}
