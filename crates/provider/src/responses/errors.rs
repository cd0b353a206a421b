//! The error of a run that ended without a report, by the protocol's words for it.

use outlast_core::{ProviderError, Trouble};

use crate::vendor::{self, ErrorCode, RunError, Status, Vendor};

/// A run that ended without a report.
pub(crate) fn run_ended(
    vendor: &Vendor,
    status: Status,
    error: Option<&RunError>,
    redact: impl Fn(&str) -> String,
) -> ProviderError {
    vendor::run_ended(vendor, status, None, error, cause, redact)
}

/// Failures that a new run would only repeat, by the provider's code for them.
fn cause(error: &RunError) -> Trouble {
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
        return Trouble::QuotaExhausted;
    }
    let refused = [
        "invalid_",
        "too_many_prompt_tokens",
        "content_policy",
        "content_filter",
        "bio_policy",
        "cyber_policy",
        "misalignment_policy",
        "data_residency",
    ];
    if says(&refused) || matches!(number, Some(400 | 413 | 422)) {
        return Trouble::Rejected;
    }
    Trouble::RunFailed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perplexity::VENDOR;

    /// B9a: a failed run may be repeated, unless its failure would only be repeated.
    #[test]
    fn a_run_that_failed_says_whether_another_could_do_better() {
        let ended = |status, error: Option<RunError>| {
            run_ended(&VENDOR, status, error.as_ref(), str::to_owned)
        };
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
            (r#"{"code":"invalid_prompt"}"#, Trouble::Rejected),
            (r#"{"code":"bio_policy"}"#, Trouble::Rejected),
            (r#"{"code":"rate_limit_exceeded"}"#, Trouble::RunFailed),
        ];
        for (error, expected) in cases {
            let parsed = serde_json::from_str(error).unwrap();
            assert_eq!(ended(Status::Failed, parsed).trouble, expected, "{error}");
        }
        let ends = [
            (Status::Cancelled, Trouble::RunStopped),
            (Status::RequiresAction, Trouble::Rejected),
            (Status::Incomplete, Trouble::Rejected),
            (Status::Completed, Trouble::Malformed),
        ];
        for (status, expected) in ends {
            assert_eq!(ended(status, None).trouble, expected, "{status:?}");
        }
    }
}
