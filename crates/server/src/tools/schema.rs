//! A tool definition with its handler, and parts of schemas that several tool sets share.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use crate::caller::Caller;
use crate::reply::{CallResult, Refusal, ToolResult};

/// A tool as it is listed, and its handler.
pub(crate) struct ListedTool {
    pub(crate) tool: Tool,
    pub(crate) call: ToolCall,
    /// True if a call can be answered with a task.
    pub(crate) offers_tasks: bool,
}

impl ListedTool {
    /// Sets whether a call can be answered with a task.
    pub(crate) fn with_tasks(self, offers_tasks: bool) -> Self {
        Self { offers_tasks, ..self }
    }
}

/// The handler of a tool's calls.
pub(crate) type ToolCall = Box<
    dyn for<'a> Fn(&'a mut Caller, JsonObject) -> BoxFuture<'a, ToolResult<CallResult>>
        + Send
        + Sync,
>;

/// Binds a tool and its handler to this set, or to this part of a set.
pub(crate) fn list_tool<S, T>(
    set: &Arc<S>,
    tool: Tool,
    call: impl for<'a> Fn(&'a S, &'a mut Caller, JsonObject) -> BoxFuture<'a, Result<T, Refusal>>
    + Copy
    + Send
    + Sync
    + 'static,
) -> ListedTool
where
    S: Send + Sync + 'static,
    T: Into<CallResult> + 'static,
{
    let set = Arc::clone(set);
    let call: ToolCall = Box::new(move |caller, given| {
        let set = Arc::clone(&set);
        Box::pin(async move { call(&set, caller, given).await.map(Into::into) })
    });
    ListedTool { tool, call, offers_tasks: false }
}

/// Builds the description of a tool for clients.
pub(crate) fn tool(
    name: &str,
    title: &str,
    description: String,
    input: Value,
    output: Value,
    annotations: ToolAnnotations,
) -> Tool {
    let mut tool = Tool::new(name.to_owned(), description, Arc::new(map(input)));
    tool.title = Some(title.to_owned());
    tool.output_schema = Some(Arc::new(map(output)));
    tool.annotations = Some(annotations);
    tool
}

/// Returns the annotations of a tool that asks a provider: it changes no existing data.
pub(super) fn asks() -> ToolAnnotations {
    ToolAnnotations::new().read_only(false).destructive(false).open_world(true)
}

/// Returns the annotations of a tool that reads a job or a conversation: its results may quote the web.
pub(crate) fn reads() -> ToolAnnotations {
    ToolAnnotations::new().read_only(true).idempotent(true).open_world(true)
}

/// Returns the annotations of a tool that lists jobs or conversations.
pub(super) fn lists() -> ToolAnnotations {
    ToolAnnotations::new().read_only(true).idempotent(true).open_world(false)
}

/// Returns the annotations of a tool that cancels a job.
pub(super) fn cancels() -> ToolAnnotations {
    ToolAnnotations::new().read_only(false).destructive(true).idempotent(true).open_world(true)
}

/// Returns the schema of an object that has only these properties.
pub(crate) fn object(properties: Value, required: &[&str]) -> Value {
    join(open_object(properties, required), json!({ "additionalProperties": false }))
}

/// Returns the schema of an object that has these properties, and may have others.
pub(super) fn open_object(properties: Value, required: &[&str]) -> Value {
    let mut object = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}

/// Returns the schema of the question that a job waits for (M4).
pub(super) fn question_schema() -> Value {
    let choices = json!({ "choices": { "type": "array", "items": text() } });
    let properties = join(texts(&["id", "text", "default", "deadline"]), choices);
    object(properties, &["id", "text", "deadline"])
}

/// Merges two sets of properties.
pub(super) fn join(properties: Value, more: Value) -> Value {
    let mut properties = map(properties);
    properties.extend(map(more));
    Value::Object(properties)
}

pub(super) fn text() -> Value {
    json!({ "type": "string" })
}

/// Returns properties that are strings.
pub(super) fn texts(names: &[&str]) -> Value {
    names.iter().map(|name| ((*name).to_owned(), text())).collect::<JsonObject>().into()
}

pub(crate) fn describe(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

pub(super) fn one_of(words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words })
}

pub(super) fn flag() -> Value {
    json!({ "type": "boolean", "default": false })
}

pub(super) fn query() -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": 10000 })
}

pub(super) fn priority() -> Value {
    json!({ "type": "integer", "minimum": -100, "maximum": 100, "default": 0 })
}

pub(super) fn limit() -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": 100, "default": 20 })
}

/// Returns the schema of a string of 1 to 200 characters.
pub(super) fn short_text(description: &str) -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": 200, "description": description })
}

pub(super) fn recency() -> Value {
    one_of(&["hour", "day", "week", "month", "year"])
}

pub(super) fn domains(description: &str) -> Value {
    json!({ "type": "array", "items": text(), "maxItems": 20, "description": description })
}

/// Returns the schema of a conversation that is passed on unchanged.
pub(super) fn messages() -> Value {
    let message = json!({ "role": one_of(&["system", "user", "assistant"]), "content": text() });
    json!({
        "type": "array",
        "minItems": 1,
        "maxItems": 100,
        "description": "The conversation; the last user message is the question.",
        "items": object(message, &["role", "content"])
    })
}

fn map(value: Value) -> JsonObject {
    match value {
        Value::Object(map) => map,
        _ => JsonObject::new(),
    }
}
