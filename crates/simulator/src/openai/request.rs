//! Requests of a client, validated as strictly as the vendor does.

use serde_json::Value;

use super::prices::MODELS;
use crate::agent::request::{SHARED_FIELDS, asked};
use crate::ask::{Api, Ask};
use crate::effort::Effort;
use crate::errors::Refusal;
use crate::fastapi::{FLAG, Rule, Rules, faults};

const FIELDS: Rules = &[
    ("include", Rule::Any),
    ("max_tool_calls", Rule::Whole(1, 1_000_000)),
    ("metadata", Rule::Any),
    ("parallel_tool_calls", FLAG),
    ("text", Rule::Any),
    ("truncation", Rule::Any),
    ("user", Rule::Any),
    ("safety_identifier", Rule::Any),
];

/// Parses a submit.
pub(crate) fn parse(body: &[u8]) -> Result<Ask, Refusal> {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    if let Some(fault) = faults(&body, &[SHARED_FIELDS, FIELDS]).first() {
        let field = fault.place.last().cloned().unwrap_or_default();
        return Err(Refusal::invalid(match fault.kind {
            "extra_forbidden" => format!("Unknown parameter: '{field}'."),
            _ => format!("Invalid value for '{field}': {}.", fault.message),
        }));
    }
    let name = body["model"].as_str().unwrap_or_default();
    let Some((model, _)) = MODELS.iter().find(|(model, _)| model.id == name) else {
        let message = format!("The requested model '{name}' does not exist.");
        return Err(Refusal::bad_parameter("model_not_found", message));
    };
    let effort = match body["reasoning"]["effort"].as_str() {
        None => Effort::Medium,
        Some(word) => Effort::from_name(word).ok_or_else(|| {
            Refusal::bad_parameter("unsupported_value", format!("Unsupported value: '{word}'."))
        })?,
    };
    if body["background"] == true && body["store"] == false {
        return Err(Refusal::invalid("Background mode requires store=true."));
    }
    Ok(Ask { effort, label: model.id.to_owned(), model: model.id, ..asked(Api::OpenAi, &body)? })
}
