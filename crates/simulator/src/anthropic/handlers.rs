//! The endpoints of the Managed Agents API. Handlers validate, call `Runs`, and render.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::sessions::{Session, made};
use super::wire;
use crate::app::{App, SharedApp, answer, event_stream, with_key};
use crate::ask::{Api, Ask};
use crate::errors::Refusal;
use crate::fastapi::text_of;
use crate::faults::Call;
use crate::scenario::Scenario;
use crate::socket::Hangup;
use crate::stream::{self, Naming};
use crate::wall_clock;

const KEY_HEADER: &str = "x-api-key";
const BETA: &str = "managed-agents-2026-04-01";

/// The models, with their end of life.
const MODELS: [(&str, Option<&str>); 3] = [
    ("claude-sonnet-5-5", None),
    ("claude-opus-5-5", None),
    ("claude-sonnet-4-5", Some("2027-02-01T00:00:00Z")),
];

type Pairs = Query<HashMap<String, String>>;

pub(crate) fn router() -> Router<Arc<App>> {
    let routes = Router::new()
        .route("/v1/agents", post(make_agent).get(agents))
        .route("/v1/agents/{id}/archive", post(archive_object))
        .route("/v1/environments", post(make_environment).get(environments))
        .route("/v1/environments/{id}/archive", post(archive_object))
        .route("/v1/sessions", post(make_session).get(sessions))
        .route("/v1/sessions/{id}", get(session).delete(delete))
        .route("/v1/sessions/{id}/archive", post(archive))
        .route("/v1/sessions/{id}/events", post(send).get(events))
        .route("/v1/sessions/{id}/events/stream", get(follow));
    with_key(Api::Anthropic, routes).route("/v1/models/{id}", get(model))
}

/// Returns true if the request uses this dialect; some paths are shared with other APIs.
pub(crate) fn is_meant(headers: &HeaderMap) -> bool {
    headers.contains_key("anthropic-version") || headers.contains_key(KEY_HEADER)
}

/// Refuses a request whose key is missing or says that it is wrong.
pub(crate) fn authorize(headers: &HeaderMap) -> Result<(), Refusal> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text("authorization").and_then(|value| value.strip_prefix("Bearer "));
    let key = text(KEY_HEADER).or(bearer).unwrap_or_default().trim();
    if key.is_empty() || key.contains("wrong") {
        return Err(refusal(StatusCode::UNAUTHORIZED, "authentication_error", "invalid x-api-key"));
    }
    Ok(())
}

/// Like [`authorize`], and requires the beta header that all endpoints but the models need.
pub(crate) fn allow(headers: &HeaderMap) -> Result<(), Refusal> {
    authorize(headers)?;
    let beta = headers.get("anthropic-beta").and_then(|value| value.to_str().ok());
    if !beta.is_some_and(|beta| beta.contains(BETA)) {
        return Err(invalid(&format!("the header anthropic-beta must name {BETA}")));
    }
    Ok(())
}

fn refusal(status: StatusCode, kind: &str, message: &str) -> Refusal {
    Refusal::envelope(status, kind, message.to_owned())
}

fn invalid(message: &str) -> Refusal {
    refusal(StatusCode::BAD_REQUEST, "invalid_request_error", message)
}

/// The list of models; its path is shared with other APIs.
pub(crate) fn models() -> Value {
    let models: Vec<Value> = MODELS.iter().map(|(id, ends)| model_object(id, *ends)).collect();
    json!({"data": models, "has_more": false, "first_id": MODELS[0].0, "last_id": MODELS[2].0})
}

async fn model(headers: HeaderMap, Path(id): Path<String>) -> Result<Json<Value>, Refusal> {
    authorize(&headers)?;
    let model = MODELS.iter().find(|(name, _)| *name == id);
    let (name, ends) = model.ok_or_else(Refusal::not_found)?;
    Ok(Json(model_object(name, *ends)))
}

fn model_object(id: &str, ends: Option<&str>) -> Value {
    json!({
        "id": id, "type": "model", "display_name": id, "created_at": "2026-01-01T00:00:00Z",
        "lifecycle": if ends.is_some() { "deprecated" } else { "active" },
        "deprecated_at": ends.map(|_| "2026-08-01T00:00:00Z"), "retires_at": ends,
    })
}

async fn make_agent(State(app): SharedApp, body: Bytes) -> Result<Json<Value>, Refusal> {
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    if !MODELS.iter().any(|(model, _)| request["model"] == *model) {
        return Err(refusal(StatusCode::NOT_FOUND, "not_found_error", "model not found"));
    }
    make(&app, &request, "agent")
}

async fn make_environment(State(app): SharedApp, body: Bytes) -> Result<Json<Value>, Refusal> {
    make(&app, &serde_json::from_slice(&body).unwrap_or_default(), "environment")
}

fn make(app: &App, request: &Value, kind: &str) -> Result<Json<Value>, Refusal> {
    if !request["name"].is_string() {
        return Err(invalid("name: field required"));
    }
    Ok(Json(app.runs.objects(|objects| {
        let prefix = if kind == "agent" { "agent" } else { "env" };
        let object = made(objects.new_id(prefix), request, kind);
        objects.definitions.push(object.clone());
        object
    })))
}

async fn agents(State(app): SharedApp, Query(query): Pairs) -> Json<Value> {
    Json(page(&query, app.runs.objects(|objects| objects.live("agent").cloned().collect())))
}

async fn environments(State(app): SharedApp, Query(query): Pairs) -> Json<Value> {
    Json(page(&query, app.runs.objects(|objects| objects.live("environment").cloned().collect())))
}

async fn archive_object(
    State(app): SharedApp,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    app.runs.objects(|objects| {
        let object = objects.definitions.iter_mut().find(|object| object["id"] == id);
        let object = object.ok_or_else(Refusal::not_found)?;
        object["archived_at"] = wall_clock::rfc3339(wall_clock::unix_seconds()).into();
        Ok(Json(object.clone()))
    })
}

async fn make_session(
    State(app): SharedApp,
    ConnectInfo(hangup): ConnectInfo<Hangup>,
    body: Bytes,
) -> Result<Response, Refusal> {
    let mut request: Value = serde_json::from_slice(&body).unwrap_or_default();
    if request["metadata"].is_null() {
        request["metadata"] = json!({});
    }
    if let Value::Object(budget) = &request["budget"] {
        let amount = budget["max_list_cost"]["amount"].as_str().and_then(|it| it.parse().ok());
        if amount.is_none_or(|amount: u64| amount == 0) {
            return Err(invalid("budget.max_list_cost.amount: must be a whole number of cents"));
        }
    }
    let title = request["title"].as_str().unwrap_or_default().to_owned();
    let scenario = Scenario::select(&title, || None).unwrap_or_default();
    let drops = scenario.drop_create;
    let made = app.runs.objects(|objects| {
        let tries = objects.count_create(&title);
        if let Some(fault) = scenario.fault(Call::Create, tries) {
            return Err(Refusal::scripted(fault));
        }
        for (kind, field) in [("agent", "agent"), ("environment", "environment_id")] {
            if !objects.live(kind).any(|object| object["id"] == request[field]) {
                return Err(refusal(StatusCode::NOT_FOUND, "not_found_error", field));
            }
        }
        let id = objects.new_id("sesn");
        let created_at = wall_clock::unix_seconds();
        objects.sessions.push(Session { id, request, created_at, archived_at: None, scenario });
        // Only the first answer is lost: another attempt must be answered.
        let is_lost = drops && tries == 0;
        let made = objects.sessions.last().map(|made| wire::session(made, objects, None));
        Ok((made.unwrap_or_default(), is_lost))
    });
    let (made, is_lost) = made?;
    if is_lost {
        hangup.now();
    }
    Ok(Json(made).into_response())
}

async fn sessions(State(app): SharedApp, Query(query): Pairs) -> Result<Json<Value>, Refusal> {
    let wanted = |session: &&Session| {
        let agent = query.get("agent_id").is_none_or(|agent| session.request["agent"] == *agent);
        let since = query.get("created_at[gte]");
        let all = query.get("include_archived").is_some_and(|all| all == "true");
        agent
            && since.is_none_or(|since| wall_clock::rfc3339(session.created_at) >= *since)
            && (all || session.archived_at.is_none())
    };
    let listed = app.runs.objects(|objects| {
        let newest = objects.sessions.iter().rev().filter(wanted);
        newest.map(|session| wire::session(session, objects, None)).collect()
    });
    Ok(Json(page(&query, listed)))
}

/// Renders one page of a list.
fn page(query: &HashMap<String, String>, all: Vec<Value>) -> Value {
    let number = |name: &str| query.get(name).and_then(|value| value.parse().ok());
    let (from, limit) = (number("page").unwrap_or(0usize), number("limit").unwrap_or(20).max(1));
    let next = from.saturating_add(limit);
    let next_page = (next < all.len()).then(|| next.to_string());
    let data: Vec<Value> = all.into_iter().skip(from).take(limit).collect();
    json!({"data": data, "next_page": next_page})
}

async fn session(
    State(app): SharedApp,
    ConnectInfo(hangup): ConnectInfo<Hangup>,
    Path(id): Path<String>,
) -> Result<Response, Refusal> {
    let (session, _, transport) = app.runs.session(&id)?;
    Ok(transport.apply(transport.json(session), &app.runs.clock, &hangup))
}

async fn events(
    State(app): SharedApp,
    ConnectInfo(hangup): ConnectInfo<Hangup>,
    Path(id): Path<String>,
    Query(query): Pairs,
) -> Result<Response, Refusal> {
    let (_, events, transport) = app.runs.session(&id)?;
    let events = match query.get("types[]") {
        Some(kind) => events.into_iter().filter(|event| event["type"] == *kind).collect(),
        None => events,
    };
    let body = transport.json(page(&query, events));
    Ok(transport.apply(body, &app.runs.clock, &hangup))
}

async fn follow(
    State(app): SharedApp,
    ConnectInfo(hangup): ConnectInfo<Hangup>,
    Path(id): Path<String>,
) -> Result<Response, Refusal> {
    let Some(opening) = app.runs.attach_now(&id)? else {
        return Ok(event_stream(Body::empty()));
    };
    let transport = opening.transport;
    let body = stream::events(app.runs.clone(), opening, Naming::Named, hangup.clone());
    Ok(transport.apply(event_stream(body), &app.runs.clock, &hangup))
}

async fn archive(State(app): SharedApp, Path(id): Path<String>) -> Result<Json<Value>, Refusal> {
    app.runs.objects(|objects| {
        let session = objects.sessions.iter_mut().find(|session| session.id == id);
        session.ok_or_else(Refusal::not_found)?.archived_at = Some(wall_clock::unix_seconds());
        Ok::<_, Refusal>(())
    })?;
    Ok(Json(app.runs.session(&id)?.0))
}

async fn delete(State(app): SharedApp, Path(id): Path<String>) -> Result<Json<Value>, Refusal> {
    app.runs.objects(|objects| {
        objects.session(&id)?;
        objects.sessions.retain(|session| session.id != id);
        Ok(Json(json!({"id": id, "type": "session_deleted"})))
    })
}

async fn send(
    State(app): SharedApp,
    ConnectInfo(hangup): ConnectInfo<Hangup>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Response, Refusal> {
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let is_archived = app
        .runs
        .objects(|objects| Ok::<_, Refusal>(objects.session(&id)?.archived_at.is_some()))?;
    if is_archived {
        return Err(invalid("the session is archived"));
    }
    let event = &request["events"][0];
    match event["type"].as_str() {
        Some("user.interrupt") => {
            app.runs.interrupt(&id)?;
            let sent = json!({"id": format!("sevt_{id}_stop"), "type": "user.interrupt", "processed_at": null});
            Ok(Json(json!({"data": [sent]})).into_response())
        }
        Some("user.message") => {
            let receipt = app.accept(|| ask(&id, &event["content"]))?;
            answer(&app, receipt, &hangup).await
        }
        _ => Err(invalid("events: of an unknown type")),
    }
}

/// Parses the message that costs money.
fn ask(id: &str, content: &Value) -> Result<Ask, Refusal> {
    let blocks = content.as_array().map(Vec::as_slice).unwrap_or_default();
    let texts: Vec<String> = blocks.iter().filter_map(|block| text_of(&block["text"])).collect();
    if texts.last().is_none_or(|last| last.trim().is_empty()) {
        return Err(invalid("content: a message must not be empty"));
    }
    Ok(Ask {
        session: Some(id.to_owned()),
        model: "anthropic/claude-sonnet-5-5",
        ..Ask::new(Api::Anthropic, content, &texts)
    })
}
