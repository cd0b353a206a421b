//! The endpoints, and refusals in the vendor's envelope.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::middleware::map_response;
use axum::response::Response;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};

use super::prices::MODELS;
use super::request;
use crate::app::{App, SharedApp, cancels, submits, with_key};
use crate::ask::Api;
use crate::errors::{ErrorText, Refusal, replace_error};
use crate::http::looks;

pub(crate) fn router() -> Router<Arc<App>> {
    let begun = Router::new()
        .route("/openai/v1/models", get(models))
        .route("/openai/v1/responses/{id}", looks(Api::OpenAi).delete(delete))
        .route("/openai/v1/responses/{id}/cancel", cancels(Api::OpenAi));
    with_key(Api::OpenAi, begun)
        .route("/openai/v1/responses", submits(Api::OpenAi, request::parse))
        .layer(map_response(in_its_envelope))
}

async fn delete(State(app): SharedApp, Path(id): Path<String>) -> Result<Json<Value>, Refusal> {
    app.runs.forget(Api::OpenAi, &id)?;
    Ok(Json(json!({"id": id, "object": "response", "deleted": true})))
}

async fn models() -> Json<Value> {
    let models = MODELS.iter().map(|(model, shutdown)| {
        json!({"id": model.id, "object": "model", "created": 0, "owned_by": "openai", "shutdown_date": shutdown})
    });
    Json(json!({"object": "list", "data": models.collect::<Vec<_>>()}))
}

/// Replaces the other vendor's error envelope; other responses are unchanged.
async fn in_its_envelope(response: Response) -> Response {
    let Some(ErrorText { kind, message }) = response.extensions().get().cloned() else {
        return response;
    };
    let status = response.status();
    let code = match (status.as_u16(), kind.as_str()) {
        (403, _) => "unsupported_country_region_territory",
        (_, "invalid_request") => "invalid_value",
        (_, kind) => kind,
    };
    let param = (code == "model_not_found").then_some("model");
    let kind = match status {
        StatusCode::TOO_MANY_REQUESTS => code,
        _ if code.starts_with("insufficient_") => code,
        status if status.is_server_error() => "server_error",
        _ => "invalid_request_error",
    };
    let error = json!({"message": message, "type": kind, "param": param, "code": code});
    replace_error(response, status, error)
}
