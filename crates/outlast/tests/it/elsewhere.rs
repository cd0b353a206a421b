//! A client cannot make the server call an address: whatever the arguments of any tool contain, only the configured
//! provider is called, and only at paths of its API.

use std::net::TcpListener;

use outlast_simulator::{Options, SonarMode};
use serde_json::{Map, Value, json};

use crate::support::World;

/// Returns arguments for a schema, with this text in every place that may have a text.
fn filled(schema: &Value, whole: &Value, text: &str) -> Value {
    if let Some(path) = schema["$ref"].as_str() {
        let target = whole.pointer(path.trim_start_matches('#')).unwrap();
        return filled(target, whole, text);
    }
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    if let Some(choices) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        return filled(&choices[0], whole, text);
    }
    let kind = schema["type"].as_str().or(schema["type"].get(0).and_then(Value::as_str));
    match kind {
        Some("object") => {
            let empty = Map::new();
            let fields = schema["properties"].as_object().unwrap_or(&empty);
            let mut object: Map<String, Value> = fields
                .iter()
                .map(|(name, field)| (name.clone(), filled(field, whole, text)))
                .collect();
            if fields.is_empty() {
                object.insert("url".to_owned(), text.into());
            }
            object.into()
        }
        Some("array") => json!([filled(&schema["items"], whole, text)]),
        Some("integer" | "number") => schema["minimum"].as_u64().unwrap_or(1).into(),
        Some("boolean") => true.into(),
        _ => text.into(),
    }
}

/// Returns the same arguments, but only the required ones: a refused filter must not hide the question.
fn required(schema: &Value, text: &str) -> Value {
    let names = schema["required"].as_array().cloned().unwrap_or_default();
    let filled = filled(schema, schema, text);
    let kept = filled.as_object().unwrap().clone().into_iter();
    Value::Object(kept.filter(|(name, _)| names.contains(&json!(name))).collect())
}

#[tokio::test]
async fn no_argument_of_any_tool_leads_to_another_address() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let host = elsewhere.local_addr().unwrap().to_string();
    let texts = [
        format!("http://{host}/stolen"),
        format!("//{host}/x"),
        format!("@{host}/../../x"),
        format!("../../..//{host}"),
        format!("x\r\nHost: {host}"),
    ];
    for (api, sets) in
        [("agent", "perplexity,research,research-jobs,jobs"), ("sonar", "perplexity")]
    {
        let mut world = World::with(Options { sonar: SonarMode::Live, ..Options::default() }).await;
        world.set("PERPLEXITY_API", api);
        world.set("OUTLAST_TOOLS", sets);
        world.set("OUTLAST_POLL_TIMEOUT", "1");
        world.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "50");
        let mut server = world.serve().await;
        let listed = server.request("tools/list", json!({})).await;
        let tools = listed["result"]["tools"].as_array().unwrap().clone();
        assert!(tools.len() >= 4, "{listed}");
        for tool in &tools {
            let (name, schema) = (tool["name"].as_str().unwrap(), &tool["inputSchema"]);
            for text in &texts {
                for arguments in [filled(schema, schema, text), required(schema, text)] {
                    let params = json!({ "name": name, "arguments": arguments });
                    let answer = server.request("tools/call", params).await;
                    assert!(
                        answer["result"].is_object() || answer["error"].is_object(),
                        "{answer}"
                    );
                    let called = elsewhere.accept().is_ok();
                    assert!(!called, "{name} with {arguments} called another address");
                }
            }
        }
        let seen = world.simulator.requests();
        assert!(seen.iter().any(|request| request.body.to_string().contains(&host)), "{seen:?}");
        for request in seen {
            let api = ["/v1/agent", "/v1/async/sonar", "/chat/completions", "/search"];
            assert!(api.iter().any(|path| request.path.starts_with(path)), "{}", request.path);
            assert!(!request.path.contains(&host), "{}", request.path);
            let host = request.headers.get("host").map(String::as_str).unwrap_or_default();
            assert!(world.simulator.url().ends_with(host) && !host.is_empty(), "{host}");
        }
    }
    assert!(elsewhere.accept().is_err(), "another address was called");
}
