//! `deep_research{approve_plan: true}` (M4): the user approves the plan of the researcher in the client, on the command line
//! or not at all. Nothing but the plan is paid for before.

use outlast_testkit::mcp_process::McpProcess;
use serde_json::{Value, json};

use crate::http::client::{ANN, BOB, Served};
use crate::jobs::elicitation::{modern, question, react, result, text, waiting};
use crate::researcher::simulated;
use crate::support::{World, assert_refused};

const TOOL: &str = "deep_research";

/// The reactions of a user to the form.
fn accept() -> Value {
    json!({ "action": "accept", "content": { "answer": "yes" } })
}

fn decline() -> Value {
    json!({ "action": "decline" })
}

async fn world() -> World {
    let mut world = simulated("-").await;
    world.set("OUTLAST_PROVIDERS", "researcher");
    world.set("OUTLAST_TOOLS", "deep-research");
    world
}

fn call() -> Value {
    json!({ "name": TOOL, "arguments": { "query": "How efficient are heat pumps?", "approve_plan": true } })
}

/// Returns the numbers of requests to the model and to the search service.
fn requests(world: &World) -> (u64, u64) {
    let calls = world.simulator.calls();
    let Some(lane) = calls.lanes.get("-") else { return (0, 0) };
    let sum = |bodies: Vec<u64>| bodies.into_iter().sum();
    let model = lane.model.values().map(|body| body.requests).collect();
    let search = lane.search.values().map(|body| body.requests).collect();
    (sum(model), sum(search))
}

/// The requests of a run that has made its plan and nothing else.
const ONLY_THE_PLAN: (u64, u64) = (1, 0);

fn assert_plan_is_shown(form: &Value) {
    let message = form["params"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("Start the research with this plan?"), "{form}");
    assert!(message.contains("1. ") && message.contains("it is free"), "{form}");
}

fn assert_report(got: &Value) {
    let report = got["structuredContent"]["rawResultText"].as_str().unwrap_or_default();
    assert!(report.contains("## Summary") && report.contains("[1]"), "{got}");
}

fn assert_cancelled(got: &Value) {
    assert!(got["isError"] == true && text(got).contains("was cancelled"), "{got}");
}

async fn connect(world: &World, version: &str, capabilities: Value) -> McpProcess {
    let mut server = world.spawn(&["serve"]);
    let client = json!({ "name": "c", "version": "1" });
    let hello = json!({
        "protocolVersion": version, "capabilities": capabilities, "clientInfo": client
    });
    server.request("initialize", hello).await;
    server.notify("notifications/initialized", json!({})).await;
    server
}

async fn state(world: &World, id: &str) -> Value {
    world.shown(id).await["state"].clone()
}

/// M4: a yes in the form starts the paid part, and the call gets the report.
#[tokio::test]
async fn m4_an_accepted_plan_is_researched() {
    for version in ["2025-06-18", "2025-11-25"] {
        let world = world().await;
        let mut server = connect(&world, version, json!({ "elicitation": {} })).await;
        let id = server.send("tools/call", call()).await;
        let form = question(&mut server).await;
        assert_plan_is_shown(&form);
        let job = waiting(&world).await;
        assert_eq!(requests(&world), ONLY_THE_PLAN);
        react(&mut server, &form, accept()).await;
        assert_report(&result(&mut server, id).await);
        assert_eq!(state(&world, &job).await, "succeeded");
    }
}

/// M4: declining is a no: the job is cancelled and nothing more was paid for. The same call again asks again.
#[tokio::test]
async fn m4_a_declined_plan_costs_nothing_more() {
    let world = world().await;
    let mut server = connect(&world, "2025-11-25", json!({ "elicitation": {} })).await;
    let id = server.send("tools/call", call()).await;
    let form = question(&mut server).await;
    let job = waiting(&world).await;
    react(&mut server, &form, decline()).await;
    let got = result(&mut server, id).await;
    assert_cancelled(&got);
    assert_eq!(state(&world, &job).await, "cancelled");
    assert_eq!(requests(&world), ONLY_THE_PLAN);

    let id = server.send("tools/call", call()).await;
    let form = question(&mut server).await;
    assert_eq!(requests(&world), ONLY_THE_PLAN, "the plan is used again");
    react(&mut server, &form, accept()).await;
    assert_report(&result(&mut server, id).await);
}

/// M4: a client that cannot ask gets the way to answer; after `jobs answer` the repeated call gets the report.
#[tokio::test]
async fn m4_a_plan_is_approved_on_the_command_line() {
    let world = world().await;
    let mut server = connect(&world, "2025-11-25", json!({})).await;
    let printed = server.request("tools/call", call()).await["result"].clone();
    assert_refused(&printed, "NOT_ANSWERED", true);
    let job = waiting(&world).await;
    assert!(text(&printed).contains(&format!("outlast jobs answer {job} TEXT")), "{printed}");
    let again = server.request("tools/call", call()).await["result"].clone();
    assert_refused(&again, "NOT_ANSWERED", true);
    assert_eq!(requests(&world), ONLY_THE_PLAN);
    assert_eq!(world.run(&["jobs", "answer", &job, "yes"]).await.code, Some(0));
    let second = world.run(&["jobs", "answer", &job, "no"]).await;
    assert_eq!(second.code, Some(1), "{second:?}");
    assert_report(&server.request("tools/call", call()).await["result"]);
    assert_eq!(state(&world, &job).await, "succeeded");
}

/// M4: the same with a no, whose call nobody repeats.
#[tokio::test]
async fn m4_a_plan_is_declined_on_the_command_line() {
    let world = world().await;
    let mut server = connect(&world, "2025-11-25", json!({})).await;
    let printed = server.request("tools/call", call()).await["result"].clone();
    assert_refused(&printed, "NOT_ANSWERED", true);
    let job = waiting(&world).await;
    server.kill().await;
    assert_eq!(world.run(&["jobs", "answer", &job, "no"]).await.code, Some(0));
    let ended = async {
        while state(&world, &job).await != "cancelled" {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), ended).await.expect("it ends");
    assert_eq!(requests(&world), ONLY_THE_PLAN);
}

/// M4: a client of 2026-07-28 gets the plan as the answer to its call, over stdio and over HTTP.
#[tokio::test]
async fn m4_a_plan_is_the_answer_to_a_call_of_the_newest_revision() {
    let able = json!({ "elicitation": { "form": {} } });
    for reaction in [accept(), decline()] {
        let world = world().await;
        let mut server = world.spawn(&["serve"]);
        let asked = server.request("tools/call", modern(&able, call())).await["result"].clone();
        let answered = answer_to(&asked, &reaction);
        assert_eq!(requests(&world), ONLY_THE_PLAN);
        let got = server.request("tools/call", modern(&able, answered)).await["result"].clone();
        assert_outcome(&world, &got, &reaction);
    }
    for reaction in [accept(), decline()] {
        let mut world = world().await;
        let served = Served::start(&mut world, &[]).await;
        let call_as = async |token: &str, params: Value| {
            let client = served.client(token);
            client.modern("tools/call", TOOL, params, &able).await.result().await
        };
        let asked = call_as(ANN, call()).await["result"].clone();
        let answered = answer_to(&asked, &reaction);
        let foreign = call_as(BOB, answered.clone()).await;
        assert_eq!(foreign["error"]["code"], -32602, "{foreign}");
        assert_eq!(requests(&world), ONLY_THE_PLAN);
        let got = call_as(ANN, answered).await["result"].clone();
        assert_outcome(&world, &got, &reaction);
    }
}

/// Repeats the call with the reaction to its question.
fn answer_to(asked: &Value, reaction: &Value) -> Value {
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let (key, form) = asked["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_plan_is_shown(form);
    let mut answered = call();
    answered["requestState"] = asked["requestState"].clone();
    answered["inputResponses"] = json!({ key: reaction });
    answered
}

fn assert_outcome(world: &World, got: &Value, reaction: &Value) {
    if *reaction == accept() {
        assert_report(got);
    } else {
        assert_cancelled(got);
        assert_eq!(requests(world), ONLY_THE_PLAN);
    }
}

/// M4: over streamable HTTP the plan comes on the stream of the call; a client without elicitation gets the way to answer, also
/// on the page.
#[tokio::test]
async fn m4_a_plan_is_approved_over_http() {
    let mut world = world().await;
    world.set("OUTLAST_OWNER", "ann");
    let served = Served::start(&mut world, &[]).await;
    let client = served.client(ANN);
    let hello = |capabilities: Value| {
        json!({ "jsonrpc": "2.0", "id": 6, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": { "name": "c", "version": "1" }
        } })
    };
    let open = async |capabilities: Value| {
        let greeted = client.post(None, &hello(capabilities)).await;
        let session = greeted.header("mcp-session-id").expect("a session").to_owned();
        greeted.result().await;
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        client.post(Some(&session), &initialized).await;
        session
    };
    let request = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call() });
    let unable = open(json!({})).await;
    let printed = client.post(Some(&unable), &request).await.result().await["result"].clone();
    assert_refused(&printed, "NOT_ANSWERED", true);
    let job = waiting(&world).await;
    assert!(text(&printed).contains(&format!("/ui/jobs/{job}")), "{printed}");
    assert_eq!(requests(&world), ONLY_THE_PLAN);

    let able = open(json!({ "elicitation": { "form": {} } })).await;
    let mut stream = client.post(Some(&able), &request).await;
    let form = stream.event().await.expect("the question");
    assert_eq!(form["method"], "elicitation/create", "{form}");
    assert_plan_is_shown(&form);
    let answer = json!({ "jsonrpc": "2.0", "id": form["id"], "result": accept() });
    assert_eq!(client.post(Some(&able), &answer).await.status, 202);
    let got = loop {
        let event = stream.event().await.expect("the answer");
        if event["id"] == 7 {
            break event["result"].clone();
        }
    };
    assert_report(&got);
    let repeated = client.post(Some(&unable), &request).await.result().await["result"].clone();
    assert_report(&repeated);
}
