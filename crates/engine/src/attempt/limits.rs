//! The two time limits of an attempt: its own, and that of its job.

use std::time::Duration;

use outlast_core::Job;
use outlast_core::rules::{self, End};
use tokio::time::Instant;

use crate::shared::Shared;
use crate::wakeups::until;

/// The time that a job which was resumed after the end of its life gets for one check of its run.
const LAST_LOOK: Duration = Duration::from_secs(20);

/// The origin of a run: just begun, or resumed from an earlier process.
#[derive(Clone, Copy)]
pub(super) enum RunOrigin {
    Fresh,
    Resumed,
}

/// The two time limits of an attempt.
pub(super) struct AttemptLimits {
    attempt: Option<Instant>,
    /// The time of the single warning.
    warn: Option<Instant>,
    life: Option<Instant>,
}

impl AttemptLimits {
    pub(super) fn new(job: &Job, start: RunOrigin, shared: &Shared) -> Self {
        let now = Instant::now();
        let life = rules::life_ends_at(job).and_then(|end| {
            let left = end.since(shared.store.now());
            now.checked_add(match start {
                RunOrigin::Fresh => left,
                RunOrigin::Resumed => left.max(LAST_LOOK),
            })
        });
        let timeout = job.new.attempt_timeout;
        let warn = now.checked_add(timeout.mul_f64(0.8));
        Self { attempt: now.checked_add(timeout), warn, life }
    }

    /// Warns, once, that the attempt's time is nearly over.
    pub(super) fn warn_of_timeout(&mut self, job: &Job) {
        self.warn = None;
        let timeout_ms = job.new.attempt_timeout.as_millis();
        tracing::warn!(job.id = %job.id, timeout_ms, "80 % of the time for this try is used up");
    }

    /// Waits until it is time to warn. Cancel-safe.
    pub(super) async fn nearly_reached(&self) {
        until(self.warn).await;
    }

    /// Waits until one of them ends the attempt. Cancel-safe.
    pub(super) async fn wait_for_limit(&self) -> End {
        tokio::select! {
            biased;
            () = until(self.life) => End::LifeEnded,
            () = until(self.attempt) => End::AttemptTimedOut,
        }
    }
}
