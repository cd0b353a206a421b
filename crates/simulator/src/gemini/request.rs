//! Requests of a client, validated strictly: a misspelt field is refused.

use serde_json::Value;

use super::AGENTS;
use super::refusal::no_such_agent;
use crate::ask::{Api, Ask};
use crate::effort::Effort;
use crate::errors::Refusal;
use crate::fastapi::{FLAG, Rule, Rules, TEXT, faults};

const FIELDS: Rules = &[
    ("agent", Rule::Required(&TEXT)),
    ("input", Rule::Any),
    ("background", FLAG),
    ("store", FLAG),
    ("stream", FLAG),
    ("agent_config", Rule::Object(&[CONFIG_FIELDS])),
    ("labels", Rule::Is(are_labels, "a map of labels")),
    ("previous_interaction_id", TEXT),
    ("system_instruction", TEXT),
    ("response_format", Rule::Any),
    ("tools", Rule::Any),
    ("service_tier", TEXT),
    ("webhook_config", Rule::Any),
    ("safety_settings", Rule::Any),
];

const CONFIG_FIELDS: Rules = &[
    ("type", Rule::Required(&Rule::OneOf(&["deep-research"]))),
    ("thinking_summaries", Rule::OneOf(&["auto", "none"])),
    ("visualization", Rule::OneOf(&["off", "auto"])),
    ("collaborative_planning", FLAG),
    ("enable_bigquery_tool", FLAG),
];

/// Parses a submit.
pub(super) fn parse(body: &[u8]) -> Result<Ask, Refusal> {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    if let Some(fault) = faults(&body, &[FIELDS]).first() {
        let place = fault.place[1..].join(".");
        return Err(Refusal::invalid(format!("Invalid value at '{place}': {}", fault.message)));
    }
    let texts = texts(&body["input"]);
    if texts.iter().all(|text| text.trim().is_empty()) {
        return Err(Refusal::invalid("input must not be empty"));
    }
    let name = body["agent"].as_str().unwrap_or_default();
    let Some(agent) = AGENTS.into_iter().find(|agent| *agent == name) else {
        return Err(no_such_agent(name));
    };
    if body["background"] != true || body["store"] == false {
        return Err(Refusal::invalid("agents need background=true and store=true"));
    }
    Ok(Ask {
        effort: if agent.contains("-max-") { Effort::High } else { Effort::Medium },
        label: agent.to_owned(),
        model: agent,
        stream: body["stream"] == true,
        ..Ask::new(Api::Gemini, &body["input"], &texts)
    })
}

/// Returns the texts of an input: a single one, or those of its parts and turns.
fn texts(input: &Value) -> Vec<String> {
    match input {
        Value::String(text) => vec![text.clone()],
        Value::Array(parts) => parts.iter().flat_map(texts).collect(),
        Value::Object(part) => {
            let text = part.get("text").map(texts).unwrap_or_default();
            text.into_iter().chain(part.get("content").map(texts).unwrap_or_default()).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns true if the vendor accepts these names and values.
fn are_labels(labels: &Value) -> bool {
    let fits = |text: &str| {
        let plain = |c: char| c.is_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
        text.chars().count() <= 63 && text.chars().all(plain)
    };
    labels.as_object().is_some_and(|labels| {
        labels.iter().all(|(name, value)| {
            name.starts_with(char::is_lowercase) && fits(name) && value.as_str().is_some_and(fits)
        })
    })
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
        let good = json!({"agent": AGENTS[0], "input": "q", "background": true});
        assert!(parse(&good).is_ok());
        for (field, value) in [
            ("agent", json!(null)),
            ("agent", json!("deep-thought")),
            ("input", json!("")),
            ("input", json!([])),
            ("input", json!(7)),
            ("background", json!(false)),
            ("store", json!(false)),
            ("agent_config", json!({"type": "deep-research", "thinking": "auto"})),
            ("agent_config", json!({"thinking_summaries": "auto"})),
            ("labels", json!({"Job": "x"})),
            ("labels", json!({"job": "UPPER"})),
            ("labels", json!({"job": "x".repeat(64)})),
            ("wish", json!(1)),
        ] {
            let mut body = good.clone();
            body[field] = value;
            assert!(parse(&body).is_err(), "{body}");
        }
        assert!(parse(&json!([])).is_err());
    }

    #[test]
    fn an_input_may_be_a_text_its_parts_or_turns() {
        let input = json!([
            {"type": "user_input", "content": [{"type": "text", "text": "old"}]},
            {"type": "model_output", "content": [{"type": "text", "text": "answer"}]},
            {"type": "text", "text": "new [[sim:ok]]"},
        ]);
        let body = json!({"agent": AGENTS[1], "input": input, "background": true, "store": true,
            "agent_config": {"type": "deep-research", "thinking_summaries": "auto", "visualization": "off",
                "collaborative_planning": false}, "labels": {"outlast_job": "0123ab"}});
        let ask = parse(&body).unwrap();
        assert_eq!((ask.question.as_str(), ask.model), ("new", AGENTS[1]));
        assert!(ask.prompt.contains("old") && ask.prompt.contains("[[sim:ok]]"));
        assert_eq!(ask.effort, Effort::High);
    }
}
