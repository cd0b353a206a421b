//! Complete responses with wrong content.

use serde_json::{Map, Value, json};

use crate::faults::{Malformation, Malformed};

/// Values that `null_fields` does not change: without them the response would be meaningless.
const SPARED: [&str; 12] = [
    "id",
    "object",
    "status",
    "type",
    "role",
    "text",
    "content",
    "delta",
    "url",
    "finish_reason",
    "sequence_number",
    "event_type",
];

/// Corrupts the JSON of a response.
pub(crate) fn corrupt(mut object: Value, malformed: &Malformed) -> Vec<u8> {
    match malformed.kind {
        Malformation::Truncated => {
            let mut bytes = object.to_string().into_bytes();
            bytes.truncate(bytes.len() / 2);
            return bytes;
        }
        Malformation::NotJson => return b"upstream connect error or disconnect".to_vec(),
        Malformation::BadUtf8 => return with_bad_utf8(object.to_string().into_bytes()),
        Malformation::Huge => object["padding"] = "x".repeat(malformed.bytes).into(),
        Malformation::WrongType => change_types(core(&mut object)),
        Malformation::NullFields => null_fields(&mut object),
        Malformation::UnknownItem => add_unknowns(core(&mut object)),
        Malformation::UnknownStatus => change_status(core(&mut object)),
    }
    object.to_string().into_bytes()
}

/// Returns the meaningful part of a response, which a stream wraps.
fn core(object: &mut Value) -> &mut Value {
    for place in ["response", "interaction"] {
        if object[place].is_object() {
            return &mut object[place];
        }
    }
    object
}

fn change_types(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else { return };
    for value in fields.values_mut() {
        *value = match value {
            Value::Null | Value::Bool(_) => json!({"unexpected": true}),
            Value::Number(number) => number.to_string().into(),
            Value::String(_) => json!(7),
            Value::Array(_) => "a list".into(),
            Value::Object(_) => json!([]),
        };
    }
}

fn null_fields(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(null_fields),
        Value::Object(fields) => null_values(fields),
        _ => {}
    }
}

fn null_values(fields: &mut Map<String, Value>) {
    for (name, value) in fields {
        match value {
            Value::Array(items) if items.is_empty() => *value = Value::Null,
            Value::Array(_) | Value::Object(_) if name != "usage" => null_fields(value),
            _ if SPARED.contains(&name.as_str()) => {}
            _ => *value = Value::Null,
        }
    }
}

fn add_unknowns(object: &mut Value) {
    object["mystery"] = json!({"answer": 42});
    for list in ["output", "steps"] {
        if let Some(items) = object[list].as_array_mut() {
            items.insert(0, json!({"type": "mystery_item", "payload": {"answer": 42}}));
            items.push(json!({"type": "mystery_item", "text": null}));
        }
    }
    for list in ["results", "search_results"] {
        for result in object[list].as_array_mut().into_iter().flatten() {
            result["mystery"] = json!([1, {"two": 3}]);
        }
    }
}

fn change_status(object: &mut Value) {
    if object["status"].is_string() {
        object["status"] = "reticulating".into();
    } else if object["choices"][0].is_object() {
        object["choices"][0]["finish_reason"] = "reticulating".into();
    }
}

fn with_bad_utf8(mut bytes: Vec<u8>) -> Vec<u8> {
    let middle = bytes.len() / 2;
    let letter = bytes[middle..].iter().position(u8::is_ascii_lowercase).unwrap_or(0);
    bytes.splice(middle + letter..middle + letter, [0xff, 0xfe, 0xc3, 0x28]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corrupted(kind: Malformation) -> Vec<u8> {
        let object = json!({
            "id": "resp_1", "status": "completed", "model": "m", "usage": {"cost": {"total_cost": 1}},
            "output": [{"type": "message", "content": [{"type": "output_text", "text": "report", "annotations": []}]}],
        });
        corrupt(object, &Malformed { kind, times: None, on: None, bytes: 5_000 })
    }

    #[test]
    fn some_kinds_are_not_json_at_all() {
        for kind in [Malformation::Truncated, Malformation::NotJson, Malformation::BadUtf8] {
            let bytes = corrupted(kind);
            assert!(serde_json::from_slice::<Value>(&bytes).is_err(), "{kind:?}");
        }
        assert!(std::str::from_utf8(&corrupted(Malformation::BadUtf8)).is_err());
    }

    #[test]
    fn the_others_are_json_with_other_contents() {
        let read = |kind| serde_json::from_slice::<Value>(&corrupted(kind)).unwrap();
        assert_eq!(read(Malformation::WrongType)["status"], 7);
        let nulled = read(Malformation::NullFields);
        assert!(nulled["model"].is_null() && nulled["usage"].is_null());
        assert_eq!(nulled["output"][0]["content"][0]["text"], "report");
        assert_eq!(nulled["status"], "completed");
        assert!(nulled["output"][0]["content"][0]["annotations"].is_null());
        assert_eq!(read(Malformation::UnknownItem)["output"][0]["type"], "mystery_item");
        assert_eq!(read(Malformation::UnknownStatus)["status"], "reticulating");
        assert!(corrupted(Malformation::Huge).len() > 5_000);
        assert_eq!(read(Malformation::Huge)["status"], "completed");
    }
}
