//! What the end of a run without a report means, and what the provider says of it.

use outlast_core::{ProviderError, Trouble};

use super::wire::{ErrorCode, RunError, Status};
use crate::provider_error::provider_error;
use crate::vendor::Vendor;

/// A run that ended without a report. Only one that failed may be begun anew: the others were paid for and would end
/// the same way, or were stopped on purpose (B9a).
pub(crate) fn run_ended(
    vendor: &Vendor,
    status: Status,
    error: Option<RunError>,
    redact: impl Fn(&str) -> String,
) -> ProviderError {
    let (trouble, sentence) = match status {
        Status::Cancelled => {
            (Trouble::RunStopped, "the run was stopped at the provider".to_owned())
        }
        Status::RequiresAction => (
            Trouble::Rejected,
            "the provider asks for an action in the middle of the run, which is not supported; ask in another way"
                .to_owned(),
        ),
        Status::Completed if error.as_ref().is_some_and(is_refusal) => (
            Trouble::Rejected,
            "the provider's model refused to write the report; ask in another way".to_owned(),
        ),
        Status::Completed => (
            Trouble::Malformed,
            "the provider calls the run completed, but shows no report".to_owned(),
        ),
        Status::Incomplete => (
            Trouble::Rejected,
            "the provider's run reached a limit before it wrote anything; ask for less at a time"
                .to_owned(),
        ),
        Status::Failed | Status::Running => {
            error.as_ref().map_or_else(failed, |error| why_failed(vendor, error))
        },
    };
    let reason = error.as_ref().and_then(|error| error.message.as_deref()).map(&redact);
    let detail = error.map(|error| redact(&said(error)));
    ProviderError { reason, detail, ..provider_error(trouble, sentence) }
}

/// What the provider says went wrong with a run: its code or type, and its message.
pub(crate) fn said(error: RunError) -> String {
    let code = error.code.0.map(|code| code.to_string()).or(error.kind.0).unwrap_or_default();
    format!("{code} {}", error.message.0.unwrap_or_default())
}

fn is_refusal(error: &RunError) -> bool {
    matches!(&*error.code, Some(ErrorCode::Word(word)) if word == "refusal")
}

fn failed() -> (Trouble, String) {
    (Trouble::RunFailed, "the provider's run failed".to_owned())
}

/// Failures that a new run would only repeat, by the provider's word or number for them.
fn why_failed(vendor: &Vendor, error: &RunError) -> (Trouble, String) {
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
        return (Trouble::QuotaExhausted, vendor.no_credit());
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
        let sentence =
            "the provider's run rejected the request; change the question or its options";
        return (Trouble::Rejected, sentence.to_owned());
    }
    failed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perplexity::VENDOR;

    /// B9a: a failed run may be begun anew, unless its failure would only be repeated.
    #[test]
    fn a_run_that_failed_says_whether_another_could_do_better() {
        let ended = |status, error| run_ended(&VENDOR, status, error, str::to_owned);
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
