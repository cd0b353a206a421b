//! Answers that are no success: the vendor's error envelope, and the errors a scenario asks for.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use serde_json::{Value, json};

use crate::bucket::Allowance;
use crate::faults::{FaultBody, HttpFault};
use crate::limits;

const RETIRED: &str = "Sonar is now the Agent API. Use /v1/responses instead of /v1/sonar. Migrate here: https://docs.perplexity.ai/docs/agent-api/migrate-from-sonar/overview";
const BAD_KEY: &str = "Invalid API key provided. Ensure your API key is correct and active.";

/// A request that was answered with an error.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    status: StatusCode,
    body: Body,
    retry_after: Option<u64>,
    allowance: Option<Allowance>,
}

#[derive(Clone, Debug, PartialEq)]
enum Body {
    Json(Value),
    Html(String),
    Empty,
}

impl Refusal {
    /// 400: the request itself is wrong.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::envelope(StatusCode::BAD_REQUEST, "invalid_request", message.into())
    }

    /// 400 with the vendor's more telling types, such as `invalid_model`.
    pub(crate) fn bad_parameter(kind: &str, message: String) -> Self {
        Self::envelope(StatusCode::BAD_REQUEST, kind, message)
    }

    pub(crate) fn bad_key() -> Self {
        Self::envelope(StatusCode::UNAUTHORIZED, "invalid_api_key", BAD_KEY.to_owned())
    }

    pub(crate) fn not_found() -> Self {
        Self::usual(StatusCode::NOT_FOUND)
    }

    /// 422 as FastAPI words it, with all that is wrong.
    pub(crate) fn unprocessable(faults: Vec<Value>) -> Self {
        let body = Body::Json(json!({"detail": faults}));
        Self { status: StatusCode::UNPROCESSABLE_ENTITY, body, retry_after: None, allowance: None }
    }

    /// 409: the idempotency key stands for another request.
    pub(crate) fn key_conflict() -> Self {
        let message = "the idempotency key was used with another request".to_owned();
        Self::envelope(StatusCode::CONFLICT, "idempotency_conflict", message)
    }

    /// 500: what a failed run answers to someone who waits for it.
    pub(crate) fn run_failed(code: &str) -> Self {
        let message = format!("the run failed: {code}");
        Self::envelope(StatusCode::INTERNAL_SERVER_ERROR, code, message)
    }

    /// Unknown and finished runs alike, as recorded from the vendor.
    pub(crate) fn not_cancellable() -> Self {
        Self::invalid("the run is already terminal and cannot be cancelled")
    }

    /// What the endpoints of the time before the Agent API answer.
    pub(crate) fn retired() -> Self {
        Self::usual(StatusCode::FORBIDDEN)
    }

    /// The envelope with the type and message that usually come with the status.
    pub(crate) fn usual(status: StatusCode) -> Self {
        let (kind, message) = usual(status);
        Self::envelope(status, kind, message.to_owned())
    }

    pub(crate) fn scripted(fault: &HttpFault) -> Self {
        let status =
            StatusCode::from_u16(fault.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let known_as = if fault.quota { StatusCode::PAYMENT_REQUIRED } else { status };
        let (kind, message) = usual(known_as);
        let mut message = message.to_owned();
        if let Some(secret) = &fault.secret {
            message = format!("{message} ({secret})");
        }
        let mut refusal = Self::envelope(status, kind, message.clone());
        refusal.retry_after = fault.retry_after;
        match fault.body {
            FaultBody::Json if status == StatusCode::UNPROCESSABLE_ENTITY => {
                let detail = json!({"loc": ["body"], "msg": message, "type": "value_error"});
                refusal.body = Body::Json(json!({"detail": [detail]}));
            }
            FaultBody::Json => {}
            FaultBody::Html => refusal.body = Body::Html(page(status, &message)),
            FaultBody::Empty => refusal.body = Body::Empty,
        }
        refusal
    }

    /// 429: the bucket is empty.
    pub(crate) fn limited(allowance: Allowance) -> Self {
        let seconds = allowance.retry_after.then(|| limits::seconds(allowance.wait));
        let refusal = Self::usual(StatusCode::TOO_MANY_REQUESTS);
        Self { retry_after: seconds, allowance: Some(allowance), ..refusal }
    }

    fn envelope(status: StatusCode, kind: &str, message: String) -> Self {
        let error = json!({"message": message, "type": kind, "code": status.as_u16()});
        Self {
            status,
            body: Body::Json(json!({"error": error})),
            retry_after: None,
            allowance: None,
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = match self.body {
            Body::Json(body) => (self.status, Json(body)).into_response(),
            Body::Html(page) => (self.status, Html(page)).into_response(),
            Body::Empty => self.status.into_response(),
        };
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(allowance) = &self.allowance {
            limits::show(allowance, response.headers_mut());
        }
        response
    }
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

/// What a proxy in front of the API answers in its place.
fn page(status: StatusCode, message: &str) -> String {
    format!(
        "<html>\r\n<head><title>{status}</title></head>\r\n<body>\r\n<center><h1>{status}</h1></center>\r\n<p>{message}</p>\r\n<hr><center>drsim</center>\r\n</body>\r\n</html>\r\n"
    )
}
