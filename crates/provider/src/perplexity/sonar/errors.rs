//! What the Sonar dialect's own troubles are called. Everything else is said as for the whole API.

use outlast_core::{BeginError, BoxError, ProviderError, Trouble};
use reqwest::StatusCode;
use serde_json::Value;

use super::super::api::Api;
use super::super::errors::{Answer, malformed};

const RETIRED: &str =
    "the provider no longer serves the Sonar models here; set PERPLEXITY_API=agent";

/// What an answer that is no success means.
pub(super) fn trouble(api: &Api, answer: &Answer) -> ProviderError {
    let mut error = api.trouble(answer);
    if error.trouble.is_permanent() && is_retired(answer) {
        error.trouble = Trouble::Retired;
        error.sentence = RETIRED.to_owned();
    }
    error
}

/// What it means for a submit.
pub(super) fn refusal(api: &Api, answer: &Answer) -> BeginError {
    match api.refusal(answer) {
        BeginError::Refused(_) => BeginError::Refused(trouble(api, answer)),
        other => other,
    }
}

/// The models are ours to name, so one that is not known is one that is no longer there.
fn is_retired(answer: &Answer) -> bool {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let names = ["type", "code"].map(|name| body["error"][name].as_str());
    let gone = ["chat_completions_not_available", "model_not_found", "invalid_model"];
    answer.status == StatusCode::GONE || names.iter().flatten().any(|name| gone.contains(name))
}

/// The same trouble, not to be met a second time: sent again under its key, the request would be answered the same
/// way (A10).
pub(super) fn never_again(error: ProviderError) -> ProviderError {
    ProviderError { trouble: Trouble::Rejected, ..error }
}

/// A research that failed; why is for the operator.
pub(super) fn failed(api: &Api, why: Option<&str>) -> ProviderError {
    ProviderError {
        trouble: Trouble::RunFailed,
        sentence: "the provider's run failed".to_owned(),
        detail: why.map(|why| api.redacted(why)),
    }
}

/// A research that is called completed and stays without a report. The provider still has it under its id.
pub(super) fn no_report(api: &Api, body: &[u8]) -> ProviderError {
    with_told(api, body, "the provider calls the run completed, but shows no report")
}

/// An answer that answers nothing.
pub(super) fn no_answer(api: &Api, body: &[u8]) -> ProviderError {
    with_told(api, body, "the provider accepted the question, but its answer cannot be read")
}

fn with_told(api: &Api, body: &[u8], sentence: &str) -> ProviderError {
    let detail = Some(api.told(body));
    ProviderError { detail, ..malformed(sentence) }
}

/// A stream that ended before the answer did; `None` is a clean end.
pub(super) fn broke_off(error: Option<&BoxError>) -> ProviderError {
    let timed_out = error
        .and_then(|error| error.downcast_ref::<reqwest::Error>())
        .map(reqwest::Error::is_timeout);
    let (trouble, sentence) = match (error, timed_out) {
        (_, Some(true)) => {
            (Trouble::TimedOut, "the provider fell silent in the middle of its answer")
        }
        (_, Some(false)) => {
            (Trouble::Unreachable, "the connection broke in the middle of the answer")
        }
        (Some(_), None) => (Trouble::Malformed, "the provider's answer cannot be read"),
        (None, None) => (Trouble::Malformed, "the provider's answer ended before it was complete"),
    };
    let detail = error.map(ToString::to_string);
    ProviderError { trouble, sentence: sentence.to_owned(), detail }
}

/// A stream in which the provider says that it cannot go on.
pub(super) fn said(api: &Api, error: &str) -> ProviderError {
    ProviderError {
        trouble: Trouble::Unavailable { retry_after: None },
        sentence: "the provider gave up in the middle of its answer".to_owned(),
        detail: Some(api.redacted(error)),
    }
}
