//! Error responses in the format of this API.

use axum::Json;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::Response;
use serde_json::{Value, json};

use super::GOOGLE_KEY;
use crate::errors::{ErrorText, Refusal, replace_error};

/// Converts a refusal to the format of this API.
pub(super) async fn in_google_words(response: Response) -> Response {
    let Some(ErrorText { kind, message }) = response.extensions().get().cloned() else {
        return response;
    };
    // An empty account has one response here, whatever status the scenario uses for other APIs.
    let is_empty = kind == "insufficient_quota";
    let status = if is_empty { StatusCode::PAYMENT_REQUIRED } else { response.status() };
    let wait = response.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
    let details = wait.map(|seconds| {
        json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": format!("{seconds}s")})
    });
    let error = error(status, &message, details);
    replace_error(response, status, error)
}

/// Refuses a request whose key is missing, says that it is wrong, or is part of the URL.
pub(crate) fn authorize(headers: &HeaderMap, uri: &Uri) -> Result<(), Refusal> {
    let key = headers.get(GOOGLE_KEY).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let in_address = uri.query().is_some_and(|query| query.contains("key="));
    if !key.is_empty() && !key.contains("wrong") && !in_address {
        return Ok(());
    }
    let reason =
        json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"});
    let message = "API key not valid. Please pass a valid API key.";
    Err(envelope(StatusCode::BAD_REQUEST, message, Some(reason)))
}

/// 404: the agent is unknown.
pub(super) fn no_such_agent(agent: &str) -> Refusal {
    envelope(StatusCode::NOT_FOUND, &format!("Agent '{agent}' not found."), None)
}

fn envelope(status: StatusCode, message: &str, details: Option<Value>) -> Refusal {
    Refusal::new(status, Json(json!({"error": error(status, message, details)})))
}

fn error(status: StatusCode, message: &str, details: Option<Value>) -> Value {
    let mut error = json!({"code": status.as_u16(), "message": message, "status": word(status)});
    if let Some(details) = details {
        error["details"] = json!([details]);
    }
    error
}

fn word(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "UNAUTHENTICATED",
        402 | 429 => "RESOURCE_EXHAUSTED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        409 => "ABORTED",
        501 => "UNIMPLEMENTED",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        500.. => "INTERNAL",
        _ => "INVALID_ARGUMENT",
    }
}
