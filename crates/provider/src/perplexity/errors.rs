//! What went wrong, in our own words. Status decides; upstream text is kept for the operator, redacted, and never
//! becomes part of a sentence.

use std::time::Duration;

use outlast_core::{BeginError, BoxError, ProviderError, Trouble};
use reqwest::StatusCode;
use serde_json::Value;

use super::wire::{ErrorCode, RunError, Status};
use crate::http::{BodyError, SendError, redacted};
use crate::provider_error::{detailed, provider_error};

/// An HTTP answer with its whole body.
pub(super) struct HttpAnswer {
    pub(super) status: StatusCode,
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Vec<u8>,
}

/// What an answer that is no success means for a submit: was it certainly not accepted? (B9a)
pub(super) fn refusal(answer: &HttpAnswer, key: &str) -> BeginError {
    let error = trouble(answer, key);
    match answer.status.as_u16() {
        400 | 401 | 402 | 403 | 404 | 405 | 410 | 413 | 422 | 429 => BeginError::Refused(error),
        // The provider's own envelope says that it dealt with the request and did not take it.
        500 | 503 if envelope(&answer.body).is_some() => BeginError::Refused(error),
        // Everything else may come from a gateway while the provider works: 408, 502, 504 and 520 to 524 above all.
        _ => BeginError::Unknown(error),
    }
}

/// What an answer that is no success means.
pub(super) fn trouble(answer: &HttpAnswer, key: &str) -> ProviderError {
    let retry_after = answer.retry_after;
    let kind =
        envelope(&answer.body).and_then(|error| error.get("type")?.as_str().map(str::to_owned));
    let retired = kind.as_deref() == Some("chat_completions_not_available");
    let quota = kind.as_deref().is_some_and(|kind| kind.starts_with("insufficient_"));
    let status = answer.status.as_u16();
    let said = String::from_utf8_lossy(&answer.body);
    let detail = format!("HTTP {status}: {}", redacted(&said, key));
    let (trouble, sentence) = match status {
        _ if quota => (Trouble::QuotaExhausted, NO_CREDIT),
        402 => (Trouble::QuotaExhausted, NO_CREDIT),
        403 if retired => (Trouble::Retired, RETIRED),
        410 => (Trouble::Retired, RETIRED),
        401 | 403 => (Trouble::Unauthorized, BAD_KEY),
        407 => (Trouble::Rejected, BAD_PROXY),
        429 => (Trouble::RateLimited { retry_after }, "the provider asks for fewer requests"),
        400 | 404 | 405 | 413 | 422 => {
            let sentence = format!(
                "the provider rejected the request (HTTP {status}); change the question or its options"
            );
            return detailed(Trouble::Rejected, sentence, detail);
        }
        _ => {
            let sentence =
                format!("the provider has trouble of its own (HTTP {status}); try again later");
            return detailed(Trouble::Unavailable { retry_after }, sentence, detail);
        }
    };
    detailed(trouble, sentence, detail)
}

const BAD_KEY: &str =
    "the provider refused the API key; check PERPLEXITY_API_KEY, and that its account has credit";
const BAD_PROXY: &str = "the proxy wants other credentials; check PERPLEXITY_PROXY";
const NO_CREDIT: &str =
    "the provider account has no credit left; add credit, or use another PERPLEXITY_API_KEY";
const RETIRED: &str = "the provider no longer serves this endpoint; set PERPLEXITY_API=agent";

/// The provider's own error envelope, if the body is one.
fn envelope(body: &[u8]) -> Option<Value> {
    let body: Value = serde_json::from_slice(body).ok()?;
    body.get("error").filter(|error| error.is_object()).cloned()
}

/// A submit without an answer.
pub(super) fn not_begun(error: &SendError) -> BeginError {
    match error {
        SendError::NotSent(_) => BeginError::NotSent(no_answer(error)),
        SendError::Lost(_) => BeginError::Unknown(no_answer(error)),
    }
}

/// A call without an answer.
pub(super) fn no_answer(error: &SendError) -> ProviderError {
    let (trouble, sentence) = match error {
        SendError::NotSent(_) => (
            Trouble::Unreachable,
            "the provider cannot be reached; check the network, PERPLEXITY_BASE_URL and the proxy settings",
        ),
        SendError::Lost(_) if error.timed_out() => {
            (Trouble::TimedOut, "the provider did not answer in time")
        }
        SendError::Lost(_) => {
            (Trouble::Unreachable, "the connection to the provider broke before it answered")
        }
    };
    detailed(trouble, sentence, error.detail())
}

/// A submit that was sent and not answered in time.
pub(super) fn silent(limit: Duration) -> ProviderError {
    let sentence = format!("the provider did not answer within {} s", limit.as_secs());
    provider_error(Trouble::TimedOut, sentence)
}

/// An answer that broke off.
pub(super) fn broken_answer(error: &BodyError) -> ProviderError {
    let unread = "the provider's answer could not be read to its end";
    let (trouble, sentence) = match error {
        BodyError::Broken(error) if error.is_timeout() => (Trouble::TimedOut, unread.to_owned()),
        BodyError::Broken(_) => (Trouble::Unreachable, unread.to_owned()),
        BodyError::TooLarge { limit } => {
            let limit = limit / (1024 * 1024);
            let sentence = format!(
                "the provider's answer is larger than the {limit} MiB that are read; ask for less at a time"
            );
            (Trouble::TooLarge, sentence)
        }
    };
    detailed(trouble, sentence, error.to_string())
}

/// A stream that ended before it named the run.
pub(super) fn stream_before_id(error: Option<BoxError>) -> BeginError {
    let sentence = "the connection to the provider broke before it named the run";
    let detail = error.map(|error| error.to_string());
    BeginError::Unknown(ProviderError { detail, ..provider_error(Trouble::Unreachable, sentence) })
}

/// A success that names no run (A10), or by an id that cannot be one.
pub(super) const NO_ID: &str =
    "the provider accepted the request but gave no job id that can be used";

/// An answer that makes no sense.
pub(super) fn malformed(sentence: &str) -> ProviderError {
    provider_error(Trouble::Malformed, sentence)
}

/// A body that is no JSON, or not what was asked for.
pub(super) fn unreadable() -> ProviderError {
    malformed("the provider's answer cannot be read")
}

/// A run the provider no longer knows.
pub(super) fn lost() -> ProviderError {
    provider_error(Trouble::RunLost, "the provider no longer knows the run of this question")
}

/// A run the provider does not know yet.
pub(super) fn not_yet() -> ProviderError {
    let sentence = "the provider does not know this run yet; try again in a moment";
    provider_error(Trouble::Unavailable { retry_after: None }, sentence)
}

/// A run that ended without a report. Only one that failed may be begun anew: the others were paid for and would end
/// the same way, or were stopped on purpose (B9a).
pub(super) fn run_ended(status: Status, error: Option<RunError>, key: &str) -> ProviderError {
    let (trouble, sentence) = match status {
        Status::Cancelled => (Trouble::RunStopped, "the run was stopped at the provider"),
        Status::RequiresAction => (
            Trouble::Rejected,
            "the provider asks for an action in the middle of the run, which is not supported; ask in another way",
        ),
        Status::Completed => {
            (Trouble::Malformed, "the provider calls the run completed, but shows no report")
        }
        Status::Incomplete => (
            Trouble::Rejected,
            "the provider's run reached a limit before it wrote anything; ask for less at a time",
        ),
        Status::Failed | Status::Running => error.as_ref().map_or(FAILED, why_failed),
    };
    let detail = error.map(|error| said(error, key));
    ProviderError { detail, ..provider_error(trouble, sentence) }
}

/// What the provider says went wrong with a run: its code or type, and its message.
pub(super) fn said(error: RunError, key: &str) -> String {
    let code = error.code.0.map(|code| code.to_string()).or(error.kind.0).unwrap_or_default();
    redacted(&format!("{code} {}", error.message.0.unwrap_or_default()), key)
}

const FAILED: (Trouble, &str) = (Trouble::RunFailed, "the provider's run failed");

/// Failures that a new run would only repeat, by the provider's word or number for them.
fn why_failed(error: &RunError) -> (Trouble, &'static str) {
    let (word, number) = match &*error.code {
        Some(ErrorCode::Word(word)) => (Some(word.as_str()), None),
        Some(ErrorCode::Number(number)) => (None, Some(*number)),
        None => (None, None),
    };
    let words = [word, error.kind.as_deref()];
    let says = |known: &[&str]| {
        words.iter().flatten().any(|word| known.iter().any(|known| word.starts_with(known)))
    };
    if says(&["insufficient_", "quota_"]) || number == Some(402) {
        return (Trouble::QuotaExhausted, NO_CREDIT);
    }
    let refused = ["invalid_", "too_many_prompt_tokens", "content_policy", "content_filter"];
    if says(&refused) || matches!(number, Some(400 | 413 | 422)) {
        let sentence =
            "the provider's run rejected the request; change the question or its options";
        return (Trouble::Rejected, sentence);
    }
    FAILED
}

/// The HTTP client could not be made.
pub(super) fn no_client(error: &(dyn std::error::Error + Send + Sync)) -> ProviderError {
    let sentence = "no HTTP client could be made; check PERPLEXITY_PROXY";
    detailed(Trouble::Unreachable, sentence, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &str) -> HttpAnswer {
        HttpAnswer {
            status: StatusCode::from_u16(status).unwrap(),
            retry_after: None,
            body: body.into(),
        }
    }

    const ENVELOPE: &str = r#"{"error":{"message":"m","type":"t","code":0}}"#;

    /// B9a: status first, then the envelope; every status that is not named is unknown.
    #[test]
    fn b9a_only_what_was_certainly_not_accepted_is_a_refusal() {
        let refused = [400, 401, 402, 403, 404, 405, 410, 413, 422, 429];
        for status in refused {
            for body in [ENVELOPE, "", "<html>"] {
                let error = refusal(&answer(status, body), "");
                assert!(matches!(error, BeginError::Refused(_)), "{status} {body}: {error:?}");
            }
        }
        for status in (300..600).filter(|status| !refused.contains(status)) {
            let error = refusal(&answer(status, ENVELOPE), "");
            let is_refused = matches!(error, BeginError::Refused(_));
            assert_eq!(
                is_refused,
                [500, 503].contains(&status),
                "{status} with envelope: {error:?}"
            );
            for body in ["", "<html>", r#"{"error":"text"}"#, "[]"] {
                let error = refusal(&answer(status, body), "");
                assert!(matches!(error, BeginError::Unknown(_)), "{status} {body}: {error:?}");
            }
        }
    }

    /// B9: which statuses are permanent.
    #[test]
    fn permanent_statuses_are_permanent() {
        for status in [400, 401, 402, 403, 404, 405, 410, 413, 422] {
            assert!(trouble(&answer(status, ""), "").trouble.is_permanent(), "{status}");
        }
        for status in [408, 409, 425, 429, 500, 502, 503, 504, 520, 524] {
            assert!(!trouble(&answer(status, ""), "").trouble.is_permanent(), "{status}");
        }
    }

    #[test]
    fn a_sentence_never_carries_upstream_text() {
        let body = r#"{"error":{"message":"hunter2 leaked pplx-abc","type":"server","code":500}}"#;
        for status in [400, 401, 402, 403, 404, 429, 500, 503] {
            let error = trouble(&answer(status, body), "hunter2");
            assert!(!error.sentence.contains("leaked"), "{error:?}");
            let detail = error.detail.unwrap();
            assert!(
                detail.contains("leaked")
                    && !detail.contains("hunter2")
                    && !detail.contains("pplx-abc")
            );
        }
    }

    /// B9a: a failed run may be begun anew, unless its failure would only be repeated.
    #[test]
    fn a_run_that_failed_says_whether_another_could_do_better() {
        let cases = [
            (r#"{"code":"server_error"}"#, Trouble::RunFailed),
            (r#"{"code":null,"message":null,"type":null}"#, Trouble::RunFailed),
            (r#"{"code":500}"#, Trouble::RunFailed),
            (r#"{"code":429,"type":"rate_limit"}"#, Trouble::RunFailed),
            (r#"{"code":"insufficient_quota"}"#, Trouble::QuotaExhausted),
            (r#"{"code":402}"#, Trouble::QuotaExhausted),
            (r#"{"type":"invalid_request","code":400}"#, Trouble::Rejected),
            (r#"{"code":"content_policy_violation"}"#, Trouble::Rejected),
            (r#"{"type":"too_many_prompt_tokens"}"#, Trouble::Rejected),
        ];
        for (error, expected) in cases {
            let parsed = serde_json::from_str(error).unwrap();
            assert_eq!(run_ended(Status::Failed, parsed, "").trouble, expected, "{error}");
        }
        let ends = [
            (Status::Cancelled, Trouble::RunStopped),
            (Status::RequiresAction, Trouble::Rejected),
            (Status::Incomplete, Trouble::Rejected),
            (Status::Completed, Trouble::Malformed),
        ];
        for (status, expected) in ends {
            assert_eq!(run_ended(status, None, "").trouble, expected, "{status:?}");
        }
    }
}
