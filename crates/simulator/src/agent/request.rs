//! What a client submits to the Agent API, checked as strictly as the vendor does.

use serde_json::{Map, Value};

use crate::ask::{Api, Ask};
use crate::effort::Effort;
use crate::errors::Refusal;
use crate::prices::MODELS;
use crate::scenario::without_markers;

const FIELDS: [&str; 24] = [
    "input",
    "effort",
    "preset",
    "model",
    "models",
    "profile",
    "background",
    "stream",
    "store",
    "instructions",
    "max_output_tokens",
    "max_steps",
    "reasoning",
    "response_format",
    "tools",
    "tool_choice",
    "previous_response_id",
    "language_preference",
    "prompt_cache_key",
    "service_tier",
    "skills",
    "step_budget_reminder",
    "temperature",
    "top_p",
];

const RECENCIES: [&str; 5] = ["hour", "day", "week", "month", "year"];

/// Reads a submit.
pub(crate) fn parse(body: &[u8]) -> Result<Ask, Refusal> {
    let Ok(Value::Object(fields)) = serde_json::from_slice(body) else {
        return Err(Refusal::invalid("invalid request"));
    };
    if let Some(field) = fields.keys().find(|field| !FIELDS.contains(&field.as_str())) {
        return Err(Refusal::invalid(format!("validation failed: unknown field `{field}`")));
    }
    let messages = messages(&fields)?;
    let (effort, label, model) = chosen_model(&fields)?;
    check_tools(&fields)?;
    if let Some(steps) = present(&fields, "max_steps")
        && !matches!(steps.as_u64(), Some(1..=100))
    {
        return Err(Refusal::invalid("validation failed: max_steps must be between 1 and 100"));
    }
    let ask = Ask {
        api: Api::Agent,
        input: fields["input"].to_string(),
        prompt: messages.join("\n"),
        question: messages.last().map(|text| without_markers(text)).unwrap_or_default(),
        effort,
        label,
        model,
        background: flag(&fields, "background")?.unwrap_or(false),
        stream: flag(&fields, "stream")?.unwrap_or(false),
        store: flag(&fields, "store")?.unwrap_or(true),
    };
    text(&fields, "instructions")?;
    // No answer here can be continued.
    if present(&fields, "previous_response_id").is_some() {
        return Err(Refusal::invalid("invalid request"));
    }
    if ask.background && !ask.store {
        return Err(Refusal::invalid("validation failed: background requires store"));
    }
    Ok(ask)
}

/// The texts of `input`, oldest first.
fn messages(fields: &Map<String, Value>) -> Result<Vec<String>, Refusal> {
    let texts = match present(fields, "input") {
        None => Vec::new(),
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(items)) => items.iter().map(message).collect::<Result<_, _>>()?,
        Some(_) => return Err(Refusal::invalid("invalid request")),
    };
    if texts.iter().all(|text| text.trim().is_empty()) {
        return Err(Refusal::invalid("validation failed: input cannot be empty"));
    }
    Ok(texts)
}

fn message(item: &Value) -> Result<String, Refusal> {
    let malformed = || Refusal::invalid("invalid request");
    let role = item["role"].as_str().unwrap_or_default();
    if item["type"] != "message" || !["user", "assistant", "system", "developer"].contains(&role) {
        return Err(malformed());
    }
    match &item["content"] {
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => {
            let texts: Option<Vec<&str>> = parts.iter().map(|part| part["text"].as_str()).collect();
            Ok(texts.ok_or_else(malformed)?.join("\n"))
        }
        _ => Err(malformed()),
    }
}

fn chosen_model(fields: &Map<String, Value>) -> Result<(Effort, String, &'static str), Refusal> {
    if let Some(name) = text(fields, "effort")?.or(text(fields, "preset")?) {
        let Some(effort) = Effort::named(name) else {
            let message = format!("effort \"{name}\" is not supported");
            return Err(Refusal::bad_parameter("invalid_parameter", message));
        };
        return Ok((effort, name.to_owned(), effort.model()));
    }
    let first = present(fields, "models").and_then(|models| models[0].as_str());
    let Some(name) = text(fields, "model")?.or(first) else {
        return Ok((Effort::Medium, "medium".to_owned(), Effort::Medium.model()));
    };
    let Some(model) = MODELS.iter().find(|model| model.id == name) else {
        let message = format!("model \"{name}\" is not supported");
        return Err(Refusal::bad_parameter("invalid_model", message));
    };
    if name.starts_with("anthropic/") && present(fields, "max_output_tokens").is_none() {
        return Err(Refusal::invalid("validation failed: max_output_tokens is required"));
    }
    Ok((Effort::Medium, name.to_owned(), model.id))
}

fn check_tools(fields: &Map<String, Value>) -> Result<(), Refusal> {
    let Some(tools) = present(fields, "tools") else { return Ok(()) };
    let Some(tools) = tools.as_array() else { return Err(Refusal::invalid("invalid request")) };
    for (index, tool) in tools.iter().enumerate() {
        if !tool["type"].is_string() {
            return Err(Refusal::invalid("invalid request"));
        }
        let recency = &tool["filters"]["search_recency_filter"];
        if !recency.is_null() && !recency.as_str().is_some_and(|r| RECENCIES.contains(&r)) {
            return Err(Refusal::invalid(format!(
                "validation failed: tools[{index}]: search recency filter must be one of: {}",
                RECENCIES.join(" ")
            )));
        }
    }
    Ok(())
}

/// The field, unless it is absent or null.
fn present<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    fields.get(name).filter(|value| !value.is_null())
}

fn flag(fields: &Map<String, Value>, name: &str) -> Result<Option<bool>, Refusal> {
    let wrong = || Refusal::invalid(format!("validation failed: {name} must be a boolean"));
    present(fields, name).map(|value| value.as_bool().ok_or_else(wrong)).transpose()
}

fn text<'a>(fields: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, Refusal> {
    let wrong = || Refusal::invalid(format!("validation failed: {name} must be a string"));
    present(fields, name).map(|value| value.as_str().ok_or_else(wrong)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(body: &Value) -> Result<Ask, Refusal> {
        super::parse(body.to_string().as_bytes())
    }

    #[test]
    fn malformed_requests_are_refused() {
        for body in [
            json!(null),
            json!([]),
            json!({}),
            json!({"input": ""}),
            json!({"input": "  "}),
            json!({"input": []}),
            json!({"input": 5}),
            json!({"input": [{"role": "user", "content": "q"}]}),
            json!({"input": [{"type": "message", "role": "stranger", "content": "q"}]}),
            json!({"input": "q", "messages": []}),
            json!({"input": "q", "background": "yes"}),
            json!({"input": "q", "background": true, "store": false}),
            json!({"input": "q", "effort": "heroic"}),
            json!({"input": "q", "model": "acme/one"}),
            json!({"input": "q", "model": "anthropic/claude-opus-5-5"}),
            json!({"input": "q", "max_steps": 0}),
            json!({"input": "q", "tools": [{}]}),
            json!({"input": "q", "tools": [{"type": "web_search", "filters": {"search_recency_filter": "decade"}}]}),
        ] {
            assert!(parse(&body).is_err(), "{body}");
        }
    }

    #[test]
    fn every_field_of_the_vendor_is_known() {
        let body = json!({
            "input": [
                {"type": "message", "role": "user", "content": "old"},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "answer"}]},
                {"type": "message", "role": "user", "content": "new [[sim:ok]]"},
            ],
            "effort": "high", "background": true, "stream": true, "store": true, "instructions": "Cite.",
            "max_output_tokens": 16_000, "max_steps": 15, "reasoning": {"effort": "high"},
            "response_format": null, "tools": [{"type": "web_search", "filters": {"search_recency_filter": "year"}}],
            "tool_choice": "auto", "previous_response_id": null, "language_preference": "en", "prompt_cache_key": "k",
            "service_tier": "auto", "skills": [], "step_budget_reminder": true, "temperature": 1, "top_p": 1,
        });
        let ask = parse(&body).unwrap();
        assert_eq!(ask.question, "new");
        assert_eq!(ask.label, "high");
        assert_eq!(ask.model, "openai/gpt-6-sol");
        assert!(ask.prompt.contains("old") && ask.prompt.contains("[[sim:ok]]"));
    }

    #[test]
    fn effort_goes_before_preset_and_unset_is_medium() {
        let both = parse(&json!({"input": "q", "preset": "low", "effort": "high"})).unwrap();
        assert_eq!(both.effort, Effort::High);
        assert_eq!(parse(&json!({"input": "q"})).unwrap().label, "medium");
    }
}
