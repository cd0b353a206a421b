//! I7: the view inside the chat. Tests ask the real server as a client that shows views does, in both eras.

use outlast_testkit::mcp_process::McpProcess;
use serde_json::{Value, json};

use crate::support::{START, World, finished, question, running};

const UI: &str = "io.modelcontextprotocol/ui";

/// A client of the stateless era that shows views, or does not.
struct Client {
    server: McpProcess,
    capabilities: Value,
}

impl Client {
    fn new(world: &World, shows: bool) -> Self {
        let extensions = if shows { json!({ UI: { "mimeTypes": [MIME] } }) } else { json!({}) };
        Self { server: world.spawn(&["serve"]), capabilities: json!({ "extensions": extensions }) }
    }

    async fn ask(&mut self, method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "0" },
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
        });
        self.server.request(method, params).await
    }

    async fn show(&mut self, arguments: Value) -> Value {
        let call = json!({ "name": "show_job", "arguments": arguments });
        self.ask("tools/call", call).await["result"]["structuredContent"].clone()
    }
}

const MIME: &str = "text/html;profile=mcp-app";

fn named<'a>(tools: &'a Value, name: &str) -> &'a Value {
    let tools = tools["result"]["tools"].as_array().unwrap();
    tools.iter().find(|tool| tool["name"] == name).unwrap_or(&Value::Null)
}

/// I7: start, poll and research tools name a page, which is read as a resource; the page's own tool is for pages alone.
#[tokio::test]
async fn i7_tools_have_views_for_clients_that_show_them() {
    let world = World::new().await;
    let mut client = Client::new(&world, true);
    let discovered = client.ask("server/discover", json!({})).await;
    assert!(discovered["result"]["capabilities"]["resources"].is_object(), "{discovered}");
    let tools = client.ask("tools/list", json!({})).await;
    for (tool, page) in [
        (START, "ui://outlast/job"),
        ("perplexity_research_poll", "ui://outlast/job"),
        ("perplexity_deep_research", "ui://outlast/report"),
        ("perplexity_deep_research_followup", "ui://outlast/report"),
    ] {
        assert_eq!(named(&tools, tool)["_meta"]["ui"]["resourceUri"], page, "{tool}");
        let read = client.ask("resources/read", json!({ "uri": page })).await;
        let contents = &read["result"]["contents"][0];
        assert_eq!((&contents["uri"], &contents["mimeType"]), (&json!(page), &json!(MIME)));
        assert!(contents["text"].as_str().unwrap().contains("ui/initialize"), "{read}");
    }
    assert_eq!(named(&tools, "list_conversations").get("_meta"), None);
    let own = named(&tools, "show_job");
    assert_eq!(own["_meta"]["ui"], json!({ "visibility": ["app"] }));
    let listed = client.ask("resources/list", json!({})).await;
    assert_eq!(listed["result"]["resources"].as_array().unwrap().len(), 2, "{listed}");
    let unknown = client.ask("resources/read", json!({ "uri": "ui://outlast/other" })).await;
    assert!(unknown["error"]["message"].as_str().unwrap().contains("resources/list"), "{unknown}");
}

/// I7: the same in the handshake era; other clients get no views.
#[tokio::test]
async fn i7_other_clients_see_nothing_of_it() {
    let world = World::new().await;
    let mut other = Client::new(&world, false);
    let tools = other.ask("tools/list", json!({})).await;
    assert_eq!(named(&tools, "show_job"), &Value::Null);
    assert_eq!(named(&tools, START).get("_meta"), None);
    let listed = other.ask("resources/list", json!({})).await;
    assert_eq!(listed["result"]["resources"], json!([]), "{listed}");
    let read = other.ask("resources/read", json!({ "uri": "ui://outlast/job" })).await;
    assert_eq!(read["error"]["code"], -32602, "{read}");
    let refused = other.ask("tools/call", json!({ "name": "show_job", "arguments": {} })).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");

    for (capabilities, shows) in [(json!({ "extensions": { UI: {} } }), true), (json!({}), false)] {
        let mut server = world.spawn(&["serve"]);
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities,
            "clientInfo": { "name": "test", "version": "0" },
        });
        server.request("initialize", hello).await;
        server.notify("notifications/initialized", json!({})).await;
        let tools = server.request("tools/list", json!({})).await;
        assert_eq!(named(&tools, "show_job").is_object(), shows);
        let listed = server.request("resources/list", json!({})).await;
        let pages = listed["result"]["resources"].as_array().unwrap();
        assert_eq!(pages.len(), if shows { 2 } else { 0 }, "{listed}");
    }
}

/// I7: the page's tool reports a job's progress and returns its report as safe HTML with linked sources. A held call,
/// whose id is not yet known, is found by its question. Another owner's job is not found.
#[tokio::test]
async fn i7_a_view_follows_its_job() {
    let mut world = World::new().await;
    let mut server = world.serve().await;
    let started = server.structured(START, question("ok;words=80;hold=true")).await;
    let id = started["jobId"].as_str().unwrap();
    running(&world, id).await;
    let mut client = Client::new(&world, true);
    let view = client.show(json!({ "id": id })).await;
    assert_eq!(
        (&view["found"], &view["done"], &view["status"]),
        (&json!(true), &json!(false), &json!("running")),
        "{view}"
    );
    let by_question = client.show(json!({ "query": view["title"] })).await;
    assert_eq!(by_question["jobId"], id, "{by_question}");
    world.simulator.release();
    finished(&mut server, id).await;
    let view = client.show(json!({ "id": id })).await;
    assert_eq!((&view["done"], &view["status"]), (&json!(true), &json!("succeeded")), "{view}");
    let report = view["report"].as_str().unwrap();
    assert!(report.contains("<article") && report.contains("href=\"http"), "{report}");
    assert_eq!(client.show(json!({})).await, json!({ "found": false }));
    assert_eq!(client.show(json!({ "id": "made-up-id" })).await, json!({ "found": false }));
    world.set("OUTLAST_OWNER", "bob");
    let mut bob = Client::new(&world, true);
    assert_eq!(bob.show(json!({ "id": id })).await, json!({ "found": false }));
}

/// I7: if the page is served, the answer of a start links it, as the last sentence and in `_meta`.
#[tokio::test]
async fn i7_a_start_links_the_page() {
    let mut world = World::new().await;
    let mut silent = world.serve().await;
    let without = silent.call(START, question("ok")).await;
    assert_eq!(without.get("_meta").and_then(|meta| meta.get("outlast/page")), None, "{without}");
    world.set("OUTLAST_PUBLIC_URL", "https://research.example/base/");
    world.set("OUTLAST_ASYNC_RESEARCH", "true");
    let mut server = world.serve().await;
    let answer = server.call(START, question("ok")).await;
    let shape = &answer["structuredContent"];
    let link =
        format!("https://research.example/base/ui/jobs/{}", shape["jobId"].as_str().unwrap());
    assert_eq!(answer["_meta"]["outlast/page"], json!(link), "{answer}");
    assert!(shape["message"].as_str().unwrap().ends_with(&link), "{shape}");
    let text: Value = serde_json::from_str(answer["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(&text, shape, "the text is the same");
    let queued = server.call("perplexity_deep_research", json!({ "query": "q [[sim:ok]]" })).await;
    let shape = &queued["structuredContent"];
    let id = shape["conversationId"].as_str().unwrap();
    let link = format!("https://research.example/base/ui/conversations/{id}");
    assert_eq!(queued["_meta"]["outlast/page"], json!(link), "{queued}");
    assert!(queued["content"][0]["text"].as_str().unwrap().ends_with(&link), "{queued}");
    assert_eq!(shape["rawResultText"], queued["content"][0]["text"]);

    world.set("OUTLAST_PUBLIC_URL", "research.example");
    let refused = world.run(&["serve"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("OUTLAST_PUBLIC_URL"), "{refused:?}");
}
