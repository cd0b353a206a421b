//! Progress and the text so far, written now and then.

use std::time::Duration;

use outlast_core::Progress;
use tokio::time::Instant;

use crate::wakeups::until;

/// The time before the first write. No reader would see the progress of a shorter run before its end replaces it.
const FIRST_AFTER: Duration = Duration::from_millis(50);

/// The minimum interval between two progress writes of a job; the latest progress wins.
const NOTE_EVERY: Duration = Duration::from_millis(250);

/// The minimum interval between two writes of a job's text so far (G8).
const TEXT_EVERY: Duration = Duration::from_secs(2);

/// The part of both intervals that each job of a worker adds, so that the progress of a thousand jobs does not delay
/// their ends: all jobs together write at most 500 notes per second.
const NOTE_SHARE: Duration = Duration::from_millis(2);
const TEXT_SHARE: Duration = Duration::from_millis(8);

/// Progress that waits to be written.
pub(super) struct Notes {
    pub(super) latest: Option<Progress>,
    first: Instant,
    not_before: Instant,
    text_not_before: Instant,
    /// The length of the text that was written last.
    text_bytes: usize,
}

impl Notes {
    /// Creates the notes of a run that is followed from now on.
    pub(super) fn new() -> Self {
        let first = Instant::now() + FIRST_AFTER;
        Self { latest: None, first, not_before: first, text_not_before: first, text_bytes: 0 }
    }

    /// Waits until there is something to write and it is time. Cancel-safe.
    pub(super) async fn due(&self) {
        until(self.latest.as_ref().map(|_| self.not_before)).await;
    }

    /// Returns whether the run has lasted long enough for its last progress to be written.
    pub(super) fn has_begun(&self) -> bool {
        Instant::now() >= self.first
    }

    /// Returns the text, if it is time and the text differs from the one written last. The next read follows after a
    /// wait, which grows with the number of the worker's jobs.
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

    /// Returns the progress to write. The next write follows after a wait, which grows with the number of the
    /// worker's jobs.
    pub(super) fn take(&mut self, jobs: u32) -> Option<Progress> {
        self.not_before = Instant::now() + NOTE_EVERY.max(NOTE_SHARE * jobs);
        self.latest.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the time until the next progress is due, for a worker with this many jobs.
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

    /// G8: it also shows the text of each job less often, from that very moment on.
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
