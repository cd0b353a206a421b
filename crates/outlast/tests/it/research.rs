//! Tool set `research` on the real binary over a real pipe. Every answer is checked against its outputSchema.

mod schema_check;

mod listing;
mod modes;
mod blocking;
mod queued;
mod retrying;
mod followups;
mod histories;
mod searching;
mod earlier;
mod checking;
mod files;
mod refusals;
mod patience;
mod repeating;
mod identity;
mod any_provider;

use std::time::Duration;

use outlast_testkit::mcp_process::McpProcess;
use serde_json::{Value, json};

use crate::support::{World, eventually};

const DEEP: &str = "perplexity_deep_research";
const DEEP_FOLLOWUP: &str = "perplexity_deep_research_followup";
const SEARCH: &str = "perplexity_search";
const SEARCH_FOLLOWUP: &str = "perplexity_search_followup";
const HISTORY: &str = "get_conversation_history";
const HISTORIES: &str = "get_conversation_histories";
const AWAIT: &str = "await_conversation_histories";
const LIST: &str = "list_conversations";
const SEARCH_RESEARCH: &str = "search_research";
const CHECK: &str = "check_citations";
const CANCEL: &str = "cancel_research";

/// The switch of B1.
const SWITCH: &str = "PERPLEXITY_ENABLE_ASYNC_DEEP_RESEARCH";

/// A quick run with few words.
const QUICK: &str = "ok;words=60;sources=3;delay_ms=0";

/// A server and the schemas of its answers.
struct Client {
    server: McpProcess,
    tools: Vec<Value>,
}

/// An answer that is not a refusal.
#[derive(Debug, Clone, PartialEq)]
struct Answer {
    text: String,
    shape: Value,
}

impl Client {
    async fn of(mut server: McpProcess) -> Self {
        let listed = server.request("tools/list", json!({})).await;
        Self { server, tools: listed["result"]["tools"].as_array().unwrap().clone() }
    }

    /// Calls a tool that succeeds.
    async fn ok(&mut self, tool: &str, arguments: Value) -> Answer {
        let result = self.server.call(tool, arguments).await;
        self.checked(tool, &result)
    }

    /// Calls a tool that refuses; returns the code and the sentence.
    async fn refused(&mut self, tool: &str, arguments: Value) -> (String, String) {
        let result = self.server.call(tool, arguments).await;
        refusal(&result)
    }

    /// Sends a call without waiting; with a progress token if there is one.
    async fn send(&mut self, tool: &str, arguments: Value, token: Option<&str>) -> u64 {
        let mut call = json!({ "name": tool, "arguments": arguments });
        if let Some(token) = token {
            call["_meta"] = json!({ "progressToken": token });
        }
        self.server.send("tools/call", call).await
    }

    /// Returns the answer to a call that was sent.
    async fn answer(&mut self, tool: &str, call: u64) -> Answer {
        let answer = self.server.answer(call).await.expect("the server answers");
        self.checked(tool, &answer["result"])
    }

    async fn give_up(&mut self, call: u64) {
        let cancelled = json!({ "requestId": call, "reason": "timeout" });
        self.server.notify("notifications/cancelled", cancelled).await;
        self.server.request("ping", json!({})).await;
    }

    fn checked(&self, tool: &str, result: &Value) -> Answer {
        assert_ne!(result["isError"], true, "{tool}: {result}");
        let listed = self.tools.iter().find(|listed| listed["name"] == tool).unwrap();
        let shape = result["structuredContent"].clone();
        schema_check::check(&listed["outputSchema"], &shape)
            .unwrap_or_else(|why| panic!("{tool}: {why}: {shape}"));
        let any = ["deep_research", "deep_research_followup"];
        if [DEEP, DEEP_FOLLOWUP, SEARCH, SEARCH_FOLLOWUP].contains(&tool) || any.contains(&tool) {
            check_query_result(&shape);
        }
        let blocks = result["content"].as_array().unwrap().iter();
        let blocks = blocks.filter(|block| block["type"] != "resource_link");
        let mut texts: Vec<&str> = blocks.map(|block| block["text"].as_str().unwrap()).collect();
        // The mark of a repetition is not part of the answer itself.
        if result["_meta"]["outlast/replayed"] == true {
            texts.pop();
        }
        Answer { text: texts.join("\n"), shape }
    }

    async fn history(&mut self, id: &str) -> Answer {
        self.ok(HISTORY, json!({ "conversationId": id })).await
    }

    /// Reads a conversation until this is true.
    async fn until(&mut self, id: &str, holds: impl Fn(&Value) -> bool) -> Answer {
        let waited = async {
            loop {
                let history = self.history(id).await;
                if holds(&history.shape) {
                    return history;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), waited).await.expect("it comes to that")
    }

    /// Reads a conversation until its last question has ended.
    async fn ended(&mut self, id: &str) -> Answer {
        let over = ["completed", "failed", "cancelled"];
        self.until(id, |history| over.contains(&history["status"].as_str().unwrap())).await
    }

    /// Queues research and returns its conversation.
    async fn queue(&mut self, scenario: &str) -> String {
        let queued = self.ok(DEEP, query(scenario)).await;
        assert_eq!(queued.shape["responseId"], "queued", "{}", queued.shape);
        id_of(&queued)
    }
}

/// tools.md: a query result has every documented key, and no other.
fn check_query_result(shape: &Value) {
    let always = [
        "conversationId",
        "cost",
        "modelUsed",
        "provider",
        "rawResultText",
        "responseId",
        "searchResults",
        "status",
        "usage",
    ];
    let sometimes = ["conversationPath", "reportCheck", "citationCheck"];
    for key in always {
        assert!(shape.get(key).is_some(), "{key}: {shape}");
    }
    for key in shape.as_object().unwrap().keys() {
        assert!(always.contains(&key.as_str()) || sometimes.contains(&key.as_str()), "{key}");
    }
    let usage = ["prompt_tokens", "completion_tokens", "total_tokens"];
    assert!(usage.iter().all(|key| shape["usage"][key].is_u64()), "{shape}");
    assert!(shape["cost"]["usd"].is_number() && shape["cost"]["kind"].is_string(), "{shape}");
    for source in shape["searchResults"].as_array().unwrap() {
        assert!(source["title"].is_string() && source["url"].is_string(), "{source}");
        assert!(source["date"].is_string() || source["date"].is_null(), "{source}");
    }
}

fn refusal(result: &Value) -> (String, String) {
    assert_eq!(result["isError"], true, "{result}");
    assert!(result.get("structuredContent").is_none(), "clients validate it: {result}");
    let text = result["content"][0]["text"].as_str().unwrap();
    let (code, sentence) = text.split_once(": ").unwrap();
    let meta = &result["_meta"]["outlast/error"];
    assert_eq!((meta["code"].as_str(), meta["message"].as_str()), (Some(code), Some(sentence)));
    assert!(!text.contains(".rs:") && !text.contains("/tmp"), "no traces, no paths: {text}");
    (code.to_owned(), sentence.to_owned())
}

fn id_of(answer: &Answer) -> String {
    let id = answer.shape["conversationId"].as_str().unwrap();
    assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    id.to_owned()
}

/// Returns a question that the simulator answers according to the scenario.
fn query(scenario: &str) -> Value {
    json!({ "query": format!("Why is the sky blue? [[sim:{scenario}]]") })
}

/// Returns the same within a conversation.
fn followup(id: &str, scenario: &str) -> Value {
    json!({ "conversationId": id, "query": format!("And at dusk? [[sim:{scenario}]]") })
}

async fn blocking() -> (World, Client) {
    let world = World::new().await;
    let client = Client::of(world.serve().await).await;
    (world, client)
}

async fn queueing() -> (World, Client) {
    queueing_with(&[]).await
}

async fn queueing_with(environment: &[(&str, &str)]) -> (World, Client) {
    let mut world = World::new().await;
    world.set(SWITCH, "true");
    for (name, value) in environment {
        world.set(name, value);
    }
    let client = Client::of(world.serve().await).await;
    (world, client)
}

/// Releases held runs, once this number of runs exists: a release only applies to existing runs.
async fn release(world: &World, submits: u64) {
    eventually("the provider has the runs", || world.submits() >= submits).await;
    world.simulator.release();
}

/// Returns the input and instructions of every submit, oldest first.
fn submitted(world: &World) -> Vec<Value> {
    let requests = world.simulator.requests().into_iter();
    let submits = requests.filter(|seen| seen.method == "POST" && !seen.path.contains("cancel"));
    submits.map(|seen| seen.body).collect()
}
