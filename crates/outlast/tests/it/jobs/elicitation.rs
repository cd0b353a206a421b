//! Questions of jobs, put to the client of the call that waits for the job (M4): elicitation over the connection, a question
//! as the answer to a call, tasks that require input, and a text for clients that cannot ask.

use std::time::Duration;

use outlast_testkit::mcp_process::McpProcess;
use serde_json::{Value, json};

use super::Shop;
use super::steps::shop;
use crate::http::client::{ANN, BOB, Served};
use crate::support::{World, assert_refused};

const ASK: &str = "answer=$(outlast ask 'Deploy?' --choices yes,no); echo \"was $answer\"";
const TASKS: &str = "io.modelcontextprotocol/tasks";
const BLOCKING: [&str; 2] = ["--tools", "research-jobs"];

impl Shop {
    /// Connects a client of an older revision with these capabilities.
    async fn connect(&self, version: &str, capabilities: Value) -> McpProcess {
        let config = self.config();
        let arguments: Vec<&str> =
            ["serve", "--config", &config].into_iter().chain(BLOCKING).collect();
        let mut server = self.world.spawn(&arguments);
        let client = json!({ "name": "c", "version": "1" });
        let hello = json!({
            "protocolVersion": version, "capabilities": capabilities, "clientInfo": client
        });
        server.request("initialize", hello).await;
        server.notify("notifications/initialized", json!({})).await;
        server
    }

    /// Waits until a job has a question, and returns the id of the job.
    async fn waiting(&self) -> String {
        waiting(&self.world).await
    }
}

/// Waits until a job has a question, and returns the id of the job.
pub(crate) async fn waiting(world: &World) -> String {
    for _ in 0..1200 {
        let listed = world.run(&["jobs", "list", "--state", "waiting", "--json"]).await;
        let listed: Value = serde_json::from_str(&listed.stdout).unwrap_or_default();
        if let Some(id) = listed["jobs"][0]["id"].as_str() {
            return id.to_owned();
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("no job asks anything")
}

fn call() -> Value {
    json!({ "name": "script", "arguments": {} })
}

/// A call of the newest revision, by a client with these capabilities.
pub(crate) fn modern(capabilities: &Value, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/clientInfo": { "name": "c", "version": "1" },
    });
    params
}

/// Reads messages until the server asks the user.
pub(crate) async fn question(server: &mut McpProcess) -> Value {
    loop {
        let message = server.message().await.expect("the server runs");
        if message["method"] == "elicitation/create" {
            return message;
        }
    }
}

/// Reads messages until the result of our request.
pub(crate) async fn result(server: &mut McpProcess, id: u64) -> Value {
    loop {
        let message = server.message().await.expect("the server runs");
        if message["id"] == id && message.get("method").is_none() {
            return message["result"].clone();
        }
    }
}

pub(crate) async fn react(server: &mut McpProcess, question: &Value, reaction: Value) {
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": reaction });
    server.write_raw(&format!("{answer}\n")).await;
}

pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

/// M4: a client of each older revision with elicitation is asked while its call waits; decline is no.
#[tokio::test]
async fn m4_a_held_call_asks_the_user_of_its_client() {
    let cases = [
        ("2025-06-18", json!({ "action": "accept", "content": { "answer": "yes" } }), "was yes\n"),
        ("2025-11-25", json!({ "action": "decline" }), "was no\n"),
    ];
    for (version, reaction, expected) in cases {
        let shop = shop(ASK, "").await;
        let mut server = shop.connect(version, json!({ "elicitation": {} })).await;
        let id = server.send("tools/call", call()).await;
        let asked = question(&mut server).await;
        assert_eq!(asked["params"]["message"], "Deploy?", "{asked}");
        let field = &asked["params"]["requestedSchema"]["properties"]["answer"];
        assert_eq!((&field["type"], &field["enum"]), (&json!("string"), &json!(["yes", "no"])));
        react(&mut server, &asked, reaction).await;
        let got = result(&mut server, id).await;
        assert_eq!(text(&got), expected, "{version}: {got}");
    }
}

/// M4: a closed form leaves the question open, and a question that is answered elsewhere is withdrawn.
#[tokio::test]
async fn m4_a_closed_form_leaves_the_question_to_others() {
    let shop = shop(ASK, "").await;
    let mut server = shop.connect("2025-06-18", json!({ "elicitation": {} })).await;
    let id = server.send("tools/call", call()).await;
    let asked = question(&mut server).await;
    react(&mut server, &asked, json!({ "action": "cancel" })).await;
    let job = shop.waiting().await;
    assert_eq!(shop.world.run(&["jobs", "answer", &job, "yes"]).await.code, Some(0));
    let got = result(&mut server, id).await;
    assert_eq!(text(&got), "was yes\n", "{got}");
    let asked = server.seen.iter().filter(|it| it["method"] == "elicitation/create").count();
    assert_eq!(asked, 1, "a closed form is not shown again");

    let other = self::shop(ASK, "").await;
    let mut server = other.connect("2025-06-18", json!({ "elicitation": {} })).await;
    let id = server.send("tools/call", call()).await;
    let asked = question(&mut server).await;
    let job = other.waiting().await;
    assert_eq!(other.world.run(&["jobs", "answer", &job, "no"]).await.code, Some(0));
    assert_eq!(text(&result(&mut server, id).await), "was no\n");
    let withdrawn = loop {
        let is_withdrawal = |it: &&Value| it["method"] == "notifications/cancelled";
        if let Some(found) = server.seen.iter().find(is_withdrawal) {
            break found.clone();
        }
        server.message().await.expect("the server runs");
    };
    assert_eq!(withdrawn["params"]["requestId"], asked["id"], "{withdrawn}");
}

/// M4: an answer that is not among the choices is asked for again, a few times during one call.
#[tokio::test]
async fn m4_a_form_with_a_wrong_answer_is_shown_again_a_few_times() {
    let accept = |text: &str| json!({ "action": "accept", "content": { "answer": text } });
    let shop = shop(ASK, "").await;
    let mut server = shop.connect("2025-11-25", json!({ "elicitation": {} })).await;
    let id = server.send("tools/call", call()).await;
    let asked = question(&mut server).await;
    react(&mut server, &asked, accept("perhaps")).await;
    let again = question(&mut server).await;
    assert_eq!(again["params"]["message"], asked["params"]["message"]);
    react(&mut server, &again, accept("yes")).await;
    assert_eq!(text(&result(&mut server, id).await), "was yes\n");

    let other = self::shop(ASK, "").await;
    let mut server = other.connect("2025-11-25", json!({ "elicitation": {} })).await;
    let id = server.send("tools/call", call()).await;
    for _ in 0..4 {
        let asked = question(&mut server).await;
        react(&mut server, &asked, accept(&"x".repeat(1 << 20))).await;
    }
    let job = other.waiting().await;
    assert_eq!(other.world.run(&["jobs", "answer", &job, "no"]).await.code, Some(0));
    assert_eq!(text(&result(&mut server, id).await), "was no\n");
    let asked = server.seen.iter().filter(|it| it["method"] == "elicitation/create").count();
    assert_eq!(asked, 4);
}

/// M4: a client that cannot ask gets a text that says how to answer; the repeated call gets the result.
#[tokio::test]
async fn m4_a_client_without_elicitation_gets_the_way_to_answer() {
    let url_only = json!({ "elicitation": { "url": {} } });
    for capabilities in [json!({}), url_only] {
        let shop = shop(ASK, "").await;
        let mut server = shop.connect("2025-11-25", capabilities).await;
        let printed = server.call("script", json!({})).await;
        assert_refused(&printed, "NOT_ANSWERED", true);
        let job = shop.waiting().await;
        assert!(text(&printed).contains("Deploy?"), "{printed}");
        assert!(text(&printed).contains(&format!("outlast jobs answer {job} TEXT")), "{printed}");
        assert_eq!(shop.world.run(&["jobs", "answer", &job, "yes"]).await.code, Some(0));
        let got = server.call("script", json!({})).await;
        assert_eq!(text(&got), "was yes\n", "{got}");
    }
}

/// M4: a client of 2026-07-28 gets the question as the answer to its call. The signed state is valid for the same call alone.
#[tokio::test]
async fn m4_a_call_of_the_newest_revision_is_answered_with_its_question() {
    let shop = shop(ASK, "").await;
    let config = shop.config();
    let arguments: Vec<&str> = ["serve", "--config", &config].into_iter().chain(BLOCKING).collect();
    let mut server = shop.world.spawn(&arguments);
    let able = json!({ "elicitation": { "form": {} } });
    let asked = server.request("tools/call", modern(&able, call())).await["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let requests = asked["inputRequests"].as_object().unwrap();
    let (key, request) = requests.iter().next().unwrap();
    assert_eq!(request["method"], "elicitation/create");
    assert_eq!(request["params"]["message"], "Deploy?");
    let state = asked["requestState"].as_str().unwrap();

    let with = |state: &str, arguments: Value| {
        let answer = json!({ "action": "accept", "content": { "answer": "yes" } });
        let params = json!({
            "name": "script", "arguments": arguments, "requestState": state, "inputResponses": { key: answer }
        });
        modern(&able, params)
    };
    let forged = format!("{}A", &state[..state.len() - 1]);
    for refused in [with(&forged, json!({})), with(state, json!({ "message": "other" }))] {
        let refused = server.request("tools/call", refused).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    shop.waiting().await;
    let mut maybe = with(state, json!({}));
    maybe["inputResponses"][key]["content"]["answer"] = json!("maybe");
    let mut nothing = with(state, json!({}));
    nothing["inputResponses"] = json!({});
    for unanswered in [maybe, nothing] {
        let asked = server.request("tools/call", unanswered).await["result"].clone();
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        assert!(asked["inputRequests"][key].is_object(), "{asked}");
    }
    let got = server.request("tools/call", with(state, json!({}))).await["result"].clone();
    assert_eq!(text(&got), "was yes\n", "{got}");
    let again = server.request("tools/call", with(state, json!({}))).await["result"].clone();
    assert_eq!(text(&again), "was yes\n", "the first answer counts: {again}");

    let mut other = call();
    other["arguments"] = json!({ "message": "another call" });
    let unable = modern(&json!({}), other);
    let printed = server.request("tools/call", unable).await["result"].clone();
    assert_refused(&printed, "NOT_ANSWERED", true);
}

/// M4: a task that waits for an answer requires input; `tasks/update` answers it, and ignores what is unknown or answered.
#[tokio::test]
async fn m4_a_task_requires_input_and_is_answered_by_an_update() {
    let shop = shop(ASK, "").await;
    let config = shop.config();
    let arguments: Vec<&str> = ["serve", "--config", &config].into_iter().chain(BLOCKING).collect();
    let mut server = shop.world.spawn(&arguments);
    let able = json!({ "elicitation": { "form": {} }, "extensions": { TASKS: {} } });
    let unable = json!({ "extensions": { TASKS: {} } });
    let created = server.request("tools/call", modern(&able, call())).await["result"].clone();
    let id = created["taskId"].as_str().unwrap_or_else(|| panic!("{created}")).to_owned();
    shop.waiting().await;
    let get = |capabilities: &Value| modern(capabilities, json!({ "taskId": id }));
    let task = server.request("tasks/get", get(&able)).await["result"].clone();
    assert_eq!(task["status"], "input_required", "{task}");
    let key = task["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let plain = server.request("tasks/get", get(&unable)).await["result"].clone();
    assert_eq!(plain["status"], "working", "a client that cannot ask is not asked: {plain}");
    assert!(plain["statusMessage"].as_str().unwrap().contains("outlast jobs answer"), "{plain}");
    for (key, answer) in [("unknown", "no"), (&*key, "yes"), (&*key, "no")] {
        let response = json!({ "action": "accept", "content": { "answer": answer } });
        let update = json!({ "taskId": id, "inputResponses": { key: response } });
        let done = server.request("tasks/update", modern(&able, update)).await;
        assert!(done["result"].is_object(), "{done}");
    }
    let ended = async {
        loop {
            let task = server.request("tasks/get", get(&able)).await["result"].clone();
            if task["status"] == "completed" {
                return task;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let task = tokio::time::timeout(Duration::from_secs(60), ended).await.expect("it ends");
    assert_eq!(text(&task["result"]), "was yes\n", "{task}");
}

/// M4: a task of 2025-11-25 requires input, and `tasks/result` asks with the task's id.
#[tokio::test]
async fn m4_the_result_of_an_older_task_asks_the_user() {
    let shop = shop(ASK, "").await;
    let mut server = shop.connect("2025-11-25", json!({ "elicitation": {}, "tasks": {} })).await;
    let mut started = call();
    started["task"] = json!({});
    let created = server.request("tools/call", started).await["result"].clone();
    let id = created["task"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}")).to_owned();
    shop.waiting().await;
    let task = server.request("tasks/get", json!({ "taskId": id })).await["result"].clone();
    assert_eq!(task["status"], "input_required", "{task}");
    let call = server.send("tasks/result", json!({ "taskId": id })).await;
    let asked = question(&mut server).await;
    let related = &asked["params"]["_meta"]["io.modelcontextprotocol/related-task"];
    assert_eq!(related["taskId"], *id, "{asked}");
    let yes = json!({ "action": "accept", "content": { "answer": "yes" } });
    react(&mut server, &asked, yes).await;
    assert_eq!(text(&result(&mut server, call).await), "was yes\n");
}

/// M4: the state of a question is of no use to another owner.
#[tokio::test]
async fn m4_a_state_belongs_to_its_owner() {
    let mut shop = shop(ASK, "").await;
    let config = shop.config();
    let flags: Vec<&str> = ["--config", &config].into_iter().chain(BLOCKING).collect();
    let served = Served::start(&mut shop.world, &flags).await;
    let able = json!({ "elicitation": { "form": {} } });
    let ask = async |token: &str, params: Value| {
        served.client(token).modern("tools/call", "script", params, &able).await.result().await
    };
    let asked = ask(ANN, call()).await;
    let state = asked["result"]["requestState"].as_str().unwrap_or_else(|| panic!("{asked}"));
    let key = asked["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let yes = json!({ "action": "accept", "content": { "answer": "yes" } });
    let mut answered = call();
    answered["requestState"] = json!(state);
    answered["inputResponses"] = json!({ key: yes });
    let refused = ask(BOB, answered.clone()).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let got = ask(ANN, answered).await;
    assert_eq!(text(&got["result"]), "was yes\n", "{got}");
}

/// M4: over streamable HTTP the question comes on the stream of the call, and the answer is a message of its session.
#[tokio::test]
async fn m4_over_http_the_question_comes_on_the_stream_of_the_call() {
    let mut shop = shop(ASK, "").await;
    let config = shop.config();
    let flags: Vec<&str> = ["--config", &config].into_iter().chain(BLOCKING).collect();
    let served = Served::start(&mut shop.world, &flags).await;
    let client = served.client(ANN);
    let hello = json!({ "jsonrpc": "2.0", "id": 6, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": { "elicitation": { "form": {} } },
        "clientInfo": { "name": "c", "version": "1" }
    } });
    let greeted = client.post(None, &hello).await;
    let session = greeted.header("mcp-session-id").expect("a session").to_owned();
    greeted.result().await;
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    client.post(Some(&session), &initialized).await;
    let request = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call() });
    let mut stream = client.post(Some(&session), &request).await;
    let asked = stream.event().await.expect("the question");
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    let yes = json!({ "action": "accept", "content": { "answer": "yes" } });
    let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": yes });
    assert_eq!(client.post(Some(&session), &answer).await.status, 202);
    let got = stream.event().await.expect("the answer");
    assert_eq!((&got["id"], text(&got["result"])), (&json!(7), "was yes\n"), "{got}");
}
