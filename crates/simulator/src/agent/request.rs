//! Requests to the Agent API, validated as strictly as the vendor does.

use serde_json::Value;

use crate::ask::{Api, Ask};
use crate::effort::Effort;
use crate::errors::Refusal;
use crate::fastapi::{FLAG, Rule, Rules, TEXT, faults, text_of};
use crate::prices::MODELS;

/// The fields common to every API with response objects.
pub(crate) const SHARED_FIELDS: Rules = &[
    ("input", Rule::Any),
    ("model", TEXT),
    ("background", FLAG),
    ("stream", FLAG),
    ("store", FLAG),
    ("instructions", TEXT),
    ("max_output_tokens", Rule::Any),
    ("reasoning", Rule::Any),
    ("tools", Rule::Is(are_tools, "a list of tools")),
    ("tool_choice", Rule::Any),
    // No response of the simulator can be continued.
    ("previous_response_id", Rule::Is(Value::is_null, "null")),
    ("prompt_cache_key", Rule::Any),
    ("service_tier", Rule::Any),
    ("temperature", Rule::Any),
    ("top_p", Rule::Any),
];

const FIELDS: Rules = &[
    ("effort", TEXT),
    ("preset", TEXT),
    ("models", Rule::Any),
    ("profile", Rule::Any),
    ("max_steps", Rule::Whole(1, 100)),
    ("response_format", Rule::Any),
    ("language_preference", Rule::Any),
    ("skills", Rule::Any),
    ("step_budget_reminder", Rule::Any),
];

const RECENCIES: [&str; 5] = ["hour", "day", "week", "month", "year"];

/// Parses a submit.
pub(crate) fn parse(body: &[u8]) -> Result<Ask, Refusal> {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    if let Some(fault) = faults(&body, &[SHARED_FIELDS, FIELDS]).first() {
        return Err(Refusal::invalid(match (fault.kind, fault.place.last()) {
            ("extra_forbidden", Some(field)) => {
                format!("validation failed: unknown field `{field}`")
            }
            ("value_error", Some(field)) if field != "previous_response_id" => {
                format!("validation failed: {field}: {}", fault.message)
            }
            _ => "invalid request".to_owned(),
        }));
    }
    let (effort, label, model) = chosen_model(&body)?;
    check_recency(&body["tools"])?;
    let ask = Ask { effort, label, model, ..asked(Api::Agent, &body)? };
    if ask.background && !ask.store {
        return Err(Refusal::invalid("validation failed: background requires store"));
    }
    Ok(ask)
}

/// Parses the fields that all APIs with response objects share.
pub(crate) fn asked(api: Api, body: &Value) -> Result<Ask, Refusal> {
    let messages = messages(&body["input"], api)?;
    Ok(Ask {
        background: body["background"] == true,
        stream: body["stream"] == true,
        store: body["store"] != false,
        metadata: body["metadata"].clone(),
        ..Ask::new(api, &body["input"], &messages)
    })
}

/// Returns the texts of `input`, oldest first.
fn messages(input: &Value, api: Api) -> Result<Vec<String>, Refusal> {
    let texts = match input {
        Value::Null => Some(Vec::new()),
        Value::String(text) => Some(vec![text.clone()]),
        Value::Array(items) => items.iter().map(|item| message(item, api)).collect(),
        _ => None,
    };
    let texts = texts.ok_or_else(|| Refusal::invalid("invalid request"))?;
    if texts.iter().all(|text| text.trim().is_empty()) {
        return Err(Refusal::invalid("validation failed: input cannot be empty"));
    }
    Ok(texts)
}

fn message(item: &Value, api: Api) -> Option<String> {
    let known = ["user", "assistant", "system", "developer"].contains(&item["role"].as_str()?);
    let typed = item["type"] == "message" || (api == Api::OpenAi && item["type"].is_null());
    (known && typed).then(|| text_of(&item["content"]))?
}

fn chosen_model(body: &Value) -> Result<(Effort, String, &'static str), Refusal> {
    if let Some(name) = body["effort"].as_str().or(body["preset"].as_str()) {
        let Some(effort) = Effort::from_name(name) else {
            let message = format!("effort \"{name}\" is not supported");
            return Err(Refusal::bad_parameter("invalid_parameter", message));
        };
        return Ok((effort, name.to_owned(), effort.scale().2));
    }
    let Some(name) = body["model"].as_str().or(body["models"][0].as_str()) else {
        return Ok((Effort::Medium, "medium".to_owned(), Effort::Medium.scale().2));
    };
    let Some(model) = MODELS.iter().find(|model| model.id == name) else {
        let message = format!("model \"{name}\" is not supported");
        return Err(Refusal::bad_parameter("invalid_model", message));
    };
    if name.starts_with("anthropic/") && body["max_output_tokens"].is_null() {
        return Err(Refusal::invalid("validation failed: max_output_tokens is required"));
    }
    Ok((Effort::Medium, name.to_owned(), model.id))
}

fn are_tools(tools: &Value) -> bool {
    tools.as_array().is_some_and(|tools| tools.iter().all(|tool| tool["type"].is_string()))
}

fn check_recency(tools: &Value) -> Result<(), Refusal> {
    for (index, tool) in tools.as_array().into_iter().flatten().enumerate() {
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
    fn effort_overrides_preset_and_the_default_is_medium() {
        let both = parse(&json!({"input": "q", "preset": "low", "effort": "high"})).unwrap();
        assert_eq!(both.effort, Effort::High);
        assert_eq!(parse(&json!({"input": "q"})).unwrap().label, "medium");
    }
}
