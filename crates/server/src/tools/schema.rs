//! Pieces of schemas that several tool sets list.

use serde_json::{Map, Value, json};

/// A conversation that is passed on as it is.
pub(super) fn messages() -> Value {
    json!({
        "type": "array",
        "minItems": 1,
        "maxItems": 100,
        "description": "The conversation; the last user message is the question.",
        "items": {
            "type": "object",
            "properties": {
                "role": { "type": "string", "enum": ["system", "user", "assistant"] },
                "content": { "type": "string" }
            },
            "required": ["role", "content"],
            "additionalProperties": false
        }
    })
}

/// The object that a schema is.
pub(super) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
