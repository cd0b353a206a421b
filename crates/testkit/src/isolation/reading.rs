//! An owner reads, lists and cancels their own jobs, and reads the public pages.

use serde_json::{Value, json};

use super::inspect::ids;
use super::ledger::Kind;
use super::owners::NAMES;
use super::prying::JOB;
use super::request::Request;
use super::worker::Worker;

impl Worker {
    pub(super) async fn read_own(&mut self) {
        match self.random.u8(..14) {
            0..3 => self.poll().await,
            3 => self.cancel().await,
            4..6 => self.read_a_task().await,
            6 => self.list().await,
            7..9 => self.read_a_resource().await,
            9 => self.list_resources().await,
            10 => self.search_reports().await,
            _ => self.read_a_conversation().await,
        }
    }

    async fn poll(&mut self) {
        let Some(id) = self.own(Kind::Job) else { return };
        let arguments = json!({ "jobId": id });
        let request = Request::tool(self.request_id(), "perplexity_research_poll", arguments);
        let heard = self.send(&request).await;
        let status = heard.answer()["result"]["structuredContent"]["status"].clone();
        if status == "NOT_FOUND" || !status.is_string() {
            self.fail(self.number(), "the owner's own job was not found", &request, &heard);
        }
        if status == "CANCELLED" && !self.shared.ledger.may_be_cancelled(self.owner, &id) {
            self.fail(self.number(), "another owner has cancelled it", &request, &heard);
        }
    }

    async fn cancel(&mut self) {
        let Some(id) = self.own(Kind::Job) else { return };
        self.shared.ledger.will_cancel(self.owner, &id);
        let request = if self.random.bool() {
            let arguments = json!({ "jobId": id });
            Request::tool(self.request_id(), "perplexity_research_cancel", arguments)
        } else {
            Request::task(self.request_id(), "tasks/cancel", &id)
        };
        self.result(&request).await;
    }

    async fn read_a_task(&mut self) {
        let Some(id) = self.own(Kind::Job) else { return };
        let request = Request::task(self.request_id(), "tasks/get", &id);
        let heard = self.send(&request).await;
        let status = heard.answer()["result"]["status"].clone();
        if !status.is_string() {
            self.fail(self.number(), "the owner's own task was not found", &request, &heard);
        }
        if status == "cancelled" && !self.shared.ledger.may_be_cancelled(self.owner, &id) {
            self.fail(self.number(), "another owner has cancelled it", &request, &heard);
        }
    }

    /// Cursors of any size: they are numbers, and those of others can be guessed.
    async fn list(&mut self) {
        let mut arguments = json!({ "limit": self.random.u8(1..=30) });
        if self.random.bool() {
            arguments["cursor"] = json!(self.random.u32(..100_000).to_string());
        }
        let request = Request::tool(self.request_id(), "list_conversations", arguments);
        let listed = self.result(&request).await["structuredContent"]["conversations"].clone();
        for conversation in listed.as_array().into_iter().flatten() {
            if let Some(id) = conversation["conversationId"].as_str() {
                self.shared.ledger.add(self.owner, Kind::Conversation, id);
            }
        }
    }

    async fn read_a_conversation(&mut self) {
        let ids: Vec<String> = (0..3).filter_map(|_| self.own(Kind::Conversation)).collect();
        let [first, ..] = ids.as_slice() else { return };
        let (tool, arguments) = match self.random.u8(..4) {
            0 => ("get_conversation_histories", json!({ "conversationIds": ids })),
            1 => ("await_conversation_histories", json!({ "conversationIds": ids })),
            _ => ("get_conversation_history", json!({ "conversationId": first })),
        };
        let request = Request::tool(self.request_id(), tool, arguments);
        let heard = self.send(&request).await;
        let result = heard.answer()["result"].clone();
        let error = |entry: &Value| entry.get("error").is_some_and(|it| it["code"] == "NOT_FOUND");
        let entries = result["structuredContent"].as_object();
        if result["isError"] == true || entries.into_iter().flat_map(|all| all.values()).any(error)
        {
            self.fail(
                self.number(),
                "the owner's own conversation was not found",
                &request,
                &heard,
            );
        }
    }

    async fn read_a_resource(&mut self) {
        let Some(id) = self.own(Kind::Job) else { return };
        let request = Request::resource(self.request_id(), &format!("{JOB}{id}"));
        let heard = self.send(&request).await;
        if heard.answer()["result"]["contents"][0]["text"].is_null() {
            self.fail(self.number(), "the owner's own job was not found", &request, &heard);
        }
    }

    /// Reads two pages: the cursor is the server's own.
    async fn list_resources(&mut self) {
        let request = Request::resources(self.request_id(), None);
        let listed = self.result(&request).await;
        if let Some(cursor) = listed["nextCursor"].as_str() {
            let request = Request::resources(self.request_id(), Some(cursor));
            self.result(&request).await;
        }
    }

    /// Searches for words that are in the reports of every owner.
    async fn search_reports(&mut self) {
        let query = ["today", "tides", "zqann OR zqbob", "zq*"][self.random.usize(..4)];
        let arguments = json!({ "query": query, "limit": 20 });
        let request = Request::tool(self.request_id(), "search_research", arguments);
        self.result(&request).await;
    }

    /// Metrics and health contain no owner and no id.
    pub(super) async fn read_pages(&mut self) {
        let page = ["/metrics", "/health"][self.random.usize(..2)];
        let request = Request::get(page);
        let heard = self.send(&request).await;
        let named = NAMES.iter().any(|name| heard.body.contains(name));
        if heard.status != 200 || named || ids(&heard.body).next().is_some() {
            self.fail(
                self.number(),
                "metrics and health must not contain an owner or an id",
                &request,
                &heard,
            );
        }
    }
}
