//! The attempts that wind down: they wait for the answers to steps that were sent, and begin no other (K2).

use std::time::Duration;

use tokio::sync::watch;

/// The time limit for the answers.
pub(crate) const WIND_DOWN: Duration = Duration::from_secs(30);

/// The number of attempts that wind down.
#[derive(Default)]
pub(crate) struct WindDowns(watch::Sender<usize>);

/// Counts an attempt until it is dropped.
pub(crate) struct WindDown<'a>(&'a WindDowns);

impl WindDowns {
    /// Counts an attempt that begins to wind down.
    pub(crate) fn begin(&self) -> WindDown<'_> {
        self.0.send_modify(|count| *count += 1);
        WindDown(self)
    }

    /// Waits until no attempt winds down. Cancel-safe.
    pub(crate) async fn wait_for_end(&self) {
        // The sender is not dropped during the wait.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

impl Drop for WindDown<'_> {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}
