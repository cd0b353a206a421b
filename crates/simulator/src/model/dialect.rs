//! The routes of the model server.
//!
//! The address selects the faults: `/llm/SWITCHES/v1`, several separated by commas, `-` for none. Percentages strike
//! by the digest of the body.
//!
//! - `server=llama|ollama|vllm|plain` (llama): what the server reports about itself, and what a prompt beyond the
//!   window means: a 400 that names the sizes, or with `ollama` a cut without a word.
//! - `window=N` (8192), `json=schema|object|plain|none` (schema): the best format of answers that is accepted; with `none`,
//!   the others are refused as by a llama.cpp whose grammars cannot start. `closed` refuses everything with 400.
//! - `broken`, `refuse`, `empty`, `loop`, `length`, `think`, `fence`: that percentage of answers is spoilt.
//! - `invent`, `alter`: that percentage of quotations is invented, or of sentences has other numbers.
//! - `obey`: the model follows instructions in its prompt as far as it can: it answers with the addresses in it.
//! - `slow=MS` delays answers; `busy=N` and `down=N` refuse the first N requests with one body, with 429 or 503.
//! - `drop_before=N`, `drop_after=N`: that percentage of bodies loses its first connection before or after the model
//!   has worked; `key` requires a key.
//!
//! Any other `name=value` only names a lane for the counts.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{ConnectInfo, DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::answer;
use super::prompt::{Prompt, content};
use super::spoil::{Content, deliver};
use super::tokens;
use crate::app::{App, SharedApp, authorize};
use crate::calls::Kind;
use crate::ids::fnv1a64;
use crate::socket::Hangup;
use crate::switches::Switches;

const DEFAULT_WINDOW: u64 = 8_192;
/// What a chat template adds to each message.
const TOKENS_PER_MESSAGE: u64 = 4;
/// The most tokens of an answer without `max_tokens`.
const MAX_ANSWER: u64 = 4_096;
const CHARS_PER_TOKEN: usize = 4;

pub(crate) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/llm/{switches}/v1/chat/completions", post(chat))
        .route("/llm/{switches}/v1/models", get(models))
        .route("/llm/{switches}/tokenize", post(tokenize))
        .route("/llm/{switches}/props", get(props))
        .route("/llm/{switches}/api/ps", get(processes))
        .layer(DefaultBodyLimit::disable())
}

fn window(switches: &Switches) -> u64 {
    match switches.number("window") {
        0 => DEFAULT_WINDOW,
        window => window,
    }
}

fn is(switches: &Switches, server: &str) -> bool {
    switches.text("server").unwrap_or("llama") == server
}

async fn chat(
    State(app): SharedApp,
    ConnectInfo(hangup): ConnectInfo<Hangup>,
    Path(lane): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let switches = Switches::parse(&lane);
    if switches.has("key") && authorize(&headers).is_err() {
        return error(StatusCode::UNAUTHORIZED, "authentication_error", "Invalid API Key");
    }
    let Ok(request) = serde_json::from_slice::<Value>(&body) else {
        return error(StatusCode::BAD_REQUEST, "invalid_request_error", "the body is not JSON");
    };
    let Some(messages) = request["messages"].as_array().filter(|all| !all.is_empty()) else {
        return error(StatusCode::BAD_REQUEST, "invalid_request_error", "messages are missing");
    };
    if request["model"].as_str() == Some("missing") {
        return error(StatusCode::NOT_FOUND, "not_found_error", "model 'missing' not found");
    }
    if switches.has("closed") {
        return error(StatusCode::BAD_REQUEST, "invalid_request_error", "this server is closed");
    }
    let digest = fnv1a64(&[&body]);
    let seen = app.calls.count_request(&lane, Kind::Model, &body);
    app.calls.keep_prompt(request.clone());
    if let Some(refusal) = refuse(&switches, seen) {
        return refusal;
    }
    if seen == 0 && switches.strikes("drop_before", digest) {
        hangup.now();
        return StatusCode::OK.into_response();
    }
    if let Some(refusal) = refuse_format(&switches, &request["response_format"]) {
        return refusal;
    }
    let _visit = app.calls.enter(&lane);
    app.sleep(switches.number("slow")).await;
    let answered = complete(&app, &lane, &switches, &request, messages, digest);
    if answered.status().is_success() {
        app.calls.count_answer(&lane, Kind::Model, &body);
    }
    if seen == 0 && switches.strikes("drop_after", digest) {
        hangup.now();
    }
    answered
}

/// Refuses the first requests with a body.
fn refuse(switches: &Switches, seen: u64) -> Option<Response> {
    let (status, message) = if seen < switches.number("busy") {
        (StatusCode::TOO_MANY_REQUESTS, "Rate limit reached")
    } else if seen < switches.number("down") {
        (StatusCode::SERVICE_UNAVAILABLE, "Loading model")
    } else {
        return None;
    };
    let mut response = error(status, "unavailable_error", message);
    response.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
    Some(response)
}

fn refuse_format(switches: &Switches, format: &Value) -> Option<Response> {
    let known = switches.text("json").unwrap_or("schema");
    let asked = format["type"].as_str().unwrap_or("text");
    let accepted = match known {
        "schema" => true,
        "object" => asked != "json_schema",
        _ => asked == "text",
    };
    let message = match known {
        "none" => "Failed to initialize samplers: std::exception".to_owned(),
        _ => format!("response_format type '{asked}' is not supported"),
    };
    (!accepted).then(|| error(StatusCode::BAD_REQUEST, "invalid_request_error", &message))
}

/// Answers a request that was accepted.
fn complete(
    app: &App,
    lane: &str,
    switches: &Switches,
    request: &Value,
    messages: &[Value],
    digest: u64,
) -> Response {
    let window = window(switches);
    let mut used: u64 =
        messages.iter().map(|message| tokens::count(&content(message)) + TOKENS_PER_MESSAGE).sum();
    let asked =
        ["max_tokens", "max_completion_tokens"].iter().find_map(|key| request[key].as_u64());
    app.calls.measure(lane, used, used + asked.unwrap_or(0) > window);
    let mut prompt = Prompt::of(messages);
    if used >= window {
        if !is(switches, "ollama") {
            return exceeded(used, window);
        }
        prompt.keep_end(window as usize / 2 * CHARS_PER_TOKEN);
        used = window / 2;
    }
    let room = (window - used).min(asked.unwrap_or(MAX_ANSWER));
    let format = &request["response_format"];
    let written = match format["type"].as_str() {
        Some("json_schema") => {
            let schema = format["json_schema"].get("schema").unwrap_or(&format["schema"]);
            answer::write(&prompt, schema, switches, digest).to_string()
        }
        _ => match schema_in(&prompt.text) {
            Some(schema) => answer::write(&prompt, &schema, switches, digest).to_string(),
            None => "The scripted model has no schema to answer.".to_owned(),
        },
    };
    let Content { text, finish_reason } = deliver(written, switches, digest, room);
    let completion = tokens::count(&text);
    let mut message = json!({"role": "assistant", "content": text});
    if switches.has("reasoning") {
        message["reasoning_content"] = "The user wants an answer.".into();
    }
    Json(json!({
        "id": format!("chatcmpl-{digest:016x}"),
        "object": "chat.completion",
        "created": 1_790_000_000,
        "model": request["model"],
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": {
            "prompt_tokens": used,
            "completion_tokens": completion,
            "total_tokens": used + completion,
        },
    }))
    .into_response()
}

/// Returns the schema that the prompt contains as text, for formats without one.
fn schema_in(text: &str) -> Option<Value> {
    let starts = text.match_indices('{').map(|(place, _)| place);
    let read = |place: usize| {
        let mut values = serde_json::Deserializer::from_str(&text[place..]).into_iter::<Value>();
        values.next()?.ok().filter(|value| value["properties"].is_object())
    };
    starts.filter_map(read).next()
}

fn exceeded(used: u64, window: u64) -> Response {
    let error = json!({
        "code": 400,
        "message": "the request exceeds the available context size, try increasing it",
        "type": "exceed_context_size_error",
        "n_prompt_tokens": used,
        "n_ctx": window,
    });
    (StatusCode::BAD_REQUEST, Json(json!({"error": error}))).into_response()
}

async fn models(Path(lane): Path<String>) -> Json<Value> {
    let switches = Switches::parse(&lane);
    let mut model = json!({"id": "scripted", "object": "model", "owned_by": "simulator"});
    if is(&switches, "vllm") {
        model["max_model_len"] = window(&switches).into();
    }
    Json(json!({"object": "list", "data": [model]}))
}

async fn tokenize(Path(lane): Path<String>, Json(request): Json<Value>) -> Response {
    let switches = Switches::parse(&lane);
    let text = request["content"].as_str().or(request["prompt"].as_str()).unwrap_or_default();
    let count = match request["messages"].as_array() {
        Some(messages) => messages
            .iter()
            .map(|message| tokens::count(&content(message)) + TOKENS_PER_MESSAGE)
            .sum(),
        None => tokens::count(text),
    };
    let tokens: Vec<u64> = (0..count).collect();
    if is(&switches, "llama") {
        return Json(json!({"tokens": tokens})).into_response();
    }
    if is(&switches, "vllm") {
        let found = json!({"count": count, "max_model_len": window(&switches), "tokens": tokens});
        return Json(found).into_response();
    }
    StatusCode::NOT_FOUND.into_response()
}

async fn props(Path(lane): Path<String>) -> Response {
    let switches = Switches::parse(&lane);
    if !is(&switches, "llama") {
        return StatusCode::NOT_FOUND.into_response();
    }
    Json(json!({
        "default_generation_settings": {"id": 0, "n_ctx": window(&switches), "is_processing": false},
        "total_slots": 1,
        "model_path": "/models/scripted.gguf",
        "chat_template": "",
        "build_info": "b0-simulator",
    }))
    .into_response()
}

async fn processes(Path(lane): Path<String>) -> Response {
    let switches = Switches::parse(&lane);
    if !is(&switches, "ollama") {
        return StatusCode::NOT_FOUND.into_response();
    }
    Json(json!({"models": [{
        "name": "scripted:latest",
        "model": "scripted:latest",
        "size": 1_000_000_000,
        "digest": "0",
        "context_length": window(&switches),
    }]}))
    .into_response()
}

fn error(status: StatusCode, kind: &str, message: &str) -> Response {
    let error = json!({"code": status.as_u16(), "message": message, "type": kind, "param": null});
    (status, Json(json!({"error": error}))).into_response()
}
