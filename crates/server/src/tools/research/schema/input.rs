//! What the tools take.

use serde_json::{Map, Value, json};

use super::object;

/// Whether a question begins a conversation.
#[derive(Clone, Copy)]
pub(super) enum In {
    New,
    Conversation,
}

pub(super) fn research(place: In) -> Map<String, Value> {
    question(
        place,
        json!({
            "reasoning_effort": {
                "type": "string", "enum": ["low", "medium", "high"], "default": "medium"
            },
            "priority": {
                "type": "integer", "minimum": -100, "maximum": 100, "default": 0
            },
            "idempotency_key": {
                "type": "string", "minLength": 1, "maxLength": 200,
                "description": "The same key is the same job."
            }
        }),
    )
}

pub(super) fn search(place: In) -> Map<String, Value> {
    question(
        place,
        json!({
            "return_related_questions": flag(),
            "search_recency_filter": {
                "type": "string", "enum": ["hour", "day", "week", "month", "year"]
            },
            "search_domain_filter": {
                "type": "array", "items": { "type": "string" }, "maxItems": 20,
                "description": "Only these, or with a leading `-` none of these."
            },
            "search_after_date_filter": { "type": "string", "description": "MM/DD/YYYY" },
            "search_before_date_filter": { "type": "string", "description": "MM/DD/YYYY" },
            "search_mode": { "type": "string", "enum": ["web", "academic"] },
            "showThinking": flag()
        }),
    )
}

pub(super) fn history() -> Map<String, Value> {
    reading(
        "conversationId",
        json!({ "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" }, "minItems": 1, "maxItems": 100 }] }),
    )
}

pub(super) fn histories() -> Map<String, Value> {
    reading(
        "conversationIds",
        json!({ "type": "array", "items": { "type": "string" }, "minItems": 1, "maxItems": 100 }),
    )
}

pub(super) fn list() -> Map<String, Value> {
    object(json!({
        "type": "object",
        "properties": {
            "status": {
                "type": "string",
                "enum": ["pending", "in_progress", "completed", "failed", "cancelled"]
            },
            "limit": { "type": "integer", "minimum": 1, "maximum": 100, "default": 20 },
            "cursor": { "type": "string" }
        },
        "additionalProperties": false
    }))
}

/// A question with its options.
fn question(place: In, options: Value) -> Map<String, Value> {
    let mut properties = object(json!({
        "query": { "type": "string", "minLength": 1, "maxLength": 10000 }
    }));
    let mut required = vec!["query"];
    if let In::Conversation = place {
        properties.insert("conversationId".to_owned(), json!({ "type": "string" }));
        required.insert(0, "conversationId");
    }
    properties.extend(object(options));
    object(json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false
    }))
}

fn reading(ids: &str, schema: Value) -> Map<String, Value> {
    let mut properties = object(json!({ "includeSystemPrompt": flag(), "showThinking": flag() }));
    properties.insert(ids.to_owned(), schema);
    object(json!({
        "type": "object",
        "properties": properties,
        "required": [ids],
        "additionalProperties": false
    }))
}

fn flag() -> Value {
    json!({ "type": "boolean", "default": false })
}
