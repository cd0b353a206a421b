//! Requests to Sonar, validated strictly: a misspelt or out-of-range field is refused.

use serde_json::Value;

use super::prices::{Context, MODELS};
use crate::ask::{Api, Ask, IdempotencyKey, Sonar};
use crate::errors::Refusal;
use crate::fastapi::{self, DATE, FLAG, Rule, Rules, TEXT, TEXTS, text_of};

const FIELDS: Rules = &[
    ("model", Rule::Required(&TEXT)),
    ("messages", Rule::Required(&Rule::Objects(MESSAGE_FIELDS))),
    ("max_tokens", Rule::Whole(1, 128_000)),
    ("stream", FLAG),
    ("stream_mode", Rule::OneOf(&["full"])),
    ("reasoning_effort", Rule::OneOf(&["minimal", "low", "medium", "high"])),
    ("web_search_options", Rule::Object(&[WEB_FIELDS])),
    ("return_images", FLAG),
    ("return_related_questions", FLAG),
    ("enable_search_classifier", FLAG),
    ("disable_search", FLAG),
    ("response_format", Rule::Is(Value::is_object, "a valid dictionary")),
    ("language_preference", TEXT),
    ("temperature", Rule::Number(0.0, 2.0)),
    ("top_p", Rule::Number(0.0, 1.0)),
    ("top_k", Rule::Whole(0, 2_048)),
    ("stop", Rule::Any),
    ("presence_penalty", Rule::Number(-2.0, 2.0)),
    ("frequency_penalty", Rule::Number(-2.0, 2.0)),
    ("tools", Rule::Any),
    ("tool_choice", Rule::Any),
];

/// The filters of every search of the vendor.
pub(crate) const FILTERS: Rules = &[
    ("search_mode", Rule::OneOf(&["web", "academic", "sec"])),
    ("search_recency_filter", Rule::OneOf(&["hour", "day", "week", "month", "year"])),
    ("search_domain_filter", TEXTS),
    ("search_language_filter", TEXTS),
    ("search_after_date_filter", DATE),
    ("search_before_date_filter", DATE),
    ("last_updated_after_filter", DATE),
    ("last_updated_before_filter", DATE),
];

const WEB_FIELDS: Rules = &[
    ("search_context_size", Rule::OneOf(&Context::NAMES)),
    ("search_type", Rule::OneOf(&["fast", "pro", "auto"])),
    ("user_location", Rule::Object(&[PLACE_FIELDS])),
    ("image_results_enhanced_relevance", Rule::Any),
];

const PLACE_FIELDS: Rules = &[
    ("city", Rule::Any),
    ("country", Rule::Any),
    ("region", Rule::Any),
    ("latitude", Rule::Any),
    ("longitude", Rule::Any),
];

const MESSAGE_FIELDS: Rules = &[
    ("role", Rule::Required(&Rule::OneOf(&["system", "user", "assistant", "tool"]))),
    ("content", Rule::Required(&Rule::Is(|it| text_of(it).is_some(), "a string or parts of text"))),
    ("name", Rule::Any),
    ("tool_calls", Rule::Any),
    ("tool_call_id", Rule::Any),
    ("reasoning_steps", Rule::Any),
];

const JOB_FIELDS: Rules = &[
    ("request", Rule::Required(&Rule::Object(&[FIELDS, FILTERS]))),
    ("idempotency_key", Rule::Is(|key| key.as_str().is_some_and(|key| !key.is_empty()), "a key")),
];

/// Parses `POST /chat/completions`.
pub(crate) fn chat(bytes: &[u8]) -> Result<Ask, Refusal> {
    ask(&fastapi::body(bytes, &[FIELDS, FILTERS])?, Api::SonarChat)
}

/// Parses `POST /v1/async/sonar`: the same request in an envelope with an idempotency key.
pub(crate) fn job(bytes: &[u8]) -> Result<Ask, Refusal> {
    let envelope = fastapi::body(bytes, &[JOB_FIELDS])?;
    let request = &envelope["request"];
    let key = envelope["idempotency_key"].as_str();
    let key = key.map(|key| IdempotencyKey { key: key.to_owned(), request: request.to_string() });
    Ok(Ask { key, ..ask(request, Api::SonarAsync)? })
}

fn ask(request: &Value, api: Api) -> Result<Ask, Refusal> {
    let name = request["model"].as_str().unwrap_or_default();
    let Some(model) = MODELS.iter().find(|model| model.id == name) else {
        let message = format!("Invalid model '{name}'. Permitted models are the sonar models.");
        return Err(Refusal::bad_parameter("invalid_model", message));
    };
    let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    if !messages.last().is_some_and(|last| last["role"] == "user" || last["role"] == "tool") {
        let message = "the last message must come from the user or from a tool".to_owned();
        return Err(Refusal::bad_parameter("invalid_message", message));
    }
    let texts: Vec<String> =
        messages.iter().filter_map(|message| text_of(&message["content"])).collect();
    let context = request["web_search_options"]["search_context_size"].as_str();
    Ok(Ask {
        effort: model.effort,
        label: model.id.to_owned(),
        model: model.id,
        background: api == Api::SonarAsync,
        stream: request["stream"] == true && api == Api::SonarChat,
        sonar: Some(Sonar {
            model,
            context: context.and_then(Context::from_name).unwrap_or(Context::Low),
            related_questions: request["return_related_questions"] == true,
        }),
        ..Ask::new(api, &request["messages"], &texts)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(body: &Value) -> Result<Ask, Refusal> {
        chat(body.to_string().as_bytes())
    }

    #[test]
    fn malformed_requests_are_refused() {
        let user = json!([{"role": "user", "content": "q"}]);
        for body in [
            json!(null),
            json!([]),
            json!({}),
            json!({"model": "sonar"}),
            json!({"messages": user}),
            json!({"model": "sonar", "messages": []}),
            json!({"model": "sonar", "messages": "q"}),
            json!({"model": "sonar", "messages": ["q"]}),
            json!({"model": "sonar", "messages": [{"role": "stranger", "content": "q"}]}),
            json!({"model": "sonar", "messages": [{"role": "user"}]}),
            json!({"model": "sonar", "messages": [{"role": "user", "content": 5}]}),
            json!({"model": "sonar", "messages": [{"role": "user", "content": "q", "kontent": 1}]}),
            json!({"model": "sonar", "messages": [{"role": "assistant", "content": "q"}]}),
            json!({"model": "gpt-9", "messages": user}),
            json!({"model": "sonar", "messages": user, "input": "q"}),
            json!({"model": "sonar", "messages": user, "max_tokens": 128_001}),
            json!({"model": "sonar", "messages": user, "temperature": 2.5}),
            json!({"model": "sonar", "messages": user, "stream": "yes"}),
            json!({"model": "sonar", "messages": user, "reasoning_effort": "heroic"}),
            json!({"model": "sonar", "messages": user, "search_mode": "deep"}),
            json!({"model": "sonar", "messages": user, "search_recency_filter": "decade"}),
            json!({"model": "sonar", "messages": user, "search_after_date_filter": "2026-01-01"}),
            json!({"model": "sonar", "messages": user, "search_domain_filter": "a.example"}),
            json!({"model": "sonar", "messages": user, "search_domain_filter": vec!["a.example"; 21]}),
            json!({"model": "sonar", "messages": user, "web_search_options": {"search_context_size": "vast"}}),
            json!({"model": "sonar", "messages": user, "web_search_options": {"user_location": {"planet": "x"}}}),
        ] {
            assert!(parse(&body).is_err(), "{body}");
        }
    }

    #[test]
    fn every_field_of_the_vendor_is_known() {
        let body = json!({
            "model": "sonar-deep-research",
            "messages": [
                {"role": "system", "content": "Cite."},
                {"role": "user", "content": [{"type": "text", "text": "old"}]},
                {"role": "assistant", "content": "answer"},
                {"role": "user", "content": "new [[sim:ok]]"},
            ],
            "max_tokens": 128_000, "stream": true, "reasoning_effort": "high",
            "search_mode": "academic", "search_recency_filter": "year", "search_domain_filter": ["-a.example"],
            "search_language_filter": ["en"], "search_after_date_filter": "01/31/2026",
            "search_before_date_filter": null, "last_updated_after_filter": "1/2/2026",
            "last_updated_before_filter": "12/31/2026",
            "web_search_options": {"search_context_size": "high", "search_type": "pro",
                "user_location": {"country": "DE", "latitude": 1.0, "longitude": 2.0}},
            "return_images": false, "return_related_questions": true, "enable_search_classifier": false,
            "disable_search": false, "response_format": {"type": "text"}, "language_preference": "en",
            "temperature": 0.2, "top_p": 0.9, "top_k": 0, "stop": null, "presence_penalty": 0,
            "frequency_penalty": 1, "tools": [], "tool_choice": "auto",
        });
        let ask = parse(&body).unwrap();
        assert_eq!(ask.question, "new");
        assert!(ask.stream && ask.prompt.contains("old") && ask.prompt.contains("[[sim:ok]]"));
        assert_eq!(ask.sonar.unwrap().context, Context::High);
    }

    #[test]
    fn a_job_is_the_same_request_in_an_envelope() {
        let request = json!({"model": "sonar", "messages": [{"role": "user", "content": "q"}]});
        let parse = |body: Value| job(body.to_string().as_bytes());
        let ask = parse(json!({"request": request, "idempotency_key": "k"})).unwrap();
        assert!(ask.background);
        for body in [
            request.clone(),
            json!({"idempotency_key": "k"}),
            json!({"request": "q"}),
            json!({"request": request, "idempotency_key": 5}),
            json!({"request": request, "idempotency_key": ""}),
            json!({"request": request, "webhook": "https://a.example"}),
            json!({"request": {"model": "sonar"}}),
        ] {
            assert!(parse(body.clone()).is_err(), "{body}");
        }
    }
}
