//! The waits between checks of a run, and for a run that cannot be found (A5).

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{ProviderError, RemoteRun};
use reqwest::StatusCode;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::errors::{self, HttpAnswer};
use super::lenient::object;

/// The time every check may answer "not found" before a run is lost: a gateway or a replica that lags may not find it for
/// minutes.
const LOST_AFTER: Duration = Duration::from_secs(5 * 60);

/// The time for which a paid step that may have been sent is looked for, and the limit of sending it.
const GRACE: Duration = Duration::from_secs(60);
const STEP_LIMIT: Duration = Duration::from_secs(30);

/// A stream that is silent for this long may have lost its run.
const SILENCE: Duration = Duration::from_secs(60);

/// The waits between checks, in order; the last one repeats.
#[derive(Clone, Debug)]
pub struct PollIntervals {
    between: Arc<[Duration]>,
    lost_after: Duration,
    /// The time for which a step that may have been sent is looked for.
    pub(crate) grace: Duration,
    /// The limit of sending a step that is looked for afterwards; well below the grace.
    pub(crate) step_limit: Duration,
    /// The time a stream may be silent before a check is made.
    pub(crate) silence: Duration,
}

impl PollIntervals {
    /// Waits of these lengths; none means checks without a pause, which only a test wants.
    pub fn of(waits: &[Duration]) -> Self {
        Self {
            between: waits.into(),
            lost_after: LOST_AFTER,
            grace: GRACE,
            step_limit: STEP_LIMIT,
            silence: SILENCE,
        }
    }

    /// The same, with another time for which a step that may have been sent is looked for; only a test wants that.
    #[must_use]
    pub fn grace(self, grace: Duration) -> Self {
        Self { grace, step_limit: grace / 2, ..self }
    }

    /// The same, with another time after which a run that cannot be found is lost; only a test wants that.
    #[must_use]
    pub fn with_lost_after(self, lost_after: Duration) -> Self {
        Self { lost_after, ..self }
    }

    /// The waits of the Sonar dialect, which has no stream of events: the first is the wait after the submit.
    pub(crate) fn sonar() -> Self {
        Self::of(&[1, 8, 8, 12, 18, 27, 40].map(Duration::from_secs))
    }

    /// The wait after this many others.
    fn after(&self, waited: usize) -> Duration {
        self.between.get(waited).or(self.between.last()).copied().unwrap_or_default()
    }
}

/// The waits of the Agent dialect, while a run's stream cannot be had.
impl Default for PollIntervals {
    fn default() -> Self {
        Self::of(&[1, 2, 3, 5, 8, 10].map(Duration::from_secs))
    }
}

/// The checks of one run: when the next is due, and what one that brought no state means.
#[derive(Debug)]
pub(crate) struct Checks {
    waits: PollIntervals,
    /// Waits since the last news of the run.
    waited: usize,
    /// The time since when every check has answered "not found". By the clock of this process, which runs evenly: a
    /// machine that slept or a clock that was set does not concern the run.
    not_found_since: Option<Instant>,
    /// True if the log has a warning of an answer that names another run.
    warned_of_other_id: bool,
}

impl Checks {
    /// Checks after this many waits of the series.
    pub(crate) fn after(waits: &PollIntervals, waited: usize) -> Self {
        Self { waits: waits.clone(), waited, not_found_since: None, warned_of_other_id: false }
    }

    /// Restarts the series of waits: there is news of the run.
    pub(crate) fn restart(&mut self) {
        self.waited = 0;
    }

    /// Returns the time of the next check, one wait further in the series.
    pub(crate) fn next(&mut self) -> Instant {
        let at = Instant::now() + self.waits.after(self.waited);
        self.waited += 1;
        at
    }

    /// The time of a check that is to come soon.
    pub(crate) fn soon(&self) -> Instant {
        Instant::now() + self.waits.after(0)
    }

    /// The run was found.
    pub(crate) fn handle_found(&mut self) {
        self.not_found_since = None;
    }

    /// Notes the id in an answer about a run. Gateways rename ids, so the answer is used all the same.
    pub(crate) fn check_id(&mut self, remote: &RemoteRun, id: Option<&str>) {
        let Some(other) = id.filter(|id| *id != remote.id && !self.warned_of_other_id) else {
            return;
        };
        self.warned_of_other_id = true;
        let shown: String = other.chars().take(200).collect();
        tracing::warn!(
            remote.id = remote.short_id(),
            answer.id = shown,
            "the provider answered with the id of another run; using the answer"
        );
    }

    /// The run was not found: one answer of this kind proves nothing, nor do many in a short time.
    pub(crate) fn handle_not_found(&mut self) -> Result<(), ProviderError> {
        let since = *self.not_found_since.get_or_insert_with(Instant::now);
        match since.elapsed() >= self.waits.lost_after {
            true => Err(errors::lost_run()),
            false => Ok(()),
        }
    }

    /// A check failed. A failure in passing keeps the series and is not a failed try; a permanent one ends the run.
    pub(crate) fn handle_failure(
        &mut self,
        remote: &RemoteRun,
        error: ProviderError,
    ) -> Result<(), ProviderError> {
        self.handle_found();
        if error.kind.is_permanent() {
            return Err(error);
        }
        // Without the upstream message: it may repeat the question, which is not known here.
        tracing::warn!(remote.id = remote.short_id(), %error, "failed to check the run; checking again later");
        Ok(())
    }

    /// The object that a check was answered with, and its body; `None` when the run must be checked again.
    pub(crate) fn read_object<T: DeserializeOwned>(
        &mut self,
        remote: &RemoteRun,
        answer: Result<HttpAnswer, ProviderError>,
        to_error: impl Fn(&HttpAnswer) -> ProviderError,
    ) -> Result<Option<(T, Vec<u8>)>, ProviderError> {
        let Some(body) = self.body(remote, answer, to_error)? else { return Ok(None) };
        match object(&body) {
            Some(shown) => Ok(Some((shown, body))),
            None => self.handle_failure(remote, errors::unreadable()).map(|()| None),
        }
    }

    /// The body of what a check was answered; `None` when the run must be checked again.
    pub(crate) fn body(
        &mut self,
        remote: &RemoteRun,
        answer: Result<HttpAnswer, ProviderError>,
        to_error: impl Fn(&HttpAnswer) -> ProviderError,
    ) -> Result<Option<Vec<u8>>, ProviderError> {
        match answer {
            Ok(answer) if answer.status == StatusCode::NOT_FOUND => self.handle_not_found()?,
            Ok(answer) if answer.status.is_success() => {
                self.handle_found();
                return Ok(Some(answer.body));
            }
            Ok(answer) => self.handle_failure(remote, to_error(&answer))?,
            Err(error) => self.handle_failure(remote, error)?,
        }
        Ok(None)
    }
}
