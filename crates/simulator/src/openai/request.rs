//! What a client submits, checked as strictly as the vendor does.

use serde_json::Value;

use super::prices::MODELS;
use crate::agent::request::{are_tools, asked};
use crate::ask::{Api, Ask};
use crate::effort::Effort;
use crate::errors::Refusal;
use crate::fastapi::{FLAG, Rule, Rules, TEXT, faults};

const FIELDS: Rules = &[
    ("input", Rule::Any),
    ("model", TEXT),
    ("background", FLAG),
    ("stream", FLAG),
    ("store", FLAG),
    ("instructions", TEXT),
    ("include", Rule::Any),
    ("max_output_tokens", Rule::Any),
    ("max_tool_calls", Rule::Whole(1, 1_000_000)),
    ("metadata", Rule::Any),
    ("parallel_tool_calls", FLAG),
    // No answer here can be continued.
    ("previous_response_id", Rule::Is(Value::is_null, "null")),
    ("reasoning", Rule::Any),
    ("service_tier", Rule::Any),
    ("temperature", Rule::Any),
    ("text", Rule::Any),
    ("tools", Rule::Is(are_tools, "a list of tools")),
    ("tool_choice", Rule::Any),
    ("top_p", Rule::Any),
    ("truncation", Rule::Any),
    ("user", Rule::Any),
    ("safety_identifier", Rule::Any),
    ("prompt_cache_key", Rule::Any),
];

/// Reads a submit.
pub(crate) fn parse(body: &[u8]) -> Result<Ask, Refusal> {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    if let Some(fault) = faults(&body, &[FIELDS]).first() {
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
        Some(word) => Effort::named(word).ok_or_else(|| {
            Refusal::bad_parameter("unsupported_value", format!("Unsupported value: '{word}'."))
        })?,
    };
    let background = body["background"] == true;
    let store = body["store"] != false;
    if background && !store {
        return Err(Refusal::invalid("Background mode requires store=true."));
    }
    Ok(Ask { effort, label: model.id.to_owned(), model: model.id, ..asked(Api::OpenAi, &body)? })
}
