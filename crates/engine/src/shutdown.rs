//! Leaving, as a value: everything that waits holds one and ends when it is asked to.

use tokio_util::sync::CancellationToken;

/// A request to leave. A soft stop lets everybody finish their sentence.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    soft: CancellationToken,
}

impl Shutdown {
    /// Nobody has asked yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks everybody to leave: claim nothing, answer parked polls, give jobs back.
    pub fn ask(&self) {
        self.soft.cancel();
    }

    /// Whether somebody has asked.
    pub fn is_asked(&self) -> bool {
        self.soft.is_cancelled()
    }

    /// Waits until somebody asks. Cancel-safe.
    pub async fn asked(&self) {
        self.soft.cancelled().await;
    }
}
