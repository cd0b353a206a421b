//! Shutdown as a value: every wait of the engine has one and ends when it is asked for.

use tokio_util::sync::CancellationToken;

/// A request to leave. What is under way may finish what it cannot leave half done.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    draining: CancellationToken,
    asked: CancellationToken,
}

impl Shutdown {
    /// A shutdown that was not asked for yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Has workers claim nothing more from the queue, and ask for the stop themselves when no job is in hand.
    pub fn drain(&self) {
        self.draining.cancel();
    }

    /// Returns whether the process is about to leave: it drains, or was asked to stop.
    pub fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    /// Waits until the process drains. Cancel-safe.
    pub(crate) async fn draining(&self) {
        self.draining.cancelled().await;
    }

    /// Asks for it: workers claim nothing more and give their jobs back, waiting polls are answered.
    pub fn ask(&self) {
        self.draining.cancel();
        self.asked.cancel();
    }

    /// Whether it was asked for.
    pub fn is_asked(&self) -> bool {
        self.asked.is_cancelled()
    }

    /// Waits until it is asked for. Cancel-safe.
    pub async fn asked(&self) {
        self.asked.cancelled().await;
    }
}
