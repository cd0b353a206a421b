//! Error responses: the vendor's error envelope, and the errors of scenarios.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use serde_json::{Value, json};

use crate::bucket::Allowance;
use crate::faults::{FaultBody, HttpFault};
use crate::limits;

const RETIRED: &str = "Sonar is now the Agent API. Use /v1/responses instead of /v1/sonar. Migrate here: https://docs.perplexity.ai/docs/agent-api/migrate-from-sonar/overview";
const BAD_KEY: &str = "Invalid API key provided. Ensure your API key is correct and active.";

/// An error response.
#[derive(Debug)]
pub(crate) struct Refusal(Box<Response>);

/// The type and message of an error envelope, stored with the response because other APIs word them
/// differently.
#[derive(Clone)]
pub(crate) struct ErrorText {
    pub(crate) kind: String,
    pub(crate) message: String,
}

impl Refusal {
    /// 400: the request is invalid.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::envelope(StatusCode::BAD_REQUEST, "invalid_request", message.into())
    }

    /// 400 with one of the vendor's specific types, such as `invalid_model`.
    pub(crate) fn bad_parameter(kind: &str, message: String) -> Self {
        Self::envelope(StatusCode::BAD_REQUEST, kind, message)
    }

    pub(crate) fn bad_key() -> Self {
        Self::envelope(StatusCode::UNAUTHORIZED, "invalid_api_key", BAD_KEY.to_owned())
    }

    pub(crate) fn not_found() -> Self {
        Self::usual(StatusCode::NOT_FOUND)
    }

    /// 422 in FastAPI's format, with all faults.
    pub(crate) fn unprocessable(faults: Vec<Value>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, Json(json!({"detail": faults})))
    }

    /// 409: the idempotency key belongs to another request.
    pub(crate) fn key_conflict() -> Self {
        let message = "the idempotency key was used with another request".to_owned();
        Self::envelope(StatusCode::CONFLICT, "idempotency_conflict", message)
    }

    /// 500: the response to a client that waits for a failed run.
    pub(crate) fn run_failed(code: &str) -> Self {
        let message = format!("the run failed: {code}");
        Self::envelope(StatusCode::INTERNAL_SERVER_ERROR, code, message)
    }

    /// Unknown and finished runs are treated alike, as recorded from the vendor.
    pub(crate) fn not_cancellable() -> Self {
        Self::invalid("the run is already terminal and cannot be cancelled")
    }

    /// The response of the endpoints that the Agent API replaced.
    pub(crate) fn retired() -> Self {
        Self::usual(StatusCode::FORBIDDEN)
    }

    /// The envelope with the usual type and message for the status.
    pub(crate) fn usual(status: StatusCode) -> Self {
        let (kind, message) = usual(status);
        Self::envelope(status, kind, message.to_owned())
    }

    pub(crate) fn scripted(fault: &HttpFault) -> Self {
        let status =
            StatusCode::from_u16(fault.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let known_as = if fault.quota { StatusCode::PAYMENT_REQUIRED } else { status };
        let (kind, message) = usual(known_as);
        let message = match &fault.secret {
            None => message.to_owned(),
            Some(secret) => format!("{message} ({secret})"),
        };
        let refusal = match fault.body {
            FaultBody::Json if status == StatusCode::UNPROCESSABLE_ENTITY => {
                Self::unprocessable(vec![
                    json!({"loc": ["body"], "msg": message, "type": "value_error"}),
                ])
            }
            FaultBody::Json => Self::envelope(status, kind, message),
            FaultBody::Html => Self::new(status, Html(page(status, &message))),
            FaultBody::Empty => Self::new(status, ()),
        };
        refusal.retry_after(fault.retry_after)
    }

    /// 429: the bucket is empty.
    pub(crate) fn limited(allowance: Allowance) -> Self {
        let mut refusal = Self::usual(StatusCode::TOO_MANY_REQUESTS);
        limits::show(&allowance, refusal.0.headers_mut());
        refusal.retry_after(allowance.retry_after.then(|| limits::seconds(allowance.wait)))
    }

    pub(crate) fn envelope(status: StatusCode, kind: &str, message: String) -> Self {
        let error = json!({"message": message, "type": kind, "code": status.as_u16()});
        let mut refusal = Self::new(status, Json(json!({"error": error})));
        refusal.0.extensions_mut().insert(ErrorText { kind: kind.to_owned(), message });
        refusal
    }

    pub(crate) fn new(status: StatusCode, body: impl IntoResponse) -> Self {
        Self(Box::new((status, body).into_response()))
    }

    fn retry_after(mut self, seconds: Option<u64>) -> Self {
        if let Some(seconds) = seconds {
            self.0.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        self
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        *self.0
    }
}

/// Replaces the error envelope by the one of another API.
pub(crate) fn replace_error(response: Response, status: StatusCode, error: Value) -> Response {
    let (mut parts, _) = response.into_parts();
    parts.status = status;
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.remove(header::CONTENT_TYPE);
    (parts, Json(json!({"error": error}))).into_response()
}

fn usual(status: StatusCode) -> (&'static str, &'static str) {
    match status.as_u16() {
        401 => ("invalid_api_key", BAD_KEY),
        402 => ("insufficient_quota", "You have run out of credits."),
        403 => ("chat_completions_not_available", RETIRED),
        404 => ("not_found", "resource not found"),
        405 => ("method_not_allowed", "method not allowed"),
        413 => ("request_too_large", "request body is too large"),
        429 => ("rate_limit_exceeded", "Request rate limit exceeded, please try again later."),
        500.. => ("server_error", "the server could not complete the request"),
        _ => ("invalid_request", "invalid request"),
    }
}

/// The response of a proxy in front of the API.
fn page(status: StatusCode, message: &str) -> String {
    format!(
        "<html>\r\n<head><title>{status}</title></head>\r\n<body>\r\n<center><h1>{status}</h1></center>\r\n<p>{message}</p>\r\n<hr><center>drsim</center>\r\n</body>\r\n</html>\r\n"
    )
}
