//! Errors of a call, in our own words. Status decides; upstream text is kept for the operator, redacted, and never
//! becomes part of a sentence; its message alone is handed on as the vendor's reason (G9).

use std::time::Duration;

use outlast_core::{BeginError, BoxError, ProviderError, ProviderErrorKind};
use reqwest::StatusCode;
use serde_json::Value;

use super::Vendor;
use crate::http::{BodyError, SendError, redact};
use crate::with_detail;

/// An HTTP answer with its whole body.
pub(crate) struct HttpAnswer {
    pub(crate) status: StatusCode,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) body: Vec<u8>,
}

/// Classifies an answer to a submit that is not a success: refused if it was certainly not accepted, else unknown (B9a).
pub(crate) fn refusal(vendor: &Vendor, answer: &HttpAnswer, error: ProviderError) -> BeginError {
    let error = with_likely_address(vendor, answer, error);
    match answer.status.as_u16() {
        400 | 401 | 402 | 403 | 404 | 405 | 410 | 413 | 422 | 429 => BeginError::Refused(error),
        // The provider's own envelope shows that it handled the request and did not accept it.
        500 | 503 if envelope(&answer.body).is_some() => BeginError::Refused(error),
        // Everything else may come from a gateway while the provider works: 408, 502, 504 and 520 to 524 above all.
        _ => BeginError::Unknown(error),
    }
}

/// The error of a request that creates something: if its endpoint is not found, the address is the likely cause.
pub(crate) fn with_likely_address(
    vendor: &Vendor,
    answer: &HttpAnswer,
    error: ProviderError,
) -> ProviderError {
    if answer.status != StatusCode::NOT_FOUND || error.kind != ProviderErrorKind::Rejected {
        return error;
    }
    let (name, variable) = (vendor.name, vendor.base_url_variable);
    let sentence =
        format!("{name} has nothing at this address (HTTP 404); check the base URL in {variable}");
    ProviderError { sentence, ..error }
}

/// Returns the error in an answer that is not a success.
pub(crate) fn provider_error(vendor: &Vendor, answer: &HttpAnswer, key: &str) -> ProviderError {
    let retry_after = answer.retry_after;
    let error = envelope(&answer.body);
    let words = error.as_ref().map(error_words).unwrap_or_default();
    let reason = error.as_ref().and_then(|error| error.get("message")?.as_str());
    let reason = reason.map(|message| redact(message, key));
    let retired = words.iter().any(|word| word == "chat_completions_not_available");
    let quota = words.iter().any(|word| word.starts_with("insufficient_"));
    let status = answer.status.as_u16();
    let said = String::from_utf8_lossy(&answer.body);
    let detail = format!("HTTP {status}: {}", redact(&said, key));
    let (kind, sentence) = match status {
        _ if quota => (ProviderErrorKind::QuotaExhausted, vendor.no_credit()),
        402 => (ProviderErrorKind::QuotaExhausted, vendor.no_credit()),
        403 if retired => (ProviderErrorKind::Retired, vendor.describe_retirement()),
        410 => (ProviderErrorKind::Retired, vendor.describe_retirement()),
        401 | 403 => (ProviderErrorKind::Unauthorized, vendor.bad_key()),
        407 => (ProviderErrorKind::Rejected, vendor.bad_proxy()),
        429 => {
            let sentence = "the provider is rate limiting requests".to_owned();
            (ProviderErrorKind::RateLimited { retry_after }, sentence)
        }
        400 | 404 | 405 | 413 | 422 => {
            let sentence = format!(
                "the provider rejected the request (HTTP {status}); change the question or its options"
            );
            (ProviderErrorKind::Rejected, sentence)
        }
        _ => {
            let sentence =
                format!("the provider has an internal error (HTTP {status}); try again later");
            (ProviderErrorKind::Unavailable { retry_after }, sentence)
        }
    };
    ProviderError { reason, ..with_detail(kind, sentence, detail) }
}

/// The provider's own error envelope, if the body is one.
fn envelope(body: &[u8]) -> Option<Value> {
    let body: Value = serde_json::from_slice(body).ok()?;
    body.get("error").filter(|error| error.is_object()).cloned()
}

/// The words of an error envelope for the kind of error.
fn error_words(error: &Value) -> Vec<String> {
    let words = ["type", "code", "status"].map(|name| error.get(name)?.as_str().map(str::to_owned));
    words.into_iter().flatten().collect()
}

/// A submit without an answer.
pub(crate) fn submit_error(vendor: &Vendor, error: &SendError) -> BeginError {
    match error {
        SendError::NotSent(_) => BeginError::NotSent(no_answer(vendor, error)),
        SendError::Lost(_) => BeginError::Unknown(no_answer(vendor, error)),
    }
}

/// A call without an answer.
pub(crate) fn no_answer(vendor: &Vendor, error: &SendError) -> ProviderError {
    let (kind, sentence) = match error {
        SendError::NotSent(_) => (ProviderErrorKind::Unreachable, vendor.unreachable()),
        SendError::Lost(_) if error.is_timeout() => {
            (ProviderErrorKind::TimedOut, "the provider did not answer in time".to_owned())
        }
        SendError::Lost(_) => {
            let sentence = "the connection to the provider broke before it answered".to_owned();
            (ProviderErrorKind::Unreachable, sentence)
        }
    };
    with_detail(kind, sentence, error.detail())
}

/// A submit that was sent and not answered in time.
pub(crate) fn silent(limit: Duration) -> ProviderError {
    let sentence = format!("the provider did not answer within {} s", limit.as_secs());
    ProviderError::new(ProviderErrorKind::TimedOut, sentence)
}

/// An answer that broke off.
pub(crate) fn broken_answer(error: &BodyError) -> ProviderError {
    let unread = "the provider's answer could not be read to its end";
    let (kind, sentence) = match error {
        BodyError::Broken(error) if error.is_timeout() => {
            (ProviderErrorKind::TimedOut, unread.to_owned())
        }
        BodyError::Broken(_) => (ProviderErrorKind::Unreachable, unread.to_owned()),
        BodyError::TooLarge { limit } => {
            let limit = limit / (1024 * 1024);
            let sentence = format!(
                "the provider's answer is larger than the {limit} MiB that are read; ask for less at a time"
            );
            (ProviderErrorKind::TooLarge, sentence)
        }
    };
    with_detail(kind, sentence, error.to_string())
}

/// A stream that ended before it named the run.
pub(crate) fn stream_before_id(error: Option<BoxError>) -> BeginError {
    let sentence = "the connection to the provider broke before it named the run";
    let detail = error.map(|error| error.to_string());
    BeginError::Unknown(ProviderError {
        detail,
        ..ProviderError::new(ProviderErrorKind::Unreachable, sentence)
    })
}

/// A success that names no run (A10), or by an id that cannot be one.
pub(crate) const NO_ID: &str =
    "the provider accepted the request but gave no job id that can be used";

/// An answer that makes no sense.
pub(crate) fn report_malformed(sentence: &str) -> ProviderError {
    ProviderError::new(ProviderErrorKind::Malformed, sentence)
}

/// A body that is not JSON, or not what was requested.
pub(crate) fn unreadable() -> ProviderError {
    report_malformed("the provider's answer cannot be read")
}

/// A run the provider no longer knows.
pub(crate) fn lost_run() -> ProviderError {
    ProviderError::new(
        ProviderErrorKind::RunLost,
        "the provider no longer knows the run of this question",
    )
}

/// A run the provider does not know yet.
pub(crate) fn unknown_run() -> ProviderError {
    let sentence = "the provider does not know this run yet; try again in a moment";
    ProviderError::new(ProviderErrorKind::Unavailable { retry_after: None }, sentence)
}

/// The HTTP client could not be made.
pub(crate) fn no_client(
    vendor: &Vendor,
    error: &(dyn std::error::Error + Send + Sync),
) -> ProviderError {
    let sentence = format!("no HTTP client could be made; check {}", vendor.proxy_variable);
    with_detail(ProviderErrorKind::Unreachable, sentence, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perplexity::VENDOR as PERPLEXITY;

    fn answer(status: u16, body: &str) -> HttpAnswer {
        HttpAnswer {
            status: StatusCode::from_u16(status).unwrap(),
            retry_after: None,
            body: body.into(),
        }
    }

    fn begin_error(answer: &HttpAnswer) -> BeginError {
        refusal(&PERPLEXITY, answer, provider_error(&PERPLEXITY, answer, ""))
    }

    const ENVELOPE: &str = r#"{"error":{"message":"m","type":"t","code":0}}"#;

    /// B9a: status first, then the envelope; every status that is not named is unknown.
    #[test]
    fn b9a_only_what_was_certainly_not_accepted_is_a_refusal() {
        let refused = [400, 401, 402, 403, 404, 405, 410, 413, 422, 429];
        for status in refused {
            for body in [ENVELOPE, "", "<html>"] {
                let error = begin_error(&answer(status, body));
                assert!(matches!(error, BeginError::Refused(_)), "{status} {body}: {error:?}");
            }
        }
        for status in (300..600).filter(|status| !refused.contains(status)) {
            let error = begin_error(&answer(status, ENVELOPE));
            let is_refused = matches!(error, BeginError::Refused(_));
            assert_eq!(
                is_refused,
                [500, 503].contains(&status),
                "{status} with envelope: {error:?}"
            );
            for body in ["", "<html>", r#"{"error":"text"}"#, "[]"] {
                let error = begin_error(&answer(status, body));
                assert!(matches!(error, BeginError::Unknown(_)), "{status} {body}: {error:?}");
            }
        }
    }

    /// A 404 on a submit is rarely about the question.
    #[test]
    fn a_submit_that_finds_nothing_names_the_base_url() {
        let BeginError::Refused(error) = begin_error(&answer(404, ENVELOPE)) else {
            panic!("a 404 is a refusal")
        };
        assert!(error.sentence.contains("PERPLEXITY_BASE_URL"), "{}", error.sentence);
        let BeginError::Refused(error) = begin_error(&answer(400, ENVELOPE)) else {
            panic!("a 400 is a refusal")
        };
        assert!(!error.sentence.contains("PERPLEXITY_BASE_URL"), "{}", error.sentence);
    }

    /// B9: which statuses are permanent.
    #[test]
    fn permanent_statuses_are_permanent() {
        for status in [400, 401, 402, 403, 404, 405, 410, 413, 422] {
            assert!(
                provider_error(&PERPLEXITY, &answer(status, ""), "").kind.is_permanent(),
                "{status}"
            );
        }
        for status in [408, 409, 425, 429, 500, 502, 503, 504, 520, 524] {
            assert!(
                !provider_error(&PERPLEXITY, &answer(status, ""), "").kind.is_permanent(),
                "{status}"
            );
        }
    }

    #[test]
    fn a_sentence_never_contains_upstream_text() {
        let body = r#"{"error":{"message":"hunter2 leaked pplx-abc","type":"server","code":500}}"#;
        for status in [400, 401, 402, 403, 404, 429, 500, 503] {
            let error = provider_error(&PERPLEXITY, &answer(status, body), "hunter2");
            assert!(!error.sentence.contains("leaked"), "{error:?}");
            // G9: the message alone is handed on, without keys; its consequence is decided where the request is known.
            let reason = error.reason.as_deref().unwrap();
            assert!(reason.contains("leaked") && !reason.contains("server"), "{reason}");
            assert!(!reason.contains("hunter2") && !reason.contains("pplx-abc"), "{reason}");
            let detail = error.detail.unwrap();
            assert!(
                detail.contains("leaked")
                    && !detail.contains("hunter2")
                    && !detail.contains("pplx-abc")
            );
        }
    }
}
