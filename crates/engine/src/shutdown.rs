//! Shutdown as a value: every wait of the engine has one and ends when a shutdown is requested.

use tokio_util::sync::CancellationToken;

/// A request to shut down. Work under way may finish what it cannot leave half done.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    draining: CancellationToken,
    asked: CancellationToken,
}

impl Shutdown {
    /// Creates a shutdown that has not been requested yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes workers claim nothing more from the queue, and request the stop themselves when they run no job.
    pub fn drain(&self) {
        self.draining.cancel();
    }

    /// Returns whether the process is about to exit: it drains, or was asked to stop.
    pub fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    /// Waits until the process drains. Cancel-safe.
    pub(crate) async fn wait_for_drain(&self) {
        self.draining.cancelled().await;
    }

    /// Requests the stop: workers claim nothing more and release their jobs, and waiting polls are answered.
    pub fn ask(&self) {
        self.draining.cancel();
        self.asked.cancel();
    }

    /// Returns whether the stop was requested.
    pub fn is_asked(&self) -> bool {
        self.asked.is_cancelled()
    }

    /// Waits until the stop is requested. Cancel-safe.
    pub async fn wait(&self) {
        self.asked.cancelled().await;
    }
}
