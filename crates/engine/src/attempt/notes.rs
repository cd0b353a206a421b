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

/// What each job of a worker adds to both, so that progress of a thousand jobs does not hold up their ends: all of them together
/// are noted 500 times a second at most.
const NOTE_SHARE: Duration = Duration::from_millis(2);
const TEXT_SHARE: Duration = Duration::from_millis(8);

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

    /// The text, if it is time and it is another one than was written last. The next is looked at after a while, the longer the
    /// more jobs the worker has.
    pub(super) fn text_to_show(
        &mut self,
        jobs: u32,
        text: impl FnOnce() -> Option<String>,
    ) -> Option<String> {
        if Instant::now() < self.text_not_before {
            return None;
        }
        let text = text().filter(|text| text.len() != self.text_bytes)?;
        self.text_not_before = Instant::now() + TEXT_EVERY.max(TEXT_SHARE * jobs);
        self.text_bytes = text.len();
        Some(text)
    }

    /// What is to be written. The next is written after a while, the longer the more jobs the worker has.
    pub(super) fn take(&mut self, jobs: u32) -> Option<Progress> {
        self.not_before = Instant::now() + NOTE_EVERY.max(NOTE_SHARE * jobs);
        self.latest.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long after it was taken the next progress is due, for a worker with so many jobs.
    async fn rests(jobs: u32) -> Duration {
        let mut notes = Notes::new();
        let progress = Progress { percent: Some(50), message: "reading".to_owned() };
        notes.latest = Some(progress.clone());
        notes.due().await;
        assert_eq!(notes.take(jobs), Some(progress.clone()));
        let taken = Instant::now();
        notes.latest = Some(progress);
        notes.due().await;
        taken.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_worker_of_many_jobs_notes_each_of_them_less_often() {
        for (jobs, expected) in [(1, 250), (100, 250), (1_000, 2_000)] {
            assert_eq!(rests(jobs).await, Duration::from_millis(expected), "{jobs} jobs");
        }
    }

    /// G8: and shows the text of each less often, from that very moment on.
    #[tokio::test(start_paused = true)]
    async fn a_worker_of_many_jobs_shows_each_text_less_often() {
        for (jobs, expected) in [(1, 2_000), (250, 2_000), (1_000, 8_000)] {
            let mut notes = Notes::new();
            tokio::time::sleep(FIRST_AFTER).await;
            assert!(notes.text_to_show(jobs, || Some("a".to_owned())).is_some());
            tokio::time::sleep(Duration::from_millis(expected - 1)).await;
            assert!(notes.text_to_show(jobs, || Some("ab".to_owned())).is_none(), "{jobs} jobs");
            tokio::time::sleep(Duration::from_millis(1)).await;
            assert!(notes.text_to_show(jobs, || Some("ab".to_owned())).is_some(), "{jobs} jobs");
        }
    }
}
