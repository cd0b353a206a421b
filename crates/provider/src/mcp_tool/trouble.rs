//! Errors of a call, grouped by remedy.

use outlast_client::{ClientError, TaskFate};
use outlast_core::{Cost, ProviderError, RunStatus, Trouble};

use crate::detailed;

/// A request that this workflow cannot take.
pub(super) fn rejected(sentence: &str) -> ProviderError {
    ProviderError::new(Trouble::Rejected, sentence)
}

/// Errors of a call that may have run, grouped by remedy.
pub(super) fn call_trouble(error: &ClientError) -> ProviderError {
    let trouble = match error {
        ClientError::TooLong { .. } => Trouble::TooLarge,
        ClientError::NotUtf8 => Trouble::Rejected,
        _ => return trouble(error),
    };
    let sentence = format!(
        "the tool ran and its answer could not be read: {error}; look at what it did before you start it again"
    );
    // It has done its work: a new try would do it again.
    ProviderError { run: RunStatus::Ended(Cost::Unknown), ..ProviderError::new(trouble, sentence) }
}

/// Errors of a call, grouped by remedy.
pub(super) fn trouble(error: &ClientError) -> ProviderError {
    let (trouble, sentence) = match error {
        ClientError::Start { .. } => (
            Trouble::Rejected,
            "the server of this workflow cannot be started; correct its [upstream] entry",
        ),
        ClientError::Handshake(_) | ClientError::HandshakeTimedOut { .. } => (
            Trouble::Unavailable { retry_after: None },
            "the handshake with the server of this workflow failed; the log says why",
        ),
        ClientError::Unauthorized => (
            Trouble::Unauthorized,
            "the server of this workflow asks for another token; correct its [upstream] entry",
        ),
        ClientError::TimedOut(timed_out) => {
            let goes_on =
                timed_out.task.as_ref().is_some_and(|task| task.fate != TaskFate::Cancelled);
            // A task that may still run is resumed by the next try, so that no second one runs next to it.
            let trouble = if goes_on { Trouble::TimedOut } else { Trouble::RunTimedOut };
            let sentence = format!("{timed_out}; give the workflow more time if that is too short");
            return ProviderError::new(trouble, sentence);
        }
        ClientError::Refused { code, .. } => {
            let sentence = format!(
                "the server of this workflow refused the call with code {code}; the log and `outlast jobs show` \
                 have its words"
            );
            return detailed(Trouble::RunFailed, sentence, error.to_string());
        }
        ClientError::Gone { .. } => {
            (Trouble::Unreachable, "the server of this workflow left before it answered")
        }
        ClientError::TaskCancelled { .. } => {
            (Trouble::RunStopped, "the task was cancelled at the server of this workflow")
        }
        ClientError::TaskUnknown { .. } => (
            Trouble::RunLost,
            "the server of this workflow no longer knows the task that this job was",
        ),
        ClientError::NeedsInput | ClientError::Usage(_) => (
            Trouble::Rejected,
            "the server of this workflow asks for input, which no one here can give",
        ),
        _ => (
            Trouble::RunFailed,
            "the answer of this workflow's server cannot be used; the log says why",
        ),
    };
    detailed(trouble, sentence, error.to_string())
}
