//! The reports of a run to the engine: progress, and the text that is finished.

use std::sync::{Arc, Mutex, PoisonError};

use outlast_core::{Progress, ProviderError, Step};
use tokio::sync::mpsc;

/// The way to the engine.
pub(crate) struct EngineChannel {
    sender: mpsc::UnboundedSender<Result<Step, ProviderError>>,
    /// The sections that are finished.
    text: Arc<Mutex<String>>,
    latest: Mutex<LatestProgress>,
}

/// The latest progress.
#[derive(Default)]
struct LatestProgress {
    percent: u8,
    message: String,
    /// The number of requests that wait for a server.
    waits: usize,
}

/// A request that waits for a server. When the last one is answered, the progress from before is reported again.
pub(crate) struct ReportedWait<'a>(&'a EngineChannel);

impl Drop for ReportedWait<'_> {
    fn drop(&mut self) {
        let mut latest = self.0.lock();
        latest.waits -= 1;
        if latest.waits == 0 && !latest.message.is_empty() {
            self.0.send(latest.percent, latest.message.clone());
        }
    }
}

impl EngineChannel {
    pub(crate) fn new(
        sender: mpsc::UnboundedSender<Result<Step, ProviderError>>,
        text: Arc<Mutex<String>>,
    ) -> Self {
        Self { sender, text, latest: Mutex::default() }
    }

    /// EngineChannel progress. The percentage never goes down.
    pub(crate) fn report(&self, percent: u8, message: String) {
        let mut latest = self.lock();
        latest.percent = percent.max(latest.percent);
        latest.message.clone_from(&message);
        self.send(latest.percent, message);
    }

    /// Begins to wait for a server.
    pub(crate) fn begin_wait(&self) -> ReportedWait<'_> {
        self.lock().waits += 1;
        ReportedWait(self)
    }

    /// EngineChannel the reason of a wait, and leaves the percentage as it is.
    pub(crate) fn report_wait(&self, message: String) {
        let percent = self.lock().percent;
        self.send(percent, message);
    }

    /// Shows the text that is finished.
    pub(crate) fn show(&self, text: String) {
        *self.text.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    fn send(&self, percent: u8, message: String) {
        let progress = Progress { percent: Some(percent), message };
        drop(self.sender.send(Ok(Step::Progress(progress))));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, LatestProgress> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
