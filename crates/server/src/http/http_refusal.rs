//! Refusals before MCP: a status, and `{"error": {"code", "message"}}` with a next step.
//!
//! The format is the same on every route. Errors that rmcp finds in a message are JSON-RPC errors instead.

use std::time::Duration;

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::header::{ALLOW, CONNECTION, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode};
use outlast_http::oauth::TokenError;
use serde_json::json;

use super::oauth::ResourceServer;
use crate::audit::RefusedWith;
use crate::caller::Access;
use crate::text::printable;

/// A request that was refused.
#[derive(Debug)]
pub(super) struct HttpRefusal {
    status: StatusCode,
    code: &'static str,
    message: String,
    headers: Vec<(HeaderName, HeaderValue)>,
}

macro_rules! refusals {
    ($($name:ident = $status:ident, $code:literal, retry after: $retry:expr, $message:literal;)*) => {
        impl HttpRefusal {
            $(pub(super) fn $name() -> Self {
                let refusal = Self::new(StatusCode::$status, $code, $message);
                refusal.retry_after($retry)
            })*
        }
    };
}

refusals! {
    bad_host = MISDIRECTED_REQUEST, "BAD_HOST", retry after: None,
        "this server does not answer to that name; use the address it was started with, or list the name in OUTLAST_ALLOWED_HOSTS";
    bad_origin = FORBIDDEN, "BAD_ORIGIN", retry after: None,
        "web pages of this origin may not ask here; list the origin in OUTLAST_ALLOWED_ORIGINS if you trust it";
    cross_site = FORBIDDEN, "CROSS_SITE", retry after: None,
        "only the page itself may change anything here; open it and use its own buttons";
    too_many_bytes = SERVICE_UNAVAILABLE, "TOO_BUSY", retry after: Some(1),
        "too much is being sent to this server at the moment; send it again";
    too_many_sessions = SERVICE_UNAVAILABLE, "TOO_MANY_SESSIONS", retry after: Some(30),
        "too many sessions are in use; end some with DELETE, or try again later";
    leaving = SERVICE_UNAVAILABLE, "SERVICE_UNAVAILABLE", retry after: Some(2),
        "the server is about to stop; try again in a few seconds";
    too_slow = REQUEST_TIMEOUT, "TIMEOUT", retry after: None,
        "the body did not arrive in time; send it again";
    broken_body = BAD_REQUEST, "BAD_REQUEST", retry after: None,
        "the body ended before it was whole; send it again";
    bad_media_type = UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE", retry after: None,
        "send plain JSON: `Content-Type: application/json`, and no Content-Encoding";
    not_found = NOT_FOUND, "NOT_FOUND", retry after: None,
        "there is nothing here; MCP is at /mcp";
    no_session = NOT_FOUND, "SESSION_NOT_FOUND", retry after: None,
        "there is no such session: it ended, or it is not yours; start a new one with `initialize`";
    bad_method = METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", retry after: None,
        "this method means nothing here; the header Allow names those that do";
}

impl HttpRefusal {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), headers: Vec::new() }
    }

    fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    fn retry_after(self, seconds: Option<u64>) -> Self {
        match seconds {
            Some(seconds) => self.with(RETRY_AFTER, HeaderValue::from(seconds)),
            None => self,
        }
    }

    /// Refuses a request without a usable token of the issuer, or of this server.
    pub(super) fn bad_access_token(oauth: &ResourceServer, problem: Option<&TokenError>) -> Self {
        if let Some(TokenError::Unavailable(why)) = problem {
            // A client that is refused with 401 would drop a token that may be good.
            tracing::warn!("cannot verify an access token: {why}");
            let message = "the issuer's keys cannot be fetched at the moment, so no token can be verified; try again";
            return Self::new(StatusCode::SERVICE_UNAVAILABLE, "SERVICE_UNAVAILABLE", message)
                .retry_after(Some(5));
        }
        let message = match problem {
            Some(problem) => problem.to_string(),
            None => "sign in: send `Authorization: Bearer TOKEN` with an access token of the issuer that the \
                     metadata in WWW-Authenticate names"
                .to_owned(),
        };
        let refusal = Self::new(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", message);
        refusal.with_challenge(oauth.challenge(problem))
    }

    /// Refuses a request whose access token lacks a scope.
    pub(super) fn insufficient_scope(oauth: &ResourceServer, needed: Access) -> Self {
        let scope = oauth.scope(needed);
        let message = format!("the access token lacks the scope `{scope}`; sign in again with it");
        let refusal = Self::new(StatusCode::FORBIDDEN, "INSUFFICIENT_SCOPE", message);
        refusal.with_challenge(oauth.scope_challenge(needed))
    }

    fn with_challenge(self, challenge: Option<HeaderValue>) -> Self {
        match challenge {
            Some(challenge) => self.with(WWW_AUTHENTICATE, challenge),
            None => self,
        }
    }

    pub(super) fn no_token() -> Self {
        let message = "send the header `Authorization: Bearer TOKEN` with a token of this server; \
                       its log says at start where the tokens are";
        let challenge = HeaderValue::from_static("Bearer realm=\"outlast\"");
        Self::new(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", message)
            .with(WWW_AUTHENTICATE, challenge)
    }

    pub(super) fn too_many_requests(wait: Duration) -> Self {
        let message = "too many requests in the last minute; wait as long as Retry-After says";
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        Self::new(StatusCode::TOO_MANY_REQUESTS, "RATE_LIMITED", message)
            .retry_after(Some(seconds.max(1)))
    }

    /// Closes the connection with the answer.
    pub(super) fn too_many_connections() -> Self {
        let message = "you have too many connections open; close some, or try again later";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "TOO_MANY_CONNECTIONS", message)
            .retry_after(Some(5))
            .with(CONNECTION, HeaderValue::from_static("close"))
    }

    pub(super) fn too_large(limit: usize) -> Self {
        let size = match limit >> 20 {
            0 => format!("{} KiB", limit >> 10),
            mebibytes => format!("{mebibytes} MiB"),
        };
        let message = format!("the body is larger than {size}; send less");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "TOO_LARGE", message)
    }

    /// Rewrites a refusal by rmcp that is not JSON; `said` is rmcp's text.
    pub(super) fn by_rmcp(status: StatusCode, headers: &HeaderMap, said: &str) -> Self {
        let refusal = match status {
            StatusCode::NOT_FOUND => Self::no_session(),
            StatusCode::METHOD_NOT_ALLOWED => Self::bad_method(),
            StatusCode::NOT_ACCEPTABLE => {
                let message = "send `Accept: application/json, text/event-stream`";
                Self::new(status, "NOT_ACCEPTABLE", message)
            }
            // rmcp has seen the content type of JSON, so this status is about the content of the body.
            StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                let message = "the body is not one JSON-RPC message of MCP";
                Self::new(StatusCode::BAD_REQUEST, "BAD_MESSAGE", message)
            }
            status if status.is_client_error() => {
                let said: String = printable(said).chars().take(200).collect();
                let message = format!("the request is not as MCP has it: {said}");
                Self::new(status, "BAD_REQUEST", message)
            }
            status => {
                tracing::warn!(%status, said, "request failed");
                let message = "something is wrong with this server; its log has the details";
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR", message)
            }
        };
        match headers.get(ALLOW) {
            Some(allow) => refusal.with(ALLOW, allow.clone()),
            None => refusal,
        }
    }
}

impl IntoResponse for HttpRefusal {
    fn into_response(self) -> Response {
        let Self { status, code, message, headers } = self;
        let body = Json(json!({ "error": { "code": code, "message": message } }));
        let mut response = (status, body).into_response();
        response.headers_mut().extend(headers);
        response.extensions_mut().insert(RefusedWith(code));
        response
    }
}
