//! The end of a session as its events show it, and the error of an end without a report.

use outlast_core::{ProviderError, Trouble};

use super::wire::{Event, SessionError};
use crate::provider_error::provider_error;
use crate::vendor::Vendor;

/// The end of a session's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The agent has finished its answer.
    Finished,
    /// Its budget was used up.
    BudgetReached,
    /// The model refused.
    Refusal,
    /// It waits for an answer that it will not get.
    RequiresAction,
    /// Errors, again and again.
    RetriesExhausted,
    /// It was ended for good.
    Terminated,
    /// It was interrupted, and not by this system.
    Interrupted,
}

impl End {
    /// The end that the events show; `None` while the session works, or if its words are not known.
    pub(super) fn of(events: &[Event]) -> Option<Self> {
        let last = events.iter().rfind(|event| event.kind.starts_with("session.status_"))?;
        let interrupted = events.iter().any(|event| event.kind == "user.interrupt");
        match (last.kind.as_str(), last.stop_reason()) {
            ("session.status_terminated", _) => Some(Self::Terminated),
            ("session.status_idle", _) if interrupted => Some(Self::Interrupted),
            // A session is idle before it begins, too.
            ("session.status_idle", Some("end_turn")) if has_worked(events) => Some(Self::Finished),
            ("session.status_idle", Some("budget_reached")) => Some(Self::BudgetReached),
            ("session.status_idle", Some("refusal")) => Some(Self::Refusal),
            ("session.status_idle", Some("requires_action")) => Some(Self::RequiresAction),
            ("session.status_idle", Some("retries_exhausted")) => Some(Self::RetriesExhausted),
            _ => None,
        }
    }

    /// The reason why a report with this end is not whole; `None` if it is whole.
    pub(super) fn cut_short(self) -> Option<&'static str> {
        match self {
            Self::Finished => None,
            Self::BudgetReached => Some("its budget was used up"),
            Self::Terminated => Some("the session was terminated"),
            Self::Refusal | Self::RequiresAction | Self::RetriesExhausted | Self::Interrupted => {
                Some("it did not finish")
            }
        }
    }

    /// Returns true if what was written counts as a report.
    pub(super) fn keeps_its_text(self, error: Option<&SessionError>) -> bool {
        match self {
            Self::Finished | Self::BudgetReached => true,
            Self::Terminated => error.is_none(),
            Self::Refusal | Self::RequiresAction | Self::RetriesExhausted | Self::Interrupted => {
                false
            }
        }
    }
}

/// Returns true if any event shows that the question was accepted.
pub(super) fn has_begun(events: &[Event]) -> bool {
    events.iter().any(|event| event.kind == "user.message") || has_worked(events)
}

fn has_worked(events: &[Event]) -> bool {
    let works =
        |event: &Event| event.kind == "session.status_running" || event.kind.starts_with("agent.");
    events.iter().any(works)
}

/// A run that ended without a report. Only one that failed may be repeated: the others were paid for and would end the
/// same way, or were stopped on purpose (B9a).
pub(super) fn without_report(
    vendor: &Vendor,
    end: End,
    error: Option<&SessionError>,
    said: Option<String>,
) -> ProviderError {
    let (trouble, sentence) = match (end, error.map(|error| error.kind.as_str())) {
        (_, Some("billing_error")) => (Trouble::QuotaExhausted, vendor.no_credit()),
        (End::Finished, _) => (
            Trouble::Malformed,
            "Anthropic calls the run finished, but shows no report; ask again in other words"
                .to_owned(),
        ),
        (End::BudgetReached, _) => (
            Trouble::Rejected,
            "the run used up its budget before it wrote anything; ask with a larger one".to_owned(),
        ),
        (End::Refusal, _) => {
            (Trouble::Rejected, "Anthropic's model refused the question; change it".to_owned())
        }
        (End::RequiresAction, _) => (
            Trouble::Rejected,
            "Anthropic asks for an action in the middle of the run, which is not supported; ask in another way"
                .to_owned(),
        ),
        (End::Interrupted, _) => {
            (Trouble::RunStopped, "the run was stopped at Anthropic".to_owned())
        }
        (End::RetriesExhausted | End::Terminated, _) => {
            (Trouble::RunFailed, "Anthropic's run failed".to_owned())
        }
    };
    ProviderError { reason: said.clone(), detail: said, ..provider_error(trouble, sentence) }
}
