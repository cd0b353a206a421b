//! What is answered before MCP is spoken: a status, and `{"error": {"code", "message"}}` with a next step.
//!
//! The shape is the same on every route. What rmcp finds wrong with a message is a JSON-RPC error instead.

use std::time::Duration;

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::header::{ALLOW, CONNECTION, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode};
use serde_json::json;

/// A request that was not let through.
#[derive(Debug)]
pub(super) struct Refused {
    status: StatusCode,
    code: &'static str,
    message: String,
    more: More,
    /// Whether the connection ends with this answer.
    closes: bool,
}

/// The header that belongs to some of them.
#[derive(Debug)]
enum More {
    Nothing,
    /// How to show who one is.
    Challenge,
    /// When trying again can help, in seconds.
    RetryAfter(u64),
    /// Which methods would do.
    Allow(HeaderValue),
}

impl Refused {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), more: More::Nothing, closes: false }
    }

    fn retry_after(self, wait: Duration) -> Self {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        Self { more: More::RetryAfter(seconds.max(1)), ..self }
    }

    pub(super) fn host() -> Self {
        let message = "this server does not answer to that name; use the address it was started with, \
                       or list the name in OUTLAST_ALLOWED_HOSTS";
        Self::new(StatusCode::MISDIRECTED_REQUEST, "BAD_HOST", message)
    }

    pub(super) fn origin() -> Self {
        let message = "web pages of this origin may not ask here; list the origin in OUTLAST_ALLOWED_ORIGINS \
                       if you trust it";
        Self::new(StatusCode::FORBIDDEN, "BAD_ORIGIN", message)
    }

    pub(super) fn token() -> Self {
        let message = "send the header `Authorization: Bearer TOKEN` with a token of this server; \
                       its log says at start where the tokens are";
        let refused = Self::new(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", message);
        Self { more: More::Challenge, ..refused }
    }

    pub(super) fn too_many_requests(wait: Duration) -> Self {
        let message = "too many requests in the last minute; wait as long as Retry-After says";
        Self::new(StatusCode::TOO_MANY_REQUESTS, "RATE_LIMITED", message).retry_after(wait)
    }

    /// Closes the connection with the answer.
    pub(super) fn too_many_connections() -> Self {
        let message = "you have too many connections open; close some, or try again later";
        let refused = Self::new(StatusCode::SERVICE_UNAVAILABLE, "TOO_MANY_CONNECTIONS", message);
        Self { closes: true, ..refused.retry_after(Duration::from_secs(5)) }
    }

    pub(super) fn too_many_bytes() -> Self {
        let message = "too much is being sent to this server at the moment; send it again";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "TOO_BUSY", message)
            .retry_after(Duration::from_secs(1))
    }

    pub(super) fn too_many_sessions() -> Self {
        let message = "too many sessions are in use; end some with DELETE, or try again later";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "TOO_MANY_SESSIONS", message)
            .retry_after(Duration::from_secs(30))
    }

    pub(super) fn leaving() -> Self {
        let message = "the server is about to stop; try again in a few seconds";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "SERVICE_UNAVAILABLE", message)
            .retry_after(Duration::from_secs(2))
    }

    pub(super) fn store() -> Self {
        let message = "the job store cannot be read just now; try again";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "SERVICE_UNAVAILABLE", message)
            .retry_after(Duration::from_secs(5))
    }

    pub(super) fn too_large(limit: usize) -> Self {
        let message = format!("the body is larger than {} MiB; send less", limit >> 20);
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "TOO_LARGE", message)
    }

    pub(super) fn too_slow() -> Self {
        let message = "the body did not arrive in time; send it again";
        Self::new(StatusCode::REQUEST_TIMEOUT, "TIMEOUT", message)
    }

    pub(super) fn broken_body() -> Self {
        let message = "the body ended before it was whole; send it again";
        Self::new(StatusCode::BAD_REQUEST, "BAD_REQUEST", message)
    }

    pub(super) fn media_type() -> Self {
        let message = "send plain JSON: `Content-Type: application/json`, and no Content-Encoding";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE", message)
    }

    pub(super) fn not_found() -> Self {
        let message = "there is nothing here; MCP is at /mcp";
        Self::new(StatusCode::NOT_FOUND, "NOT_FOUND", message)
    }

    pub(super) fn session() -> Self {
        let message = "there is no such session: it ended, or it is not yours; start a new one with `initialize`";
        Self::new(StatusCode::NOT_FOUND, "SESSION_NOT_FOUND", message)
    }

    pub(super) fn method() -> Self {
        let message = "this method means nothing here; the header Allow names those that do";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", message)
    }

    /// What rmcp refused without JSON, in our words; `said` are its own.
    pub(super) fn by_rmcp(status: StatusCode, headers: &HeaderMap, said: &str) -> Self {
        let refused = match status {
            StatusCode::NOT_FOUND => Self::session(),
            StatusCode::METHOD_NOT_ALLOWED => Self::method(),
            StatusCode::NOT_ACCEPTABLE => {
                let message = "send `Accept: application/json, text/event-stream`";
                Self::new(status, "NOT_ACCEPTABLE", message)
            }
            // It has seen that the body says it is JSON, so what it did not like is what it holds.
            StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                let message = "the body is not one JSON-RPC message of MCP";
                Self::new(StatusCode::BAD_REQUEST, "BAD_MESSAGE", message)
            }
            status if status.is_client_error() => {
                let said: String = crate::text::printable(said).chars().take(200).collect();
                Self::new(
                    status,
                    "BAD_REQUEST",
                    format!("the request is not as MCP has it: {said}"),
                )
            }
            status => {
                tracing::warn!(%status, said, "request failed");
                let message = "something is wrong with this server; its log has the details";
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR", message)
            }
        };
        match headers.get(ALLOW) {
            Some(allow) => Self { more: More::Allow(allow.clone()), ..refused },
            None => refused,
        }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let Self { status, code, message, more, closes } = self;
        let body = Json(json!({ "error": { "code": code, "message": message } }));
        let header = match more {
            More::Nothing => None,
            More::Challenge => {
                Some((WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"outlast\"")))
            }
            More::RetryAfter(seconds) => Some((RETRY_AFTER, HeaderValue::from(seconds))),
            More::Allow(methods) => Some((ALLOW, methods)),
        };
        let mut response = (status, body).into_response();
        response.headers_mut().extend(header);
        if closes {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}
