//! The part of JSON Schema 2020-12 that our tools use; an unknown keyword is a failure, so that nothing passes
//! unchecked.

use serde_json::Value;

pub(super) fn check(schema: &Value, value: &Value) -> Result<(), String> {
    let object = schema.as_object().ok_or("a schema is an object")?;
    for (keyword, rule) in object {
        match keyword.as_str() {
            "type" => types(rule, value)?,
            "enum" if rule.as_array().is_some_and(|all| all.contains(value)) => {}
            "enum" => return Err(format!("{value} is not one of {rule}")),
            "required" => {
                for name in rule.as_array().into_iter().flatten().filter_map(Value::as_str) {
                    if value.get(name).is_none() {
                        return Err(format!("`{name}` is missing"));
                    }
                }
            }
            "properties" => {
                for (name, inner) in rule.as_object().into_iter().flatten() {
                    if let Some(value) = value.get(name) {
                        check(inner, value).map_err(|why| format!("{name}: {why}"))?;
                    }
                }
            }
            "additionalProperties" => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    if object.get("properties").is_none_or(|known| known.get(name).is_none()) {
                        additional(rule, value).map_err(|why| format!("{name}: {why}"))?;
                    }
                }
            }
            "items" => {
                for value in value.as_array().into_iter().flatten() {
                    check(rule, value)?;
                }
            }
            "anyOf" => {
                let tried: Vec<_> =
                    rule.as_array().into_iter().flatten().map(|one| check(one, value)).collect();
                if !tried.iter().any(Result::is_ok) {
                    return Err(format!("none of anyOf: {tried:?}"));
                }
            }
            "description" | "default" => {}
            keyword => return Err(format!("the checker does not know `{keyword}`")),
        }
    }
    Ok(())
}

fn additional(rule: &Value, value: &Value) -> Result<(), String> {
    match rule {
        Value::Bool(true) => Ok(()),
        Value::Bool(false) => Err("not a known property".to_owned()),
        schema => check(schema, value),
    }
}

fn types(rule: &Value, value: &Value) -> Result<(), String> {
    let is = |name: &Value| match name.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("number") => value.is_number(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("null") => value.is_null(),
        _ => false,
    };
    let holds = rule.as_array().map_or_else(|| is(rule), |names| names.iter().any(is));
    if holds { Ok(()) } else { Err(format!("{value} is not of type {rule}")) }
}

#[test]
fn the_checker_can_fail() {
    let schema = serde_json::json!({
        "type": "object",
        "properties": { "a": { "type": "integer" }, "b": { "enum": ["x"] } },
        "required": ["a"],
        "additionalProperties": false
    });
    let cases = [
        (serde_json::json!({ "a": 1, "b": "x" }), true),
        (serde_json::json!({ "a": 1.5 }), false),
        (serde_json::json!({}), false),
        (serde_json::json!({ "a": 1, "b": "y" }), false),
        (serde_json::json!({ "a": 1, "c": 1 }), false),
    ];
    for (value, holds) in cases {
        assert_eq!(check(&schema, &value).is_ok(), holds, "{value}");
    }
}
