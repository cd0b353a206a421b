//! Progress and the text so far, written now and then.

use std::time::Duration;

use outlast_core::Progress;
use tokio::time::Instant;

use crate::wakeups::until;

/// Nothing is written of a run that ends so soon: no reader would see it before the end replaces it.
const FIRST_AFTER: Duration = Duration::from_millis(50);

/// Progress is written at most this often for each job; the last word wins.
const NOTE_EVERY: Duration = Duration::from_millis(250);

/// The text so far is written at most this often for each job (G8).
const TEXT_EVERY: Duration = Duration::from_secs(2);

/// Progress that waits to be written.
pub(super) struct Notes {
    pub(super) latest: Option<Progress>,
    first: Instant,
    not_before: Instant,
    text_not_before: Instant,
    /// How long the text was that was written last.
    text_bytes: usize,
}

impl Notes {
    /// Of a run that is followed from now on.
    pub(super) fn new() -> Self {
        let first = Instant::now() + FIRST_AFTER;
        Self { latest: None, first, not_before: first, text_not_before: first, text_bytes: 0 }
    }

    /// Waits until there is something to write and it is time. Cancel-safe.
    pub(super) async fn due(&self) {
        until(self.latest.as_ref().map(|_| self.not_before)).await;
    }

    /// Whether the run has lasted long enough for its last word to be written.
    pub(super) fn has_begun(&self) -> bool {
        Instant::now() >= self.first
    }

    /// The text, if it is time and it is another one than was written last. The next is looked at after a while.
    pub(super) fn text_to_show(&mut self, text: impl FnOnce() -> Option<String>) -> Option<String> {
        if Instant::now() < self.text_not_before {
            return None;
        }
        let text = text().filter(|text| text.len() != self.text_bytes)?;
        self.text_not_before = Instant::now() + TEXT_EVERY;
        self.text_bytes = text.len();
        Some(text)
    }

    pub(super) fn take(&mut self) -> Option<Progress> {
        self.not_before = Instant::now() + NOTE_EVERY;
        self.latest.take()
    }
}
