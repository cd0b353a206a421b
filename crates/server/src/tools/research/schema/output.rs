//! What the tools answer. Only what a client can rely on, and no deeper than it helps: this is sent with every
//! conversation, four times over.

use serde_json::{Map, Value, json};

use super::object;

pub(super) fn answer() -> Map<String, Value> {
    object(json!({
        "type": "object",
        "properties": {
            "rawResultText": text(),
            "responseId": text(),
            "modelUsed": text(),
            "usage": { "type": "object" },
            "cost": cost(),
            "searchResults": { "type": "array" },
            "conversationId": text(),
            "status": text()
        },
        "required": ["rawResultText", "conversationId", "status"]
    }))
}

/// One conversation, or several by id.
pub(super) fn history() -> Map<String, Value> {
    let one = json!({
        "properties": {
            "conversationId": text(),
            "createdAt": text(),
            "updatedAt": text(),
            "messageCount": { "type": "integer" },
            "messages": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": { "role": text(), "content": text() },
                    "required": ["role", "content"]
                }
            },
            "status": text(),
            "statusMessage": text()
        },
        "required": ["conversationId", "createdAt", "updatedAt", "messageCount", "messages"]
    });
    object(json!({ "type": "object", "anyOf": [one, batch()] }))
}

/// Several by id.
pub(super) fn batch() -> Map<String, Value> {
    let part = json!({ "type": "object" });
    object(json!({
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "properties": { "conversation": part, "status": part, "progress": part, "error": part }
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
                    "properties": { "conversationId": text(), "title": text(), "status": text() },
                    "required": ["conversationId", "title"]
                }
            },
            "nextCursor": { "type": ["string", "null"] }
        },
        "required": ["conversations", "nextCursor"]
    }))
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn cost() -> Value {
    json!({ "type": "object", "properties": { "usd": { "type": "number" }, "kind": text() } })
}
