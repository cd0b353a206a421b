//! How long to wait between checks of a run, and for one that cannot be found (A5).

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// After so long of nothing but "not found" a run is lost. A gateway or a replica that lags may not find it for minutes.
const LOST_AFTER: Duration = Duration::from_secs(5 * 60);

/// The waits between checks, in order; the last one repeats.
#[derive(Clone, Debug)]
pub struct Waits {
    between: Arc<[Duration]>,
    lost_after: Duration,
}

impl Waits {
    /// Waits of these lengths; none means checks without a pause, which only a test wants.
    pub fn of(waits: &[Duration]) -> Self {
        Self { between: waits.into(), lost_after: LOST_AFTER }
    }

    /// The same, with another time after which a run that cannot be found is lost; only a test wants that.
    #[must_use]
    pub fn lost_after(self, lost_after: Duration) -> Self {
        Self { lost_after, ..self }
    }

    /// Of the Sonar dialect, which has no stream of events: the first is the wait after the submit.
    pub(super) fn sonar() -> Self {
        Self::of(&[1, 8, 8, 12, 18, 27, 40].map(Duration::from_secs))
    }

    /// The wait after this many others.
    pub(super) fn after(&self, waited: usize) -> Duration {
        self.between.get(waited).or(self.between.last()).copied().unwrap_or_default()
    }
}

/// How long nothing but "not found" has been heard of a run. By the clock of this process, which runs evenly: a machine
/// that slept or a clock that was set says nothing about the run.
#[derive(Debug, Default)]
pub(super) struct NotFound {
    since: Option<Instant>,
}

impl NotFound {
    /// It was not found once more; whether it is lost by now.
    pub(super) fn again(&mut self, waits: &Waits) -> bool {
        let since = *self.since.get_or_insert_with(Instant::now);
        since.elapsed() >= waits.lost_after
    }

    /// Something else was heard: the series is broken.
    pub(super) fn broken(&mut self) {
        self.since = None;
    }
}

/// Of the Agent dialect, while a run's stream cannot be had.
impl Default for Waits {
    fn default() -> Self {
        Self::of(&[1, 2, 3, 5, 8, 10].map(Duration::from_secs))
    }
}
