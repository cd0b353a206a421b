//! The endpoints, and refusals in the vendor's envelope.

use std::sync::Arc;

use axum::body::to_bytes;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::prices::MODELS;
use super::request;
use crate::app::{App, authorize, submits};
use crate::ask::Api;
use crate::errors::Refusal;
use crate::http::looks;

/// More than any refusal holds.
const MAX_REFUSAL_BYTES: usize = 1024 * 1024;

pub(crate) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/openai/v1/models", get(models))
        .route("/openai/v1/responses", submits(request::parse))
        .route("/openai/v1/responses/{id}", looks(Api::OpenAi).delete(delete))
        .route("/openai/v1/responses/{id}/cancel", post(cancel))
        .layer(from_fn(in_its_envelope))
}

async fn cancel(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Json<Value>, Refusal> {
    authorize(&headers)?;
    app.runs.cancel(Api::OpenAi, &id).map(Json)
}

async fn delete(
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Json<Value>, Refusal> {
    authorize(&headers)?;
    app.runs.delete(Api::OpenAi, &id)?;
    Ok(Json(json!({"id": id, "object": "response", "deleted": true})))
}

async fn models(headers: HeaderMap) -> Result<Json<Value>, Refusal> {
    authorize(&headers)?;
    let models = MODELS.iter().map(|(model, shutdown)| {
        json!({"id": model.id, "object": "model", "created": 0, "owned_by": "openai", "shutdown_date": shutdown})
    });
    Ok(Json(json!({"object": "list", "data": models.collect::<Vec<_>>()})))
}

/// Rewrites the other vendor's error envelope; what is none stays as it is.
async fn in_its_envelope(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let status = response.status();
    if status.is_success() {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let bytes = to_bytes(body, MAX_REFUSAL_BYTES).await.unwrap_or_default();
    let error = serde_json::from_slice::<Value>(&bytes).unwrap_or_default()["error"].take();
    let Some(kind) = error["type"].as_str() else {
        return (parts, bytes).into_response();
    };
    let (code, param) = match (status.as_u16(), kind) {
        (403, _) => ("unsupported_country_region_territory", Value::Null),
        (_, "invalid_request") => ("invalid_value", Value::Null),
        (_, "model_not_found") => (kind, "model".into()),
        (_, kind) => (kind, Value::Null),
    };
    let kind = match status {
        StatusCode::TOO_MANY_REQUESTS => code,
        _ if code.starts_with("insufficient_") => code,
        status if status.is_server_error() => "server_error",
        _ => "invalid_request_error",
    };
    let error = json!({"message": error["message"], "type": kind, "param": param, "code": code});
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.remove(header::CONTENT_TYPE);
    (parts, Json(json!({"error": error}))).into_response()
}
