//! What the tools answer. Only what a client can rely on; tools.md has the rest.

use serde_json::{Map, Value, json};

use super::object;

pub(super) fn answer() -> Map<String, Value> {
    object(json!({
        "type": "object",
        "properties": {
            "rawResultText": text(),
            "responseId": text(),
            "modelUsed": text(),
            "usage": usage(),
            "cost": cost(),
            "searchResults": search_results(),
            "reportCheck": { "type": "object" },
            "conversationId": text(),
            "conversationPath": text(),
            "status": status()
        },
        "required": [
            "rawResultText", "responseId", "modelUsed", "usage", "cost", "searchResults", "conversationId", "status"
        ]
    }))
}

/// One conversation, or several by id.
pub(super) fn history() -> Map<String, Value> {
    let mut one = conversation();
    if let Some(Value::Object(properties)) = one.get_mut("properties") {
        properties.extend(object(json!({
            "status": status(),
            "attempts": { "type": "integer" },
            "progress": { "type": "object" },
            "error": { "type": "object" },
            "errorHistory": { "type": "array" },
            "statusMessage": text()
        })));
    }
    object(json!({ "type": "object", "anyOf": [one, batch()] }))
}

/// Several by id.
pub(super) fn batch() -> Map<String, Value> {
    object(json!({
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "properties": {
                "conversation": { "type": "object" },
                "status": { "type": "object" },
                "progress": { "type": "object" },
                "error": {
                    "type": "object",
                    "properties": { "code": text(), "message": text() },
                    "required": ["code", "message"]
                }
            },
            "additionalProperties": false
        }
    }))
}

pub(super) fn list() -> Map<String, Value> {
    object(json!({
        "type": "object",
        "properties": {
            "conversations": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "conversationId": text(),
                        "title": text(),
                        "status": status(),
                        "createdAt": text(),
                        "updatedAt": text(),
                        "messageCount": { "type": "integer" }
                    },
                    "required": ["conversationId", "title", "createdAt", "updatedAt", "messageCount"]
                }
            },
            "nextCursor": { "type": ["string", "null"] }
        },
        "required": ["conversations", "nextCursor"]
    }))
}

fn conversation() -> Map<String, Value> {
    object(json!({
        "properties": {
            "conversationId": text(),
            "createdAt": text(),
            "updatedAt": text(),
            "messageCount": { "type": "integer" },
            "messages": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "role": text(),
                        "content": text(),
                        "failed": { "type": "boolean" }
                    },
                    "required": ["role", "content"]
                }
            },
            "conversationPath": text(),
            "usage": usage(),
            "cost": cost(),
            "searchResults": search_results(),
            "reportCheck": { "type": "object" }
        },
        "required": ["conversationId", "createdAt", "updatedAt", "messageCount", "messages"]
    }))
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn status() -> Value {
    json!({ "enum": ["pending", "in_progress", "completed", "failed", "cancelled"] })
}

fn usage() -> Value {
    json!({ "type": "object", "additionalProperties": { "type": "integer" } })
}

fn cost() -> Value {
    json!({
        "type": "object",
        "properties": {
            "usd": { "type": "number" },
            "kind": { "enum": ["reported", "computed", "estimate", "unknown"] }
        },
        "required": ["usd", "kind"]
    })
}

fn search_results() -> Value {
    json!({
        "type": "array",
        "items": {
            "type": "object",
            "properties": { "title": text(), "url": text(), "date": { "type": ["string", "null"] } },
            "required": ["title", "url", "date"]
        }
    })
}
