//! Stopping a run. Its state is read first, because a cancel of an unknown run and of a finished one may get the same
//! answer, and again after any answer that does not show its end itself: a refused cancel is not a stop.

use std::time::Duration;

use outlast_core::{Cost, ProviderError, RemoteRun, StopOutcome};
use reqwest::StatusCode;
use serde_json::json;

use super::ended::Status;
use super::errors::{self, HttpAnswer};
use super::service::Service;

/// The waits before each look at a run whose cancel was accepted: runs need a moment to stop.
const LOOKS: [Duration; 6] = [
    Duration::ZERO,
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
];

/// The calls that look at one vendor's runs.
pub(crate) struct StopCalls<L, S, T> {
    /// Reads the state of the run.
    pub(crate) look: L,
    /// The end that a body shows; `None` while the run goes on.
    pub(crate) end: S,
    /// The meaning of an answer that is not a success.
    pub(crate) to_error: T,
}

/// The end of a run with this status, `None` while it goes on; one that waits for an action can be stopped.
pub(crate) fn stop_outcome(
    status: Status,
    cost: Cost,
    has_report: impl FnOnce() -> bool,
) -> Option<StopOutcome> {
    match status {
        Status::Running | Status::RequiresAction => None,
        Status::Failed | Status::Cancelled => Some(StopOutcome::Ended { cost }),
        Status::Completed | Status::Incomplete => Some(match has_report() {
            true => StopOutcome::Completed { cost },
            false => StopOutcome::Ended { cost },
        }),
    }
}

impl Service {
    /// Stops the run at this path, and returns what was seen of it. Safe to repeat.
    pub(crate) async fn stop<L, F, S, T>(
        &self,
        run: &RemoteRun,
        names: &[&str],
        calls: StopCalls<L, S, T>,
    ) -> Result<StopOutcome, ProviderError>
    where
        L: Fn() -> F,
        F: Future<Output = Result<HttpAnswer, ProviderError>>,
        S: Fn(&[u8]) -> Option<StopOutcome>,
        T: Fn(&HttpAnswer) -> ProviderError,
    {
        let StopCalls { look, end, to_error } = calls;
        let before = look().await?;
        let was_known = before.status != StatusCode::NOT_FOUND;
        if !was_known && !self.is_settled(run) {
            return Err(errors::unknown_run());
        }
        if was_known && !before.status.is_success() {
            return Err(to_error(&before));
        }
        if was_known && let Some(outcome) = end(&before.body) {
            return Ok(outcome);
        }
        // A run that is not found may only be hidden for a while, so it is cancelled all the same.
        let cancel = [names, &["cancel"]].concat();
        let answer = self.tell(self.stop_limit(), &cancel, &json!({})).await?;
        let is_accepted = answer.status.is_success();
        if is_accepted && let Some(outcome) = end(&answer.body) {
            return Ok(outcome);
        }
        if !is_accepted {
            let status = answer.status.as_u16();
            tracing::debug!(
                remote.id = run.short_id(),
                status,
                "the provider refused to stop a run"
            );
        }
        let looks = if is_accepted { LOOKS.len() } else { 1 };
        for wait in &LOOKS[..looks] {
            tokio::time::sleep(*wait).await;
            let shown = look().await?;
            match shown.status {
                StatusCode::NOT_FOUND if was_known => return Err(errors::unknown_run()),
                StatusCode::NOT_FOUND => return Ok(StopOutcome::Unknown),
                status if !status.is_success() => return Err(to_error(&shown)),
                _ => {}
            }
            if let Some(outcome) = end(&shown.body) {
                return Ok(outcome);
            }
        }
        Ok(StopOutcome::StillRunning)
    }
}
