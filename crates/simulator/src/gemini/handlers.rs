//! The endpoints of interactions.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{ConnectInfo, Path, Query, State};
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

use super::refusal::{authorize, in_google_words};
use super::{AGENTS, events, request};
use crate::app::{App, answer, event_stream, mark};
use crate::ask::Api;
use crate::errors::Refusal;
use crate::socket::Hangup;
use crate::stream::{self, Naming};

type SharedApp = State<Arc<App>>;

pub(crate) fn router() -> Router<Arc<App>> {
    let mut router = Router::new();
    for base in ["/v1beta", "/gemini/v1beta", "/gemini/v1"] {
        router = router
            .route(&format!("{base}/models"), get(models))
            .route(&format!("{base}/interactions"), post(submit))
            .route(&format!("{base}/interactions/{{id}}"), get(look).delete(delete))
            .route(&format!("{base}/interactions/{{id}}/cancel"), post(cancel));
    }
    router
}

async fn submit(
    State(app): SharedApp,
    ConnectInfo(hangup): ConnectInfo<Hangup>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Refusal> {
    let ask = || authorize(&headers, &uri).and_then(|()| request::parse(&body));
    let receipt = app.accept(ask).map_err(in_google_words)?;
    answer(&app, receipt, &hangup).await.map_err(in_google_words)
}

#[derive(Deserialize)]
struct Look {
    stream: Option<bool>,
    last_event_id: Option<String>,
}

async fn look(
    State(app): SharedApp,
    ConnectInfo(hangup): ConnectInfo<Hangup>,
    Path(id): Path<String>,
    query: Result<Query<Look>, axum::extract::rejection::QueryRejection>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    authorize(&headers, &uri)?;
    let invalid = || in_google_words(Refusal::invalid("invalid query"));
    let Ok(Query(look)) = query else { return Err(invalid()) };
    let (response, transport) = if look.stream == Some(true) {
        let next = look.last_event_id.as_deref().map_or(Some(0), events::after);
        let next = next.ok_or_else(invalid)?;
        let opening = app.runs.attach(Api::Gemini, &id, next).map_err(in_google_words)?;
        let transport = opening.transport;
        let body = stream::events(app.runs.clone(), opening, Naming::Named, hangup.clone());
        (event_stream(body), transport)
    } else {
        let (object, transport) = app.runs.poll(Api::Gemini, &id).map_err(in_google_words)?;
        (transport.json(object), transport)
    };
    let mut response = transport.apply(response, &app.runs.clock, &hangup);
    mark(&mut response, &id);
    Ok(response)
}

async fn cancel(
    State(app): SharedApp,
    Path(id): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    authorize(&headers, &uri)?;
    app.runs.cancel(Api::Gemini, &id).map_err(in_google_words)?;
    Ok(Json(app.runs.shown(&id)).into_response())
}

async fn delete(
    State(app): SharedApp,
    Path(id): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Json<Value>, Refusal> {
    authorize(&headers, &uri)?;
    app.runs.forget(Api::Gemini, &id).map_err(in_google_words)?;
    Ok(Json(json!({})))
}

async fn models(uri: Uri, headers: HeaderMap) -> Result<Json<Value>, Refusal> {
    authorize(&headers, &uri)?;
    let names = ["gemini-3.1-pro-preview"].into_iter().chain(AGENTS);
    let models = names.map(|name| json!({"name": format!("models/{name}"), "displayName": name}));
    Ok(Json(json!({"models": models.collect::<Vec<_>>()})))
}
