//! Progress, written now and then.

use std::time::Duration;

use outlast_core::Progress;
use tokio::time::Instant;

use crate::wakeups::until;

/// Progress is written at most this often for each job; the last word wins.
const NOTE_EVERY: Duration = Duration::from_millis(250);

/// Progress that waits to be written.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) latest: Option<Progress>,
    not_before: Option<Instant>,
}

impl Notes {
    /// Waits until there is something to write and it is time. Cancel-safe.
    pub(super) async fn due(&self) {
        match (&self.latest, self.not_before) {
            (Some(_), None) => {}
            (Some(_), moment) => until(moment).await,
            (None, _) => until(None).await,
        }
    }

    pub(super) fn take(&mut self) -> Option<Progress> {
        self.not_before = Some(Instant::now() + NOTE_EVERY);
        self.latest.take()
    }
}
