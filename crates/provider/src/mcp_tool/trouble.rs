//! Why there is no answer, by remedy.

use outlast_client::{ClientError, TaskFate};
use outlast_core::{ProviderError, Trouble};

/// A request that makes no sense here.
pub(super) fn rejected(sentence: &str) -> ProviderError {
    ProviderError { trouble: Trouble::Rejected, sentence: sentence.to_owned(), detail: None }
}

/// Why there is no answer, by remedy.
pub(super) fn trouble(error: &ClientError) -> ProviderError {
    let (trouble, sentence) = match error {
        ClientError::Start { .. } => (
            Trouble::Rejected,
            "the server of this workflow cannot be started; mend its [upstream] entry",
        ),
        ClientError::Handshake(_) | ClientError::HandshakeTimedOut { .. } => (
            Trouble::Unavailable { retry_after: None },
            "the server of this workflow did not greet us; the log says why",
        ),
        ClientError::Unauthorized => (
            Trouble::Unauthorized,
            "the server of this workflow asks for another token; mend its [upstream] entry",
        ),
        ClientError::TimedOut(timed_out) => {
            let goes_on =
                timed_out.task.as_ref().is_some_and(|task| task.fate != TaskFate::Cancelled);
            return ProviderError {
                // A task that may still run is taken up by the next try; a second one beside it would be one too many.
                trouble: if goes_on { Trouble::TimedOut } else { Trouble::RunTimedOut },
                sentence: format!("{timed_out}; give the workflow more time if that is too short"),
                detail: None,
            };
        }
        ClientError::Refused { code, .. } => {
            return ProviderError {
                trouble: Trouble::RunFailed,
                sentence: format!(
                    "the server of this workflow refused the call with code {code}; the log and `outlast jobs show` \
                     have its words"
                ),
                detail: Some(error.to_string()),
            };
        }
        ClientError::Gone { .. } => {
            (Trouble::Unreachable, "the server of this workflow left before it answered")
        }
        ClientError::TaskCancelled { .. } => {
            (Trouble::RunStopped, "somebody cancelled the task at the server of this workflow")
        }
        ClientError::TaskUnknown { .. } => (
            Trouble::RunLost,
            "the server of this workflow no longer knows the task that this job was",
        ),
        ClientError::NeedsInput | ClientError::Usage(_) => {
            (Trouble::Rejected, "the server of this workflow asks for what nobody here can give")
        }
        _ => (
            Trouble::RunFailed,
            "the answer of this workflow's server cannot be used; the log says why",
        ),
    };
    ProviderError { trouble, sentence: sentence.to_owned(), detail: Some(error.to_string()) }
}
