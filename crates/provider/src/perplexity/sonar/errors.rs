//! Errors that only the Sonar dialect has; the others are in `vendor/errors.rs`.

use outlast_core::{BeginError, BoxError, Cost, ProviderError, ProviderErrorKind, RunStatus};
use reqwest::StatusCode;
use serde_json::Value;

use crate::vendor::{self, HttpAnswer, Service};
use crate::with_detail;

const RETIRED: &str =
    "the provider no longer serves the Sonar models here; set PERPLEXITY_API=agent";

/// Returns the error in an answer that is not a success.
pub(super) fn provider_error(api: &Service, answer: &HttpAnswer) -> ProviderError {
    let mut error = api.provider_error(answer);
    if error.kind.is_permanent() && is_retired(answer) {
        error.kind = ProviderErrorKind::Retired;
        error.sentence = RETIRED.to_owned();
    }
    error
}

/// Returns the error of a refused submit.
pub(super) fn refusal(api: &Service, answer: &HttpAnswer) -> BeginError {
    vendor::refusal(api.vendor(), answer, provider_error(api, answer))
}

/// We name the models, so one that the provider does not know is one it no longer serves.
fn is_retired(answer: &HttpAnswer) -> bool {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let names = ["type", "code"].map(|name| body["error"][name].as_str());
    let gone = ["chat_completions_not_available", "model_not_found", "invalid_model"];
    answer.status == StatusCode::GONE || names.iter().flatten().any(|name| gone.contains(name))
}

/// The same error, not to be retried: sent again under its key, the request would be answered the same way (A10).
pub(super) fn as_permanent(error: ProviderError) -> ProviderError {
    ProviderError { kind: ProviderErrorKind::Rejected, ..error }
}

/// A research that failed, and why.
pub(super) fn research_error(api: &Service, why: Option<&str>, cost: Cost) -> ProviderError {
    let detail = why.map(|why| api.redact(why));
    let reason = detail.clone();
    ProviderError {
        reason,
        detail,
        run: RunStatus::Ended(cost),
        ..ProviderError::new(ProviderErrorKind::RunFailed, "the provider's run failed")
    }
}

/// A research that is called completed and stays without a report. The provider still has it under its id.
pub(super) fn no_report(api: &Service, body: &[u8]) -> ProviderError {
    let error =
        api.report_malformed("the provider calls the run completed, but shows no report", body);
    ProviderError { run: RunStatus::Ended(Cost::Unknown), ..error }
}

/// An answer that answers nothing.
pub(super) fn no_answer(api: &Service, body: &[u8]) -> ProviderError {
    api.report_malformed("the provider accepted the question, but its answer cannot be read", body)
}

/// A stream that ended before the answer did; `None` is a clean end.
pub(super) fn broke_off(error: Option<&BoxError>) -> ProviderError {
    let timed_out = error
        .and_then(|error| error.downcast_ref::<reqwest::Error>())
        .map(reqwest::Error::is_timeout);
    let (kind, sentence) = match (error, timed_out) {
        (_, Some(true)) => {
            (ProviderErrorKind::TimedOut, "the provider fell silent in the middle of its answer")
        }
        (_, Some(false)) => {
            (ProviderErrorKind::Unreachable, "the connection broke in the middle of the answer")
        }
        (Some(_), None) => (ProviderErrorKind::Malformed, "the provider's answer cannot be read"),
        (None, None) => {
            (ProviderErrorKind::Malformed, "the provider's answer ended before it was complete")
        }
    };
    let detail = error.map(ToString::to_string);
    ProviderError { detail, ..ProviderError::new(kind, sentence) }
}

/// A stream in which the provider reports that it cannot go on.
pub(super) fn stream_error(api: &Service, error: &str) -> ProviderError {
    let kind = ProviderErrorKind::Unavailable { retry_after: None };
    with_detail(kind, "the provider gave up in the middle of its answer", api.redact(error))
}
