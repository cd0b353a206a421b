//! The definitions of the tools for clients and models. Every conversation includes the descriptions and schemas.

use std::sync::Arc;

use rmcp::model::ToolAnnotations;
use serde_json::{Value, json};

use super::calls::WorkflowTool;
use super::workflow::{WorkKind, Workflow};
use super::{InputSchema, Jobs, JobsMode, JobsOptions};
use crate::quoted::UNTRUSTED;
use crate::text::minutes;
use crate::tool_names::jobs::{CANCEL, GET, LIST, START, start_one};
use crate::tools::recipient::{Disclaimer, Recipient};
use crate::tools::schema::{
    ListedTool, cancels, describe, join, limit, list_tool, lists, object, one_of, priority,
    question_schema, reads, short_text, text, texts, tool,
};

pub(super) fn tools(set: &Arc<Jobs>) -> Vec<ListedTool> {
    let options = &set.options;
    let start = match &options.mode {
        JobsMode::Held => {
            return options
                .workflows
                .iter()
                .map(|workflow| list_held_tool(set, workflow))
                .collect();
        }
        JobsMode::AnyWorkflow => start_any(set),
        JobsMode::OneWorkflow(name) => match set.workflow(name) {
            Some(workflow) => start_fixed(set, workflow),
            None => start_any(set),
        },
    };
    vec![start, get(set), cancel(set), list(set)]
}

fn start_any(set: &Arc<Jobs>) -> ListedTool {
    let JobsOptions { workflows, disclaimer, .. } = &set.options;
    let mut name = describe("What to run.");
    if !workflows.is_empty() {
        let names: Vec<_> = workflows.iter().map(|workflow| workflow.name.as_str()).collect();
        name["enum"] = json!(names);
    }
    let each = |it: &Workflow| {
        format!("\n- {}: {}{}", it.name, purpose(it), warning_text(it, *disclaimer))
    };
    let each: String = workflows.iter().map(each).collect();
    let tool = tool(
        START,
        "Start a job",
        format!(
            "Starts a workflow as a job and returns a job_id at once; ask after it with {GET}. The job goes on if the \
             client disconnects.{each}"
        ),
        object(join(schema_or_any(None), json!({ "workflow": name })), &["workflow"]),
        answer(),
        starts(),
    );
    list_tool(set, tool, |set, caller, given| Box::pin(set.start_any(caller, given)))
}

fn start_fixed(set: &Arc<Jobs>, workflow: &Workflow) -> ListedTool {
    let about = format!(
        "{} Starts as a job and returns a job_id at once; ask after it with {GET}. The job goes on if the client \
         disconnects.{}",
        purpose(workflow),
        warning_text(workflow, set.options.disclaimer)
    );
    let (name, title) = (start_one(&workflow.name), format!("Start {}", workflow.name));
    let tool = tool(&name, &title, about, input(workflow), answer(), starts());
    list_tool(&workflow_tool(set, workflow), tool, |one, caller, given| {
        Box::pin(one.start(caller, given))
    })
}

fn list_held_tool(set: &Arc<Jobs>, workflow: &Workflow) -> ListedTool {
    let about = format!(
        "{} Returns when it has ended; if the client gives up first, the same call made again picks it up.",
        purpose(workflow)
    );
    let (name, output) = (&workflow.name, json!({ "type": "object" }));
    let tool = tool(name, name, about, input(workflow), output, starts());
    list_tool(&workflow_tool(set, workflow), tool, |one, caller, given| {
        Box::pin(one.hold(caller, given))
    })
    .with_tasks(true)
}

fn workflow_tool(set: &Arc<Jobs>, workflow: &Workflow) -> Arc<WorkflowTool> {
    Arc::new(WorkflowTool { jobs: Arc::clone(set), workflow: workflow.clone() })
}

fn get(set: &Arc<Jobs>) -> ListedTool {
    let wait = set.options.wait.as_secs();
    let properties = json!({
        "job_id": describe("The job_id."),
        "wait_seconds": {
            "type": "integer",
            "description": format!("How long to wait for the end: 0 not at all, at most 300 [{wait}].")
        },
        "offset": {
            "type": "integer",
            "minimum": 0,
            "description": "Of a long result, where to go on: the next_offset of the last answer."
        }
    });
    let tool = tool(
        GET,
        "Get a job",
        format!(
            "Waits up to {wait} s for a job's end and returns its status, or its result once it is done. Repeat until \
             `done` is true. A result can be fetched for {} minutes. {UNTRUSTED}",
            minutes(set.options.keep)
        ),
        object(properties, &["job_id"]),
        answer(),
        reads(),
    );
    list_tool(set, tool, |set, caller, given| Box::pin(set.get(caller, given)))
}

fn cancel(set: &Arc<Jobs>) -> ListedTool {
    let tool = tool(
        CANCEL,
        "Cancel a job",
        "Ends a job for good and stops what it runs. A finished job keeps its result.".to_owned(),
        object(json!({ "job_id": describe("The job to cancel.") }), &["job_id"]),
        answer(),
        cancels(),
    );
    list_tool(set, tool, |set, caller, given| Box::pin(set.cancel(caller, given)))
}

fn list(set: &Arc<Jobs>) -> ListedTool {
    let properties = json!({
        "status": one_of(&["queued", "running", "completed", "failed", "cancelled"]),
        "limit": limit(),
        "cursor": describe("The next_cursor of an earlier answer.")
    });
    let tool = tool(
        LIST,
        "List jobs",
        "Lists your jobs, newest first.".to_owned(),
        object(properties, &[]),
        list_answer(),
        lists(),
    );
    list_tool(set, tool, |set, caller, given| Box::pin(set.list(caller, given)))
}

/// Returns the annotations of a start: the effects of a workflow are not known here.
fn starts() -> ToolAnnotations {
    ToolAnnotations::new().read_only(false).destructive(true).open_world(true)
}

/// C11: the built-in workflow sends its question to a provider; the behaviour of other workflows is not known here.
fn warning_text(workflow: &Workflow, disclaimer: Disclaimer) -> String {
    match workflow.work {
        WorkKind::Research => {
            Recipient { profile: Some(&workflow.profile), disclaimer }.long_warning()
        }
        WorkKind::Command | WorkKind::Tool { .. } => String::new(),
    }
}

fn purpose(workflow: &Workflow) -> &str {
    match (workflow.description.as_str(), workflow.work) {
        ("", WorkKind::Research) => {
            "researches the question in `message`; arguments: {reasoning_effort: low|medium|high}."
        }
        ("", WorkKind::Command) => "a command; `message` is its input.",
        ("", WorkKind::Tool { takes_message: true }) => {
            "a tool of another server; takes `message` and `arguments`."
        }
        ("", WorkKind::Tool { takes_message: false }) => {
            "a tool of another server; takes `arguments`."
        }
        (description, _) => description,
    }
}

/// Returns the input schema of a tool that starts only this workflow.
fn input(workflow: &Workflow) -> Value {
    let schema = workflow.input.as_deref();
    let required: &[&str] = match schema {
        Some(schema) if schema.needs_arguments() => &["arguments"],
        Some(_) | None => &[],
    };
    object(schema_or_any(schema), required)
}

fn schema_or_any(schema: Option<&InputSchema>) -> Value {
    let any = || json!({ "type": "object", "description": "Arguments of the workflow." });
    json!({
        "message": describe("What the workflow works on."),
        "arguments": schema.map_or_else(any, InputSchema::as_property),
        "session_id": short_text("Your own name for what this belongs to."),
        "idempotency_key": short_text("The same key returns the same job instead of starting another."),
        "priority": priority()
    })
}

fn answer() -> Value {
    let polling = json!({
        "recommended_next_action": { "enum": [GET, "none"] },
        "recommended_delay_seconds": { "type": "integer" }
    });
    let mut error = object(
        json!({ "code": text(), "message": text(), "retryable": { "type": "boolean" } }),
        &["code", "message", "retryable"],
    );
    error["type"] = json!(["object", "null"]);
    let page = json!({
        "offset": { "type": "integer" },
        "total_bytes": { "type": "integer" },
        "next_offset": { "type": ["integer", "null"] }
    });
    let parts = json!({
        "status": { "enum": ["queued", "running", "completed", "failed", "cancelled", "expired"] },
        "done": { "type": "boolean" },
        "progress": progress(),
        "polling": object(polling, &["recommended_next_action", "recommended_delay_seconds"]),
        "result": { "type": ["object", "string", "null"] },
        "error": error,
        "question": question_schema(),
        "result_page": object(page, &["offset", "total_bytes", "next_offset"])
    });
    let texts = texts(&["job_id", "user_message", "next_instruction_for_model", "partial"]);
    let mut required = vec!["job_id", "status", "done", "progress", "polling", "result", "error"];
    required.extend(["user_message", "next_instruction_for_model"]);
    object(join(texts, parts), &required)
}

fn list_answer() -> Value {
    let required = ["job_id", "workflow", "status", "created_at", "updated_at", "progress"];
    let parts = json!({ "session_id": text(), "progress": progress() });
    let job = join(texts(&required), parts);
    let properties = json!({
        "jobs": { "type": "array", "items": object(job, &required) },
        "next_cursor": { "type": ["string", "null"] }
    });
    object(properties, &["jobs", "next_cursor"])
}

fn progress() -> Value {
    let properties =
        json!({ "percent": { "type": ["integer", "null"] }, "step": text(), "message": text() });
    object(properties, &["percent", "step", "message"])
}
