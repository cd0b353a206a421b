//! Asks questions: with every tool that accepts one, as a task, and under keys that other owners use too.

use serde_json::{Value, json};

use super::ledger::Kind;
use super::owners::NAMES;
use super::request::Request;
use super::worker::Worker;

/// The scenarios of runs; the last ones take long enough for others to try to end them.
const SCENARIOS: [&str; 6] = [
    "ok;words=40;sources=2;delay_ms=0",
    "ok;words=40;sources=2;delay_ms=0",
    "ok;words=40;sources=2;delay_ms=30000",
    "fail;delay_ms=0",
    "ok;words=40;sources=2;delay_ms=1500000",
    "ok;words=40;sources=2;delay_ms=3000000",
];
/// The number of scenarios that are quick enough for a held call.
const QUICK: usize = 4;

impl Worker {
    pub(super) async fn make_something(&mut self) {
        match self.random.u8(..10) {
            0..3 => self.start().await,
            3 => self.start_under_a_key().await,
            4..6 => self.deep_research().await,
            6 => self.make_a_task().await,
            7 => self.search().await,
            _ => self.hold().await,
        }
    }

    async fn start(&mut self) {
        let question = self.question(SCENARIOS.len());
        let arguments = messages(&question);
        let request = Request::tool(self.request_id(), "perplexity_research_start", arguments);
        let result = self.result(&request).await;
        self.keep(Kind::Job, &result["structuredContent"]["jobId"]);
    }

    /// Uses a key that every owner uses, with a text that may be the same: each owner has a separate job.
    async fn start_under_a_key(&mut self) {
        self.keys += 1;
        let key = format!("key-{}-{}", self.slot, self.keys);
        let own = self.question(1);
        let shared = format!("How do tides work, {key}? [[sim:{}]]", SCENARIOS[0]);
        let question = if self.keys.is_multiple_of(2) { &shared } else { &own };
        let mut ids = Vec::new();
        for text in [question, question, &format!("{question} Really?")] {
            let mut arguments = messages(text);
            arguments["idempotency_key"] = json!(key);
            let request = Request::tool(self.request_id(), "perplexity_research_start", arguments);
            let heard = self.send(&request).await;
            let result = heard.answer()["result"].clone();
            if ids.len() < 2 {
                let Some(id) = result["structuredContent"]["jobId"].as_str() else {
                    self.fail(self.number(), "the owner's own key was refused", &request, &heard);
                };
                ids.push(id.to_owned());
            } else if result["_meta"]["outlast/error"]["code"] != "IDEMPOTENCY_CONFLICT" {
                self.fail(
                    self.number(),
                    "one key was accepted for two questions",
                    &request,
                    &heard,
                );
            }
            if ids.len() == 2 && ids[0] != ids[1] {
                self.fail(self.number(), "one key has two jobs", &request, &heard);
            }
        }
        self.keep(Kind::Job, &json!(ids[0]));
    }

    async fn deep_research(&mut self) {
        let question = self.question(SCENARIOS.len());
        let conversation = self.own(Kind::Conversation).filter(|_| self.random.bool());
        let request = match conversation {
            Some(id) => Request::tool(
                self.request_id(),
                "perplexity_deep_research_followup",
                json!({ "conversationId": id, "query": question }),
            ),
            None => Request::tool(
                self.request_id(),
                "perplexity_deep_research",
                json!({ "query": question }),
            ),
        };
        let request = if self.random.bool() { request } else { request.with_progress(self.asked) };
        let result = self.result(&request).await;
        self.keep(Kind::Conversation, &result["structuredContent"]["conversationId"]);
    }

    async fn make_a_task(&mut self) {
        let question = self.question(SCENARIOS.len());
        let (tool, arguments) = if self.random.bool() {
            ("perplexity_deep_research", json!({ "query": question }))
        } else {
            ("perplexity_research", messages(&question))
        };
        let request = Request::tool_as_task(self.request_id(), tool, arguments);
        let result = self.result(&request).await;
        self.keep(Kind::Job, &result["taskId"]);
    }

    /// Sometimes searches for exactly the same text as the others.
    async fn search(&mut self) {
        let common = format!("What is new? [[sim:{}]]", SCENARIOS[0]);
        let question = if self.random.bool() { common } else { self.question(QUICK) };
        let conversation = self.own(Kind::Conversation).filter(|_| self.random.bool());
        let request = match conversation {
            Some(id) => Request::tool(
                self.request_id(),
                "perplexity_search_followup",
                json!({ "conversationId": id, "query": question }),
            ),
            None => {
                Request::tool(self.request_id(), "perplexity_search", json!({ "query": question }))
            }
        };
        let result = self.result(&request).await;
        self.keep(Kind::Conversation, &result["structuredContent"]["conversationId"]);
    }

    async fn hold(&mut self) {
        let tools = ["perplexity_ask", "perplexity_reason", "perplexity_research"];
        let tool = tools[self.random.usize(..tools.len())];
        let common = format!("Why is the sky blue? [[sim:{}]]", SCENARIOS[0]);
        let question = if self.random.u8(..4) == 0 { common } else { self.question(QUICK) };
        let request = Request::tool(self.request_id(), tool, messages(&question));
        let request = if self.random.bool() { request } else { request.with_progress(self.asked) };
        self.result(&request).await;
    }

    /// A question with words that belong only to this owner, so that they are recognised anywhere.
    pub(super) fn question(&mut self, scenarios: usize) -> String {
        self.asked += 1;
        let (name, slot, asked) = (NAMES[self.owner], self.slot, self.asked);
        let scenario = SCENARIOS[self.random.usize(..scenarios)];
        format!("How old is {name}x{slot}x{asked} today? [[sim:{scenario}]]")
    }

    fn keep(&self, kind: Kind, id: &Value) {
        if let Some(id) = id.as_str() {
            self.shared.ledger.add(self.owner, kind, id);
        }
    }
}

fn messages(question: &str) -> Value {
    json!({ "messages": [{ "role": "user", "content": question }] })
}
