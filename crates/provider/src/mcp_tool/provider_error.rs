//! Errors of a call, grouped by remedy.

use outlast_client::{ClientError, TaskFate};
use outlast_core::{Cost, ProviderError, ProviderErrorKind, RunStatus};

use crate::with_detail;

/// A request that this workflow cannot take.
pub(super) fn reject(sentence: &str) -> ProviderError {
    ProviderError::new(ProviderErrorKind::Rejected, sentence)
}

/// Errors of a call that may have run, grouped by remedy.
pub(super) fn call_error(error: &ClientError) -> ProviderError {
    let kind = match error {
        ClientError::TooLong { .. } => ProviderErrorKind::TooLarge,
        ClientError::NotUtf8 => ProviderErrorKind::Rejected,
        _ => return provider_error(error),
    };
    let sentence = format!(
        "the tool ran and its answer could not be read: {error}; look at what it did before you start it again"
    );
    // It has done its work: a new try would do it again.
    ProviderError { run: RunStatus::Ended(Cost::Unknown), ..ProviderError::new(kind, sentence) }
}

/// Errors of a call, grouped by remedy.
pub(super) fn provider_error(error: &ClientError) -> ProviderError {
    let (kind, sentence) = match error {
        ClientError::Start { .. } => (
            ProviderErrorKind::Rejected,
            "the server of this workflow cannot be started; correct its [upstream] entry",
        ),
        ClientError::Handshake(_) | ClientError::HandshakeTimedOut { .. } => (
            ProviderErrorKind::Unavailable { retry_after: None },
            "the handshake with the server of this workflow failed; the log says why",
        ),
        ClientError::Unauthorized => (
            ProviderErrorKind::Unauthorized,
            "the server of this workflow asks for another token; correct its [upstream] entry",
        ),
        ClientError::TimedOut(timed_out) => {
            let goes_on =
                timed_out.task.as_ref().is_some_and(|task| task.fate != TaskFate::Cancelled);
            // A task that may still run is resumed by the next try, so that no second one runs next to it.
            let kind =
                if goes_on { ProviderErrorKind::TimedOut } else { ProviderErrorKind::RunTimedOut };
            let sentence = format!("{timed_out}; give the workflow more time if that is too short");
            return ProviderError::new(kind, sentence);
        }
        ClientError::Refused { code, .. } => {
            let sentence = format!(
                "the server of this workflow refused the call with code {code}; the log and `outlast jobs show` \
                 have its words"
            );
            return with_detail(ProviderErrorKind::RunFailed, sentence, error.to_string());
        }
        ClientError::Gone { .. } => {
            (ProviderErrorKind::Unreachable, "the server of this workflow left before it answered")
        }
        ClientError::TaskCancelled { .. } => {
            (ProviderErrorKind::RunStopped, "the task was cancelled at the server of this workflow")
        }
        ClientError::TaskUnknown { .. } => (
            ProviderErrorKind::RunLost,
            "the server of this workflow no longer knows the task that this job was",
        ),
        ClientError::NeedsInput | ClientError::Usage(_) => (
            ProviderErrorKind::Rejected,
            "the server of this workflow asks for input, which no one here can give",
        ),
        _ => (
            ProviderErrorKind::RunFailed,
            "the answer of this workflow's server cannot be used; the log says why",
        ),
    };
    with_detail(kind, sentence, error.to_string())
}
