//! The tools that the runner calls by name, and their behaviour.

use std::sync::Arc;

use rmcp::model::Tool;
use serde_json::{Value, json};

/// The way a call is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A held call; never a task.
    Held,
    /// A task for clients that support tasks, otherwise a held call.
    MayBeTask,
    /// Always a task; refused for other clients.
    MustBeTask,
    /// Asks for a name first, then behaves like [`Kind::MayBeTask`].
    AsksFirst,
    /// Refused for clients that cannot sample; useless for the others.
    NeedsSampling,
}

pub(crate) struct Fixture {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    schema: fn() -> Value,
}

/// All fixtures in listing order. Every client must be able to call the first one, because some checks use it.
pub(crate) const FIXTURES: &[Fixture] = &[
    Fixture { name: "test_simple_text", kind: Kind::Held, schema: nothing },
    Fixture { name: "test_error_handling", kind: Kind::Held, schema: nothing },
    Fixture { name: "test_image_content", kind: Kind::Held, schema: nothing },
    Fixture { name: "test_audio_content", kind: Kind::Held, schema: nothing },
    Fixture { name: "test_embedded_resource", kind: Kind::Held, schema: nothing },
    Fixture { name: "test_multiple_content_types", kind: Kind::Held, schema: nothing },
    Fixture { name: "test_tool_with_progress", kind: Kind::Held, schema: nothing },
    Fixture { name: "test_reconnection", kind: Kind::Held, schema: nothing },
    Fixture { name: "test_logging_tool", kind: Kind::Held, schema: nothing },
    Fixture { name: "test_streaming_elicitation", kind: Kind::Held, schema: nothing },
    Fixture { name: "test_missing_capability", kind: Kind::NeedsSampling, schema: nothing },
    Fixture { name: "test_custom_header", kind: Kind::Held, schema: with_header },
    Fixture { name: "json_schema_2020_12_tool", kind: Kind::Held, schema: broad },
    Fixture { name: "greet", kind: Kind::Held, schema: name },
    Fixture { name: "slow_compute", kind: Kind::MayBeTask, schema: seconds },
    Fixture { name: "failing_job", kind: Kind::MustBeTask, schema: nothing },
    Fixture { name: "protocol_error_job", kind: Kind::MayBeTask, schema: nothing },
    Fixture { name: "confirm_delete", kind: Kind::MayBeTask, schema: filename },
    Fixture { name: "multi_input", kind: Kind::MayBeTask, schema: nothing },
    Fixture { name: "test_tool_with_task", kind: Kind::AsksFirst, schema: nothing },
];

impl Fixture {
    /// Returns the fixture with this name.
    pub(crate) fn from_name(name: &str) -> Option<&'static Self> {
        FIXTURES.iter().find(|fixture| fixture.name == name)
    }

    /// The tool as it is listed.
    pub(crate) fn tool(&self) -> Tool {
        let schema = match (self.schema)() {
            Value::Object(schema) => schema,
            _ => serde_json::Map::new(),
        };
        Tool::new(self.name, "A fixture of the conformance runner.", Arc::new(schema))
    }
}

fn nothing() -> Value {
    json!({ "type": "object", "properties": {} })
}

fn name() -> Value {
    json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] })
}

fn filename() -> Value {
    json!({ "type": "object", "properties": { "filename": { "type": "string" } } })
}

fn seconds() -> Value {
    json!({
        "type": "object",
        "properties": { "seconds": { "type": "number" }, "label": { "type": "string" } },
        "required": ["seconds"],
    })
}

fn with_header() -> Value {
    json!({
        "type": "object",
        "properties": { "region": { "type": "string", "x-mcp-header": "Region" } },
        "required": ["region"],
    })
}

/// Every schema keyword that must pass through a listing unchanged.
fn broad() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": {
            "properties": { "contactMethod": { "const": "phone" } },
            "required": ["contactMethod"],
        },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}
