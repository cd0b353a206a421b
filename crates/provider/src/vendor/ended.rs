//! The status of a run at its vendor, and the error of a run without a report.

use outlast_core::{ProviderError, Trouble};

use super::Vendor;
use super::run_error::RunError;
use crate::provider_error::provider_error;

/// The status of a run. An unknown status counts as running, and is checked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Running,
    Completed,
    Incomplete,
    Failed,
    Cancelled,
    RequiresAction,
}

impl Status {
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "completed" => Self::Completed,
            "incomplete" => Self::Incomplete,
            "failed" => Self::Failed,
            "cancelled" | "canceled" => Self::Cancelled,
            "requires_action" => Self::RequiresAction,
            _ => Self::Running,
        }
    }

    pub(crate) fn is_terminal(self) -> bool {
        self != Self::Running
    }
}

/// A run that ended without a report. Only one that failed may be repeated: the others were paid for and would end
/// the same way, or were stopped on purpose (B9a).
///
/// `limit` is the vendor's word for a limit that was reached; `cause` classifies a failure.
pub(crate) fn run_ended(
    vendor: &Vendor,
    status: Status,
    limit: Option<&str>,
    error: Option<&RunError>,
    cause: impl Fn(&RunError) -> Trouble,
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
        Status::Completed if error.is_some_and(RunError::is_refusal) => (
            Trouble::Rejected,
            "the provider's model refused to write the report; ask in another way".to_owned(),
        ),
        Status::Completed => (
            Trouble::Malformed,
            "the provider calls the run completed, but shows no report".to_owned(),
        ),
        Status::Incomplete => {
            let limit = limit.map(|limit| format!(" ({limit})")).unwrap_or_default();
            let sentence = format!(
                "the provider's run reached a limit before it wrote anything{limit}; ask for less at a time"
            );
            (Trouble::Rejected, sentence)
        }
        Status::Failed | Status::Running => match error.map_or(Trouble::RunFailed, cause) {
            Trouble::QuotaExhausted => (Trouble::QuotaExhausted, vendor.no_credit()),
            Trouble::Rejected => (
                Trouble::Rejected,
                "the provider's run rejected the request; change the question or its options"
                    .to_owned(),
            ),
            _ => (Trouble::RunFailed, "the provider's run failed".to_owned()),
        },
    };
    let reason = error.and_then(|error| error.message.as_deref()).map(&redact);
    let detail = error.map(|error| redact(&error.said()));
    ProviderError { reason, detail, ..provider_error(trouble, sentence) }
}
