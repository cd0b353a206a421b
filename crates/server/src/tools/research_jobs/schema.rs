//! The definitions of the tools for clients and models. Every conversation includes the descriptions and schemas.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{ResearchJobs, ResearchJobsOptions};
use crate::quoted::UNTRUSTED;
use crate::text::minutes;
use crate::tool_names::research_jobs::{CANCEL, POLL, START};
use crate::tools::recipient::Recipient;
use crate::tools::schema::{
    ListedTool, asks, cancels, describe, flag, join, list_tool, messages, object, one_of,
    question_schema, reads, short_text, texts, tool,
};

pub(super) fn tools(set: &Arc<ResearchJobs>) -> Vec<ListedTool> {
    let ResearchJobsOptions { profile, poll_budget, keep, disclaimer, .. } = &set.options;
    let recipient = Recipient { profile: profile.as_ref(), disclaimer: *disclaimer };
    let place = recipient.either(" in the server's own documents", "");
    let warning = recipient.long_warning();
    let budget = poll_budget.as_secs_f64().ceil();
    let start = tool(
        START,
        "Start deep research",
        format!(
            "Starts deep research{place} and returns a jobId at once. Research takes minutes: poll the jobId with \
             {POLL}. The job goes on if the client disconnects or the server restarts.{warning}"
        ),
        start_input(),
        output(),
        asks(),
    );
    let poll = tool(
        POLL,
        "Poll deep research",
        format!(
            "Waits up to {budget} s for a research job and returns its status, or the report once it is done. Repeat \
             until COMPLETED, FAILED or CANCELLED. A finished report can be fetched for {} minutes. {UNTRUSTED}",
            minutes(*keep)
        ),
        job_input(&format!("The jobId from {START}.")),
        output(),
        reads(),
    );
    let cancel = tool(
        CANCEL,
        "Cancel deep research",
        "Stops a research job for good. The provider is told to stop too; where it cannot be, its run may still finish \
         and be charged. A finished job keeps its result."
            .to_owned(),
        job_input("The jobId to cancel."),
        output(),
        cancels(),
    );
    vec![
        list_tool(set, start, |set, caller, given| Box::pin(set.start(caller, given))),
        list_tool(set, poll, |set, caller, given| Box::pin(set.poll(caller, given))),
        list_tool(set, cancel, |set, caller, given| Box::pin(set.cancel(caller, given))),
    ]
}

fn start_input() -> Value {
    let described = |schema: Value, text: &str| join(schema, json!({ "description": text }));
    let effort = one_of(&["minimal", "low", "medium", "high"]);
    let properties = json!({
        "messages": messages(),
        "strip_thinking": described(flag(), "Leave the model's <think> blocks out of the report."),
        "reasoning_effort": described(effort, "How hard to work; more effort costs more."),
        "idempotency_key": short_text("The same key returns the same job instead of starting another.")
    });
    object(properties, &["messages"])
}

fn job_input(description: &str) -> Value {
    object(json!({ "jobId": describe(description) }), &["jobId"])
}

fn output() -> Value {
    let status = ["CREATED", "IN_PROGRESS", "COMPLETED", "FAILED", "CANCELLED", "NOT_FOUND"];
    let texts = texts(&["jobId", "response", "error", "message"]);
    let parts = json!({
        "status": { "enum": status },
        "elapsedSec": { "type": "number" },
        "question": question_schema()
    });
    object(join(texts, parts), &["jobId", "status", "elapsedSec", "message"])
}
