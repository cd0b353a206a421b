//! The tools as clients and models read them. Descriptions earn their tokens: they are sent with every conversation.

use std::sync::Arc;

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use super::super::recipient::{Disclaimer, Recipient};
use super::workflow::{Work, Workflow};
use super::{CANCEL, GET, JobsMode, JobsOptions, LIST, START, start_tool};

pub(super) fn tools(options: &JobsOptions) -> Vec<Tool> {
    let start = match &options.mode {
        JobsMode::Held => return options.workflows.iter().map(held).collect(),
        JobsMode::AnyWorkflow => start_any(options),
        JobsMode::OneWorkflow(name) => {
            let found = options.workflows.iter().filter(|workflow| workflow.name == *name);
            match found.map(|workflow| start_one(workflow, options.disclaimer)).next() {
                Some(tool) => tool,
                None => start_any(options),
            }
        }
    };
    vec![start, get(options), cancel(), list()]
}

fn start_any(options: &JobsOptions) -> Tool {
    let workflows = &options.workflows;
    let mut properties = given();
    let mut workflow = json!({ "type": "string", "description": "What to run." });
    if !workflows.is_empty() {
        let names: Vec<_> = workflows.iter().map(|workflow| workflow.name.as_str()).collect();
        workflow["enum"] = json!(names);
    }
    properties.insert("workflow".to_owned(), workflow);
    let each = |it: &Workflow| {
        format!("\n- {}: {}{}", it.name, purpose(it), warning(it, options.disclaimer))
    };
    let each: String = workflows.iter().map(each).collect();
    tool(
        START.to_owned(),
        "Start a job",
        format!(
            "Starts a workflow as a job and returns a job_id at once; ask after it with {GET}. The job goes on if the \
             client disconnects.{each}"
        ),
        object(properties, &["workflow"]),
        answer(),
        starting(),
    )
}

fn start_one(workflow: &Workflow, disclaimer: Disclaimer) -> Tool {
    tool(
        start_tool(&workflow.name),
        &format!("Start {}", workflow.name),
        format!(
            "{} Starts as a job and returns a job_id at once; ask after it with {GET}. The job goes on if the client \
             disconnects.{}",
            purpose(workflow),
            warning(workflow, disclaimer)
        ),
        object(given(), &[]),
        answer(),
        starting(),
    )
}

fn held(workflow: &Workflow) -> Tool {
    tool(
        workflow.name.clone(),
        &workflow.name,
        format!(
            "{} Returns when it has ended; if the client gives up first, the same call made again picks it up.",
            purpose(workflow)
        ),
        object(given(), &[]),
        map(json!({ "type": "object" })),
        starting(),
    )
}

fn get(options: &JobsOptions) -> Tool {
    let wait = options.wait.as_secs();
    let minutes = (options.keep.as_secs_f64() / 6.0).ceil() / 10.0;
    let properties = json!({
        "job_id": { "type": "string", "description": "The job_id." },
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
    tool(
        GET.to_owned(),
        "Get a job",
        format!(
            "Waits up to {wait} s for a job's end and returns its status, or its result once it is done. Repeat until \
             `done` is true. A result can be fetched for {minutes} minutes."
        ),
        object(map(properties), &["job_id"]),
        answer(),
        ToolAnnotations::new().read_only(true).idempotent(true).open_world(false),
    )
}

fn cancel() -> Tool {
    let properties = json!({ "job_id": { "type": "string", "description": "The job to cancel." } });
    tool(
        CANCEL.to_owned(),
        "Cancel a job",
        "Ends a job for good and stops what it runs. A finished job keeps its result.".to_owned(),
        object(map(properties), &["job_id"]),
        answer(),
        ToolAnnotations::new().read_only(false).destructive(true).idempotent(true).open_world(true),
    )
}

fn list() -> Tool {
    let properties = json!({
        "status": { "type": "string", "enum": ["queued", "running", "completed", "failed", "cancelled"] },
        "limit": { "type": "integer", "minimum": 1, "maximum": 100, "default": 20 },
        "cursor": { "type": "string", "description": "The next_cursor of an earlier answer." }
    });
    tool(
        LIST.to_owned(),
        "List jobs",
        "Lists your jobs, newest first.".to_owned(),
        object(map(properties), &[]),
        listed(),
        ToolAnnotations::new().read_only(true).idempotent(true).open_world(false),
    )
}

fn tool(
    name: String,
    title: &str,
    description: String,
    input: Map<String, Value>,
    output: Map<String, Value>,
    annotations: ToolAnnotations,
) -> Tool {
    let mut tool = Tool::new(name, description, Arc::new(input));
    tool.title = Some(title.to_owned());
    tool.output_schema = Some(Arc::new(output));
    tool.annotations = Some(annotations);
    tool
}

fn starting() -> ToolAnnotations {
    ToolAnnotations::new().read_only(false).destructive(true).open_world(true)
}

/// C11: the built-in workflow sends its question out; what others do with theirs is not known here.
fn warning(workflow: &Workflow, disclaimer: Disclaimer) -> String {
    match workflow.work {
        Work::Research => Recipient { profile: &workflow.profile, disclaimer }.long_warning(),
        Work::Command | Work::Tool { .. } => String::new(),
    }
}

fn purpose(workflow: &Workflow) -> String {
    let takes = match workflow.work {
        Work::Research => {
            "researches the question in `message`; arguments: {reasoning_effort: low|medium|high}."
        }
        Work::Command => "a command; `message` is its input.",
        Work::Tool { takes_message: true } => {
            "a tool of another server; takes `message` and `arguments`."
        }
        Work::Tool { takes_message: false } => "a tool of another server; takes `arguments`.",
    };
    match workflow.description.as_str() {
        "" => takes.to_owned(),
        description => description.to_owned(),
    }
}

fn given() -> Map<String, Value> {
    map(json!({
        "message": { "type": "string", "description": "What the workflow works on." },
        "arguments": { "type": "object", "description": "Arguments of the workflow." },
        "session_id": {
            "type": "string",
            "minLength": 1,
            "maxLength": 200,
            "description": "Your own name for what this belongs to."
        },
        "idempotency_key": {
            "type": "string",
            "minLength": 1,
            "maxLength": 200,
            "description": "The same key returns the same job instead of starting another."
        },
        "priority": { "type": "integer", "minimum": -100, "maximum": 100, "default": 0 }
    }))
}

fn answer() -> Map<String, Value> {
    let properties = json!({
        "job_id": { "type": "string" },
        "status": { "enum": ["queued", "running", "completed", "failed", "cancelled", "expired"] },
        "done": { "type": "boolean" },
        "progress": progress(),
        "polling": {
            "type": "object",
            "properties": {
                "recommended_next_action": { "enum": [GET, "none"] },
                "recommended_delay_seconds": { "type": "integer" }
            },
            "required": ["recommended_next_action", "recommended_delay_seconds"],
            "additionalProperties": false
        },
        "result": { "type": ["object", "string", "null"] },
        "error": {
            "type": ["object", "null"],
            "properties": {
                "code": { "type": "string" },
                "message": { "type": "string" },
                "retryable": { "type": "boolean" }
            },
            "required": ["code", "message", "retryable"],
            "additionalProperties": false
        },
        "user_message": { "type": "string" },
        "next_instruction_for_model": { "type": "string" },
        "result_page": {
            "type": "object",
            "properties": {
                "offset": { "type": "integer" },
                "total_bytes": { "type": "integer" },
                "next_offset": { "type": ["integer", "null"] }
            },
            "required": ["offset", "total_bytes", "next_offset"],
            "additionalProperties": false
        }
    });
    let required = [
        "job_id",
        "status",
        "done",
        "progress",
        "polling",
        "result",
        "error",
        "user_message",
        "next_instruction_for_model",
    ];
    object(map(properties), &required)
}

fn listed() -> Map<String, Value> {
    let job = json!({
        "type": "object",
        "properties": {
            "job_id": { "type": "string" },
            "workflow": { "type": "string" },
            "session_id": { "type": "string" },
            "status": { "type": "string" },
            "created_at": { "type": "string" },
            "updated_at": { "type": "string" },
            "progress": progress()
        },
        "required": ["job_id", "workflow", "status", "created_at", "updated_at", "progress"],
        "additionalProperties": false
    });
    let properties = json!({
        "jobs": { "type": "array", "items": job },
        "next_cursor": { "type": ["string", "null"] }
    });
    object(map(properties), &["jobs", "next_cursor"])
}

fn progress() -> Value {
    json!({
        "type": "object",
        "properties": {
            "percent": { "type": ["integer", "null"] },
            "step": { "type": "string" },
            "message": { "type": "string" }
        },
        "required": ["percent", "step", "message"],
        "additionalProperties": false
    })
}

fn object(properties: Map<String, Value>, required: &[&str]) -> Map<String, Value> {
    let mut object = map(json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false
    }));
    if !required.is_empty() {
        object.insert("required".to_owned(), json!(required));
    }
    object
}

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
