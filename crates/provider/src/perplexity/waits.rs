//! How long to wait between checks of a run (A5).

use std::sync::Arc;
use std::time::Duration;

/// The waits between checks, in order; the last one repeats.
#[derive(Clone, Debug)]
pub struct Waits(Arc<[Duration]>);

impl Waits {
    /// Waits of these lengths; none means checks without a pause, which only a test wants.
    pub fn of(waits: &[Duration]) -> Self {
        Self(waits.into())
    }

    /// Of the Sonar dialect, which has no stream of events: the first is the wait after the submit.
    pub(super) fn sonar() -> Self {
        Self::of(&[1, 8, 8, 12, 18, 27, 40].map(Duration::from_secs))
    }

    /// The wait after this many others.
    pub(super) fn after(&self, waited: usize) -> Duration {
        self.0.get(waited).or(self.0.last()).copied().unwrap_or_default()
    }
}

/// Of the Agent dialect, while a run's stream cannot be had.
impl Default for Waits {
    fn default() -> Self {
        Self::of(&[1, 2, 3, 5, 8, 10].map(Duration::from_secs))
    }
}
