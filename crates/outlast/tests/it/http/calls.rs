//! Calls of both eras: the jobs that they see, and their progress.

use serde_json::{Value, json};

use super::client::{ANN, BOB, Client, Served, call};
use crate::faults::hostile::{assert_error, malformed};
use crate::support::{CANCEL, POLL, START, World, question, running};

async fn started(client: &Client, scenario: &str) -> String {
    let started = client.call(START, question(scenario)).await;
    started["jobId"].as_str().unwrap().to_owned()
}

/// E7: another owner's job behaves like one that never existed.
#[tokio::test]
async fn e7_one_owner_cannot_see_another_owners_job() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "50");
    let served = Served::start(&mut world, &[]).await;
    let (ann, bob) = (served.client(ANN), served.client(BOB));
    let id = started(&ann, "stuck").await;
    let never = "0".repeat(32);
    for tool in [POLL, CANCEL] {
        let foreign = bob.call(tool, json!({ "jobId": id })).await;
        let unknown = bob.call(tool, json!({ "jobId": never })).await;
        assert_eq!(foreign["status"], "NOT_FOUND", "{foreign}");
        let same = foreign.to_string().replace(&id, &never);
        assert_eq!(same, unknown.to_string(), "{tool} distinguishes them");
    }
    let own = ann.call(POLL, json!({ "jobId": id })).await;
    assert!(matches!(own["status"].as_str(), Some("CREATED" | "IN_PROGRESS")), "{own}");
}

/// The token made at first start is the local owner's, as stdio is.
#[tokio::test]
async fn e7_http_and_stdio_of_one_user_see_the_same_jobs() {
    let world = World::new().await;
    let served = Served::start_as_it_is(&world, &[]).await;
    let token = std::fs::read_to_string(world.data_dir().join("http-token")).unwrap();
    let id = started(&served.client(token.trim()), "ok;words=60;delay_ms=0").await;
    let mut stdio = world.serve().await;
    assert_eq!(crate::support::finished(&mut stdio, &id).await["status"], "COMPLETED");
}

/// Both eras: progress arrives while the call is held, the result after it.
#[tokio::test]
async fn progress_arrives_before_the_result() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "3600000");
    world.set("OUTLAST_OWNER", "ann");
    let served = Served::start(&mut world, &[]).await;
    let ann = served.client(ANN);
    let session = ann.initialize().await;
    for modern in [false, true] {
        let id = started(&ann, "ok;words=60;hold=true").await;
        running(&world, &id).await;
        let (arguments, meta) = (json!({ "jobId": id }), json!({ "progressToken": "p" }));
        let mut reply = if modern {
            ann.ask(POLL, arguments, meta).await
        } else {
            ann.post(Some(&session), &call(POLL, &arguments, &meta)).await
        };
        let first = reply.event().await.unwrap();
        assert_eq!(first["method"], "notifications/progress", "{first}");
        assert_eq!(first["params"]["progressToken"], "p", "{first}");
        world.simulator.release();
        let answer = reply.result().await;
        assert_eq!(answer["result"]["structuredContent"]["status"], "COMPLETED", "{answer}");
    }
}

/// A7: a client that hangs up ends the wait, never the job.
#[tokio::test]
async fn a7_a_closed_stream_never_stops_the_job() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "3600000");
    world.set("OUTLAST_OWNER", "ann");
    let served = Served::start(&mut world, &[]).await;
    let ann = served.client(ANN);
    let id = started(&ann, "ok;words=60;hold=true").await;
    running(&world, &id).await;
    let session = ann.initialize().await;
    let (arguments, meta) = (json!({ "jobId": id }), json!({ "progressToken": "p" }));
    for mut reply in [
        ann.ask(POLL, arguments.clone(), meta.clone()).await,
        ann.post(Some(&session), &call(POLL, &arguments, &meta)).await,
    ] {
        assert_eq!(reply.event().await.unwrap()["method"], "notifications/progress");
        drop(reply);
    }
    world.simulator.release();
    let ended = ann.call(POLL, arguments).await;
    assert_eq!(ended["status"], "COMPLETED", "{ended}");
    assert_eq!(world.submits(), 1);
}

/// The same messages as over stdio get the same answers.
#[tokio::test]
async fn a_message_that_cannot_be_read_is_refused_under_its_id() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let ann = served.client(ANN);
    let session = ann.initialize().await;
    for (message, id, code, words) in malformed() {
        let reply = ann.post_text(Some(&session), &message).await;
        let answer = match reply.status {
            400 => serde_json::from_str(&reply.body().await).unwrap(),
            _ => reply.result().await,
        };
        assert_error(&message, &answer, &id, code, words);
    }
    assert_eq!(world.submits(), 0);
}

/// Errors inside MCP are JSON-RPC errors; the session continues.
#[tokio::test]
async fn a_mistake_inside_mcp_is_a_json_rpc_error() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let ann = served.client(ANN);
    let session = ann.initialize().await;
    let answer =
        ann.post(Some(&session), &call("dance", &json!({}), &json!({}))).await.result().await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let listed = json!({ "jsonrpc": "2.0", "id": 8, "method": "tools/list" });
    let listed = ann.post(Some(&session), &listed).await.result().await;
    let names: Vec<&Value> =
        listed["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert!(names.contains(&&json!(POLL)), "{names:?}");
}

/// The example in docs/http.md works as printed, on any port.
#[tokio::test]
async fn the_curl_example_of_the_docs_works() {
    let mut world = World::new().await;
    world.unset("OUTLAST_DATA_DIR");
    let served = Served::start_as_it_is(&world, &[]).await;
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/http.md");
    let page = std::fs::read_to_string(page).unwrap();
    let example = page.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    assert!(example.starts_with("curl "), "{example}");
    let home = &world.environment.iter().find(|(name, _)| name == "HOME").unwrap().1;
    let output = tokio::process::Command::new("sh")
        .args(["-c", &example.replace("127.0.0.1:8080", &served.address.to_string())])
        .env("HOME", home)
        .output()
        .await
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let data = said
        .lines()
        .find_map(|line| line.strip_prefix("data:"))
        .unwrap_or_else(|| panic!("{said}"));
    let answer: Value = serde_json::from_str(data).unwrap();
    assert_eq!(answer["result"]["structuredContent"]["conversations"], json!([]), "{answer}");
}
