//! What a client submits to Sonar, checked strictly: a field that is misspelt or out of range is refused.

use serde_json::{Map, Value};

use super::prices::{Context, MODELS};
use crate::ask::{Api, Ask, IdempotencyKey, Sonar, Via};
use crate::errors::Refusal;
use crate::fastapi::{self, Form, Rule, Rules};
use crate::scenario::without_markers;

const FIELDS: Rules = &[
    ("model", Rule::Text),
    ("messages", Rule::Any),
    ("max_tokens", Rule::Whole(1, 128_000)),
    ("stream", Rule::Flag),
    ("stream_mode", Rule::OneOf(&["full"])),
    ("reasoning_effort", Rule::OneOf(&["minimal", "low", "medium", "high"])),
    ("web_search_options", Rule::Object),
    ("return_images", Rule::Flag),
    ("return_related_questions", Rule::Flag),
    ("enable_search_classifier", Rule::Flag),
    ("disable_search", Rule::Flag),
    ("response_format", Rule::Object),
    ("language_preference", Rule::Text),
    ("temperature", Rule::Number(0.0, 2.0)),
    ("top_p", Rule::Number(0.0, 1.0)),
    ("top_k", Rule::Whole(0, 2_048)),
    ("stop", Rule::Any),
    ("presence_penalty", Rule::Number(-2.0, 2.0)),
    ("frequency_penalty", Rule::Number(-2.0, 2.0)),
    ("tools", Rule::Any),
    ("tool_choice", Rule::Any),
];

/// What every search of the vendor can be narrowed to.
pub(crate) const FILTERS: Rules = &[
    ("search_mode", Rule::OneOf(&["web", "academic", "sec"])),
    ("search_recency_filter", Rule::OneOf(&["hour", "day", "week", "month", "year"])),
    ("search_domain_filter", Rule::Texts(20)),
    ("search_language_filter", Rule::Texts(20)),
    ("search_after_date_filter", Rule::Date),
    ("search_before_date_filter", Rule::Date),
    ("last_updated_after_filter", Rule::Date),
    ("last_updated_before_filter", Rule::Date),
];

const WEB_FIELDS: Rules = &[
    ("search_context_size", Rule::OneOf(&Context::NAMES)),
    ("search_type", Rule::OneOf(&["fast", "pro", "auto"])),
    ("user_location", Rule::Object),
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
    ("role", Rule::OneOf(&["system", "user", "assistant", "tool"])),
    ("content", Rule::Any),
    ("name", Rule::Any),
    ("tool_calls", Rule::Any),
    ("tool_call_id", Rule::Any),
    ("reasoning_steps", Rule::Any),
];

const JOB_FIELDS: Rules = &[("request", Rule::Object), ("idempotency_key", Rule::Text)];

/// Reads `POST /chat/completions`.
pub(crate) fn chat(bytes: &[u8]) -> Result<Ask, Refusal> {
    ask(&fastapi::body(bytes)?, &["body"], Via::Chat)
}

/// Reads `POST /v1/async/sonar`: the same request in an envelope with an idempotency key.
pub(crate) fn job(bytes: &[u8]) -> Result<Ask, Refusal> {
    let envelope = fastapi::body(bytes)?;
    let mut form = Form::of(&envelope, &["body"], &[JOB_FIELDS]);
    let key = form.text("idempotency_key").map(str::to_owned);
    if key.as_ref().is_some_and(String::is_empty) {
        form.wrong("idempotency_key", "String should not be empty", "string_too_short");
    }
    form.required("request");
    let request = form.object("request");
    form.finish()?;
    let Some(request) = request else {
        return Err(fastapi::fault(&["body", "request"], "Field required", "missing"));
    };
    let text = Value::Object(request.clone()).to_string();
    let key = key.map(|key| IdempotencyKey { key, request: text });
    ask(request, &["body", "request"], Via::Async(key))
}

fn ask(fields: &Map<String, Value>, place: &[&str], via: Via) -> Result<Ask, Refusal> {
    let mut form = Form::of(fields, place, &[FIELDS, FILTERS]);
    form.required("model");
    let name = form.text("model").unwrap_or_default();
    let texts = messages(&mut form, place);
    let context = check_web_options(&mut form, place);
    let stream = form.flag("stream") && matches!(via, Via::Chat);
    let related_questions = form.flag("return_related_questions");
    form.finish()?;
    let Some(model) = MODELS.iter().find(|model| model.id == name) else {
        let message = format!("Invalid model '{name}'. Permitted models are the sonar models.");
        return Err(Refusal::bad_parameter("invalid_model", message));
    };
    if texts.last().is_none_or(|(role, _)| !matches!(role.as_str(), "user" | "tool")) {
        let message = "the last message must come from the user or from a tool".to_owned();
        return Err(Refusal::bad_parameter("invalid_message", message));
    }
    let texts: Vec<String> = texts.into_iter().map(|(_, text)| text).collect();
    Ok(Ask {
        input: fields["messages"].to_string(),
        prompt: texts.join("\n"),
        question: texts.last().map(|text| without_markers(text)).unwrap_or_default(),
        effort: model.effort,
        label: model.id.to_owned(),
        model: model.id,
        background: matches!(via, Via::Async(_)),
        stream,
        store: true,
        api: Api::Sonar(Sonar { via, model, context, related_questions }),
    })
}

/// Role and text of each message, oldest first.
fn messages(form: &mut Form<'_>, place: &[&str]) -> Vec<(String, String)> {
    let Some(value) = form.required("messages") else { return Vec::new() };
    let Some(items) = value.as_array().filter(|items| !items.is_empty()) else {
        form.wrong("messages", "Input should be a list of messages", "list_type");
        return Vec::new();
    };
    let mut texts = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let number = index.to_string();
        let Some(fields) = item.as_object() else {
            form.wrong("messages", "Each message should be a dictionary", "dict_type");
            continue;
        };
        let place: Vec<&str> = place.iter().copied().chain(["messages", &number]).collect();
        let mut message = Form::of(fields, &place, &[MESSAGE_FIELDS]);
        message.required("role");
        let role = message.text("role");
        let text = message.required("content").and_then(text_of);
        if text.is_none() && message.present("content").is_some() {
            message.wrong("content", "Input should be a string or parts of text", "string_type");
        }
        texts.extend(role.map(str::to_owned).zip(text));
        form.adopt(message);
    }
    texts
}

fn text_of(content: &Value) -> Option<String> {
    match content {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            let texts: Option<Vec<&str>> = parts
                .iter()
                .map(|part| match part["type"].as_str()? {
                    "text" => part["text"].as_str(),
                    "image_url" | "file_url" | "pdf_url" | "video_url" => Some(""),
                    _ => None,
                })
                .collect();
            Some(texts?.join("\n"))
        }
        _ => None,
    }
}

fn check_web_options(form: &mut Form<'_>, place: &[&str]) -> Context {
    let Some(fields) = form.object("web_search_options") else { return Context::Low };
    let place: Vec<&str> = place.iter().copied().chain(["web_search_options"]).collect();
    let mut options = Form::of(fields, &place, &[WEB_FIELDS]);
    let size = options.text("search_context_size");
    if let Some(location) = options.object("user_location") {
        let place: Vec<&str> = place.iter().copied().chain(["user_location"]).collect();
        options.adopt(Form::of(location, &place, &[PLACE_FIELDS]));
    }
    form.adopt(options);
    size.and_then(Context::named).unwrap_or(Context::Low)
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
        let Api::Sonar(sonar) = ask.api else { panic!("not for sonar") };
        assert_eq!(sonar.context, Context::High);
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
