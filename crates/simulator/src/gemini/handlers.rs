//! The endpoints of interactions.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::middleware::map_response;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

use super::refusal::in_google_words;
use super::{AGENTS, request};
use crate::app::{App, SharedApp, cancels, submits, with_key};
use crate::ask::Api;
use crate::errors::Refusal;
use crate::http::looks;

pub(crate) fn router() -> Router<Arc<App>> {
    let mut submitted = Router::new();
    let mut begun = Router::new();
    for base in ["/v1beta", "/gemini/v1beta", "/gemini/v1"] {
        let runs = format!("{base}/interactions");
        submitted = submitted.route(&runs, submits(Api::Gemini, request::parse));
        begun = begun
            .route(&format!("{base}/models"), get(models))
            .route(&format!("{runs}/{{id}}"), looks(Api::Gemini).delete(delete))
            .route(&format!("{runs}/{{id}}/cancel"), cancels(Api::Gemini));
    }
    submitted.merge(with_key(Api::Gemini, begun)).layer(map_response(in_google_words))
}

async fn delete(State(app): SharedApp, Path(id): Path<String>) -> Result<Json<Value>, Refusal> {
    app.runs.forget(Api::Gemini, &id)?;
    Ok(Json(json!({})))
}

async fn models() -> Json<Value> {
    let names = ["gemini-3.1-pro-preview"].into_iter().chain(AGENTS);
    let models = names.map(|name| json!({"name": format!("models/{name}"), "displayName": name}));
    Json(json!({"models": models.collect::<Vec<_>>()}))
}
