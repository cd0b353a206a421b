//! The three tools as clients and models read them. Descriptions earn their tokens: they are sent with every
//! conversation.

use std::sync::Arc;

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use super::super::recipient::Recipient;
use super::super::schema::{messages, object};
use super::{CANCEL, POLL, ResearchJobsOptions, START};

pub(super) fn tools(options: &ResearchJobsOptions) -> Vec<Tool> {
    let ResearchJobsOptions { profile, poll_budget, keep, disclaimer, .. } = options;
    let recipient = Recipient { profile, disclaimer: *disclaimer };
    let place = recipient.either(" in the server's own documents", "");
    let warning = recipient.long_warning();
    let budget = poll_budget.as_secs_f64().ceil();
    let minutes = (keep.as_secs_f64() / 6.0).ceil() / 10.0;
    vec![
        tool(
            START,
            "Start deep research",
            &format!(
                "Starts deep research{place} and returns a jobId at once. Research takes minutes: poll the jobId with \
                 perplexity_research_poll. The job goes on if the client disconnects or the server restarts.{warning}"
            ),
            start_input(),
            ToolAnnotations::new().read_only(false).destructive(false).open_world(true),
        ),
        tool(
            POLL,
            "Poll deep research",
            &format!(
                "Waits up to {budget} s for a research job and returns its status, or the report once it is done. \
                 Repeat until COMPLETED, FAILED or CANCELLED. A finished report can be fetched for {minutes} minutes."
            ),
            job_input("The jobId from perplexity_research_start."),
            ToolAnnotations::new().read_only(true).idempotent(true).open_world(false),
        ),
        tool(
            CANCEL,
            "Cancel deep research",
            "Stops a research job for good. The provider is told to stop too; where it cannot be, its run may still \
             finish and be charged. A finished job keeps its result.",
            job_input("The jobId to cancel."),
            ToolAnnotations::new()
                .read_only(false)
                .destructive(true)
                .idempotent(true)
                .open_world(true),
        ),
    ]
}

fn tool(
    name: &'static str,
    title: &str,
    description: &str,
    input: Map<String, Value>,
    annotations: ToolAnnotations,
) -> Tool {
    let mut tool = Tool::new(name, description.to_owned(), Arc::new(input));
    tool.title = Some(title.to_owned());
    tool.output_schema = Some(Arc::new(output()));
    tool.annotations = Some(annotations);
    tool
}

fn start_input() -> Map<String, Value> {
    object(json!({
        "type": "object",
        "properties": {
            "messages": messages(),
            "strip_thinking": {
                "type": "boolean",
                "default": false,
                "description": "Leave the model's <think> blocks out of the report."
            },
            "reasoning_effort": {
                "type": "string",
                "enum": ["minimal", "low", "medium", "high"],
                "description": "How hard to work; more effort costs more."
            },
            "idempotency_key": {
                "type": "string",
                "minLength": 1,
                "maxLength": 200,
                "description": "The same key returns the same job instead of starting another."
            }
        },
        "required": ["messages"],
        "additionalProperties": false
    }))
}

fn job_input(description: &str) -> Map<String, Value> {
    object(json!({
        "type": "object",
        "properties": { "jobId": { "type": "string", "description": description } },
        "required": ["jobId"],
        "additionalProperties": false
    }))
}

fn output() -> Map<String, Value> {
    object(json!({
        "type": "object",
        "properties": {
            "jobId": { "type": "string" },
            "status": {
                "enum": ["CREATED", "IN_PROGRESS", "COMPLETED", "FAILED", "CANCELLED", "NOT_FOUND"]
            },
            "response": { "type": "string" },
            "error": { "type": "string" },
            "elapsedSec": { "type": "number" },
            "message": { "type": "string" }
        },
        "required": ["jobId", "status", "elapsedSec", "message"],
        "additionalProperties": false
    }))
}
