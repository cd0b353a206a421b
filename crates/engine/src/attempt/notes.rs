//! Progress and the text so far, written now and then.

use std::time::Duration;

use outlast_core::Progress;
use tokio::time::Instant;

use crate::wakeups::until;

/// Progress is written at most this often for each job; the last word wins.
const NOTE_EVERY: Duration = Duration::from_millis(250);

/// The text so far is written at most this often for each job (G8).
const TEXT_EVERY: Duration = Duration::from_secs(2);

/// Progress that waits to be written.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) latest: Option<Progress>,
    not_before: Option<Instant>,
    text_not_before: Option<Instant>,
    /// How long the text was that was written last.
    text_bytes: usize,
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

    /// The text, if it is time and it is another one than was written last. The next is looked at after a while.
    pub(super) fn text_to_show(&mut self, text: impl FnOnce() -> Option<String>) -> Option<String> {
        if self.text_not_before.is_some_and(|moment| Instant::now() < moment) {
            return None;
        }
        let text = text().filter(|text| text.len() != self.text_bytes)?;
        self.text_not_before = Some(Instant::now() + TEXT_EVERY);
        self.text_bytes = text.len();
        Some(text)
    }

    pub(super) fn take(&mut self) -> Option<Progress> {
        self.not_before = Some(Instant::now() + NOTE_EVERY);
        self.latest.take()
    }
}
