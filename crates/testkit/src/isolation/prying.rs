//! Requests with another owner's ids: except for the id, the answer must be identical to the one for an id that
//! never existed.

use serde_json::json;

use super::ledger::Kind;
use super::request::Request;
use super::worker::Worker;

/// The resource of a job.
pub(super) const JOB: &str = "outlast://jobs/";
/// The resource of a conversation's last report.
pub(super) const REPORT: &str = "outlast://reports/";

/// The requests that take an id. Response times are compared for each of them.
const WAYS: [&str; 13] = [
    "perplexity_research_poll",
    "perplexity_research_cancel",
    "tasks/get",
    "tasks/cancel",
    "tasks/update",
    JOB,
    REPORT,
    "get_conversation_history",
    "get_conversation_histories",
    "await_conversation_histories",
    "cancel_research",
    "perplexity_search_followup",
    "perplexity_deep_research_followup",
];

/// The number of misspellings of an id; most often it is spelt correctly.
const FORMS: usize = 12;

impl Worker {
    pub(super) async fn pry(&mut self) {
        let way = WAYS[self.random.usize(..WAYS.len())];
        let about_jobs =
            way.starts_with("tasks") || way.starts_with("perplexity_research") || way == JOB;
        // One in ten is an id of the wrong kind.
        let kind =
            if about_jobs == (self.random.u8(..10) > 0) { Kind::Job } else { Kind::Conversation };
        let other = self.other();
        let Some(foreign) = self.shared.ledger.some(other, kind, &mut self.random) else { return };
        if way.ends_with("cancel") && kind == Kind::Job {
            self.shared.ledger.attack(&foreign);
        }
        let form = self.random.usize(..FORMS);
        let foreign = spelt(&foreign, form);
        let invented = spelt(&self.invented(), form);
        let (number, question) = (self.request_id(), self.question(1));
        let asked = [&foreign, &invented].map(|id| request(number, way, id, &question));
        let foreign_first = self.random.bool();
        let order = if foreign_first { [0, 1] } else { [1, 0] };
        let mut heard = Vec::new();
        for which in order {
            heard.push(self.send(&asked[which]).await);
        }
        if !foreign_first {
            heard.swap(0, 1);
        }
        if heard[0].masked(&foreign) != heard[1].masked(&invented) {
            let why = format!(
                "{way} distinguishes a foreign id from an invented one, for which the answer is: {} {}\n{}",
                heard[1].status, heard[1].head, heard[1].body
            );
            self.fail(self.number(), &why, &asked[0], &heard[0]);
        }
        // A text that cannot be an id never reaches a store, so its time means nothing.
        if form >= 5 {
            self.shared.timings.add(way, heard[0].took, heard[1].took);
        }
    }

    /// Asks for foreign, invented and own ids in one batch: the answer for one must not depend on the others.
    pub(super) async fn pry_in_a_batch(&mut self) {
        let other = self.other();
        let foreign = self.shared.ledger.some(other, Kind::Conversation, &mut self.random);
        let (Some(foreign), Some(own)) = (foreign, self.own(Kind::Conversation)) else { return };
        let invented = self.invented();
        let mut ids = [own.clone(), foreign.clone(), invented.clone()];
        self.random.shuffle(&mut ids);
        let tools = ["get_conversation_histories", "await_conversation_histories"];
        let tool = tools[self.random.usize(..tools.len())];
        let request = Request::tool(self.request_id(), tool, json!({ "conversationIds": ids }));
        let heard = self.send(&request).await;
        let entries = heard.answer()["result"]["structuredContent"].clone();
        if entries[&own]["conversation"].is_null() || entries[&foreign] != entries[&invented] {
            self.fail(self.number(), "the batch mixes them up", &request, &heard);
        }
    }

    pub(super) fn invented(&mut self) -> String {
        format!("{:032x}", self.random.u128(..))
    }
}

fn request(number: u64, way: &str, id: &str, question: &str) -> Request {
    match way {
        "perplexity_research_poll" | "perplexity_research_cancel" => {
            Request::tool(number, way, json!({ "jobId": id }))
        }
        "get_conversation_history" | "cancel_research" => {
            Request::tool(number, way, json!({ "conversationId": id }))
        }
        "get_conversation_histories" | "await_conversation_histories" => {
            Request::tool(number, way, json!({ "conversationIds": [id] }))
        }
        "perplexity_search_followup" | "perplexity_deep_research_followup" => {
            Request::tool(number, way, json!({ "conversationId": id, "query": question }))
        }
        JOB | REPORT => Request::resource(number, &format!("{way}{id}")),
        _ => Request::task(number, way, id),
    }
}

fn spelt(id: &str, form: usize) -> String {
    match form {
        0 => id.to_ascii_uppercase(),
        1 => format!("{}-{}-{}-{}-{}", &id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..]),
        2 => id[..31].to_owned(),
        3 => format!("../{id}"),
        4 => format!("{id}%00"),
        _ => id.to_owned(),
    }
}
