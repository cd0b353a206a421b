//! Stopping a session: it is interrupted, looked at until its end is seen, and then archived, so that a question that is
//! still on its way is not accepted any more. One that has a report is left as it is: a job may still fetch that.

use std::time::Duration;

use outlast_core::{ProviderError, RemoteRun, StopOutcome};
use reqwest::StatusCode;

use super::report::{self, End};
use super::wire::{AgentSession, Event};
use crate::vendor::{HttpAnswer, Service, object, unknown_run, unreadable};

/// The waits before each look at a session that took the interrupt: it needs a moment to stop.
const LOOKS: [Duration; 6] = [
    Duration::ZERO,
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
];

/// Stops a session and returns what was seen of it. Safe to repeat.
pub(super) async fn stop(service: &Service, run: &RemoteRun) -> Result<StopOutcome, ProviderError> {
    let before = look(service, run).await?;
    if let StopTarget::Session(seen) = &before {
        if seen.session.takes_no_events() {
            return Ok(seen.end().unwrap_or_else(|| seen.read_outcome()));
        }
        if let Some(outcome @ StopOutcome::Completed { .. }) = seen.end() {
            return Ok(outcome);
        }
    } else if !service.is_settled(run) {
        return Err(unknown_run());
    }
    let was_known = matches!(before, StopTarget::Session(_));
    // Also if it is idle: a question that is on its way may still arrive. One that is not found may only be hidden.
    let answer = service.interrupt(&run.id).await?;
    let looks = if answer.status.is_success() { LOOKS.len() } else { 1 };
    for wait in &LOOKS[..looks] {
        tokio::time::sleep(*wait).await;
        let seen = match look(service, run).await? {
            StopTarget::Session(seen) => seen,
            StopTarget::Nothing if was_known => return Err(unknown_run()),
            StopTarget::Nothing => return Ok(StopOutcome::Unknown),
        };
        match seen.end() {
            Some(outcome @ StopOutcome::Completed { .. }) => return Ok(outcome),
            Some(outcome) => {
                service.archive(&run.id).await;
                return Ok(outcome);
            }
            // Nothing was asked in it; once it is archived, nothing can be.
            None if !report::has_begun(&seen.events) => {
                return Ok(match service.archive(&run.id).await {
                    true => seen.read_outcome(),
                    false => StopOutcome::StillRunning,
                });
            }
            None => {}
        }
    }
    Ok(StopOutcome::StillRunning)
}

enum StopTarget {
    Session(Box<SeenSession>),
    Nothing,
}

/// A session and its events.
struct SeenSession {
    session: AgentSession,
    events: Vec<Event>,
}

impl SeenSession {
    /// The end that its events show; `None` while it works, or before it was asked anything.
    fn end(&self) -> Option<StopOutcome> {
        let end = End::of(&self.events)?;
        let report = report::final_report(&self.events, &self.session, end);
        let completed = report.map(|output| StopOutcome::Completed { cost: output.cost });
        Some(completed.unwrap_or_else(|| self.read_outcome()))
    }

    fn read_outcome(&self) -> StopOutcome {
        StopOutcome::Ended { cost: report::stated_cost(&self.session) }
    }
}

async fn look(service: &Service, run: &RemoteRun) -> Result<StopTarget, ProviderError> {
    let limit = service.stop_limit();
    let session = service.get_within(limit, &["v1", "sessions", &run.id]).await?;
    let Some(body) = read_found(service, session)? else { return Ok(StopTarget::Nothing) };
    let session = object::<AgentSession>(&body).ok_or_else(unreadable)?;
    match service.events(&run.id).await? {
        Ok(events) => Ok(StopTarget::Session(Box::new(SeenSession { session, events }))),
        Err(answer) => read_found(service, answer).map(|_| StopTarget::Nothing),
    }
}

/// The body of a success; `None` if there is no such session.
fn read_found(service: &Service, answer: HttpAnswer) -> Result<Option<Vec<u8>>, ProviderError> {
    match answer.status {
        StatusCode::NOT_FOUND => Ok(None),
        status if status.is_success() => Ok(Some(answer.body)),
        _ => Err(service.provider_error(&answer)),
    }
}
