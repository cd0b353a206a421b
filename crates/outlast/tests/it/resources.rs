//! Reports and jobs as MCP resources, in both eras, over a pipe and over HTTP; and reports that are too long for an answer.

mod long;
mod subscribed;

use outlast_testkit::mcp_process::McpProcess;
use serde_json::{Value, json};

use crate::http::client::{ANN, BOB, Served};
use crate::support::{START, World, finished, start};

const DEEP: &str = "perplexity_deep_research";
const HISTORY: &str = "get_conversation_history";
const QUICK: &str = "[[sim:ok;words=60;sources=2;delay_ms=0]]";

/// Returns the `_meta` of a request of the newer era.
fn modern(capabilities: &Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    })
}

fn uri_of(conversation: &Value) -> String {
    format!("outlast://reports/{}", conversation.as_str().unwrap())
}

/// Returns all pages of the list.
async fn listed(server: &mut McpProcess) -> Vec<Value> {
    let (mut all, mut params) = (Vec::new(), json!({}));
    loop {
        let page = server.request("resources/list", params).await["result"].clone();
        all.extend(page["resources"].as_array().unwrap().iter().cloned());
        let Some(next) = page["nextCursor"].as_str() else { return all };
        params = json!({ "cursor": next });
    }
}

/// L3: a report and its job are listed with title, size and date, and read; the answer with the report links it.
#[tokio::test]
async fn l3_reports_and_jobs_are_listed_and_read() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let answer =
        server.call(DEEP, json!({ "query": format!("Why is the sky blue? {QUICK}") })).await;
    let shape = &answer["structuredContent"];
    let uri = uri_of(&shape["conversationId"]);
    let is_link = |block: &&Value| block["type"] == "resource_link";
    let link = answer["content"].as_array().unwrap().iter().find(is_link).unwrap();
    assert_eq!((&link["uri"], &link["mimeType"]), (&json!(uri), &json!("text/markdown")), "{link}");

    let id = start(&mut server, "ok;words=60;sources=2;delay_ms=0").await;
    finished(&mut server, &id).await;
    let all = listed(&mut server).await;
    let entry = |uri: &str| all.iter().find(|entry| entry["uri"] == uri).unwrap();
    let report = entry(&uri);
    assert!(report["title"].as_str().unwrap().starts_with("Why is the sky blue?"), "{report}");
    assert!(report["annotations"]["lastModified"].as_str().unwrap().ends_with('Z'), "{report}");
    let read = server.request("resources/read", json!({ "uri": uri })).await["result"].clone();
    let content = &read["contents"][0];
    assert_eq!((&content["uri"], &content["mimeType"]), (&json!(uri), &json!("text/markdown")));
    let text = content["text"].as_str().unwrap();
    assert!(text.contains(shape["rawResultText"].as_str().unwrap()), "{text}");
    assert!(text.contains("## Sources"), "{text}");
    assert_eq!(report["size"], text.len());
    assert_eq!(content["_meta"]["outlast/untrusted"], true, "{content}");

    let job = entry(&format!("outlast://jobs/{id}"));
    assert_eq!(
        (&job["mimeType"], &job["description"]),
        (&json!("application/json"), &json!("succeeded"))
    );
    let read =
        server.request("resources/read", json!({ "uri": job["uri"] })).await["result"].clone();
    let text = read["contents"][0]["text"].as_str().unwrap();
    assert_eq!(job["size"], text.len());
    let state: Value = serde_json::from_str(text).unwrap();
    assert_eq!((&state["jobId"], &state["status"]), (&json!(id), &json!("succeeded")), "{state}");
    assert!(state["result"].as_str().unwrap().contains("Citations:"), "{state}");
    assert!(
        all.iter().any(|entry| entry["name"] == "job" && entry["uri"] != job["uri"]),
        "{all:?}"
    );

    let templates = server.request("resources/templates/list", json!({})).await["result"].clone();
    let templates = templates["resourceTemplates"].as_array().unwrap();
    let uris: Vec<&Value> = templates.iter().map(|template| &template["uriTemplate"]).collect();
    let check = "outlast://reports/{conversationId}/citations";
    assert_eq!(uris, ["outlast://reports/{conversationId}", check, "outlast://jobs/{jobId}"]);
}

/// L3: the list has pages, newest first, each resource once.
#[tokio::test]
async fn l3_the_list_has_pages_newest_first() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let mut expected = Vec::new();
    for number in 0..23 {
        let query = json!({ "query": format!("Question {number}? {QUICK}") });
        let answer = server.call(DEEP, query).await;
        expected.insert(0, uri_of(&answer["structuredContent"]["conversationId"]));
    }
    let first = server.request("resources/list", json!({})).await["result"].clone();
    assert_eq!(first["resources"].as_array().unwrap().len(), 20, "{first}");
    let all = listed(&mut server).await;
    let uris: Vec<&str> = all.iter().map(|entry| entry["uri"].as_str().unwrap()).collect();
    let (reports, jobs): (Vec<&str>, Vec<&str>) =
        uris.iter().partition(|uri| uri.starts_with("outlast://reports/"));
    assert_eq!(reports, expected);
    let dates: Vec<&str> = all
        .iter()
        .filter(|entry| entry["name"] == "job")
        .map(|entry| entry["annotations"]["lastModified"].as_str().unwrap())
        .collect();
    assert!(jobs.len() == 23 && dates.is_sorted_by(|a, b| a >= b), "{dates:?}");
    let wrong = server.request("resources/list", json!({ "cursor": "x" })).await;
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
}

/// L3: what does not exist has the error code of the client's era, with its address.
#[tokio::test]
async fn l3_unknown_resources_have_the_code_of_the_era() {
    let world = World::new().await;
    for uri in ["outlast://reports/x", "outlast://jobs/x", "outlast://else", "file:///etc/passwd"] {
        let mut legacy = world.serve().await;
        let refused = legacy.request("resources/read", json!({ "uri": uri })).await;
        assert_eq!(refused["error"]["code"], -32002, "{refused}");
        assert_eq!(refused["error"]["data"]["uri"], uri, "{refused}");
        let refused = legacy.request("resources/subscribe", json!({ "uri": uri })).await;
        assert_eq!(refused["error"]["code"], -32002, "{refused}");
        let mut newer = world.spawn(&["serve"]);
        let params = json!({ "uri": uri, "_meta": modern(&json!({})) });
        let refused = newer.request("resources/read", params).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        assert_eq!(refused["error"]["data"]["uri"], uri, "{refused}");
    }
}

/// L3: over HTTP, in both eras, another owner's resources are neither listed nor read nor subscribed to.
#[tokio::test]
async fn l3_another_owners_resources_do_not_exist() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let (ann, bob) = (served.client(ANN), served.client(BOB));
    let asked = ann.call(DEEP, json!({ "query": format!("Why? {QUICK}") })).await;
    let uri = uri_of(&asked["conversationId"]);
    for (client, is_own) in [(&ann, true), (&bob, false)] {
        let session = client.initialize().await;
        let mut list = Vec::new();
        for era in [Some(session.as_str()), None] {
            let answer = client.request(era, "resources/list", json!({})).await;
            list.push(answer["result"]["resources"].as_array().unwrap().len());
            let read = client.request(era, "resources/read", json!({ "uri": uri })).await;
            let code = if era.is_some() { -32002 } else { -32602 };
            match is_own {
                true => assert_eq!(read["result"]["contents"][0]["uri"], uri, "{read}"),
                false => assert_eq!(read["error"]["code"], code, "{read}"),
            }
            if era.is_none() {
                assert_eq!(answer["result"]["cacheScope"], "private", "{answer}");
            }
        }
        assert_eq!(list, if is_own { [2, 2] } else { [0, 0] });
        let subscribe = json!({ "uri": uri });
        let answer = client.request(Some(&session), "resources/subscribe", subscribe).await;
        assert_eq!(answer.get("error").is_none(), is_own, "{answer}");
    }
}

/// L3: a client of a revision without links in results gets none, because it would refuse the whole answer.
#[tokio::test]
async fn l3_an_older_client_gets_no_link() {
    let world = World::new().await;
    let mut server = world.spawn(&["serve"]);
    let info = json!({ "protocolVersion": "2025-03-26", "capabilities": {},
        "clientInfo": { "name": "old", "version": "0" } });
    server.request("initialize", info).await;
    server.notify("notifications/initialized", json!({})).await;
    let answer = server.call(DEEP, json!({ "query": format!("Why? {QUICK}") })).await;
    let blocks = answer["content"].as_array().unwrap();
    assert!(blocks.iter().all(|block| block["type"] == "text"), "{answer}");
    let history = json!({ "conversationId": answer["structuredContent"]["conversationId"] });
    let history = server.call(HISTORY, history).await;
    let blocks = history["content"].as_array().unwrap();
    assert!(blocks.iter().all(|block| block["type"] == "text"), "{history}");
    let started = server.call(START, crate::support::question("ok;words=60;delay_ms=0")).await;
    assert!(started["structuredContent"]["jobId"].is_string(), "{started}");
}
