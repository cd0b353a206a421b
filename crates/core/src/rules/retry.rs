//! Retries: whether another attempt follows a failed one, and how long the job waits for it.

use std::time::Duration;

use crate::rules::life_ends_at;
use crate::{Job, Timestamp};

/// The growth of the waits between attempts.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    pub base: Duration,
    /// The random part of the waits, from 0 to 1: it spreads jobs that failed together.
    pub jitter: f64,
}

impl RetryPolicy {
    /// The longest wait, even if the provider asks for more.
    const MAX_WAIT: Duration = Duration::from_secs(300);

    /// Returns the wait for the next attempt of a job whose attempt has failed; `None` if it has no attempt or no
    /// time left.
    pub(super) fn next_wait(
        self,
        job: &Job,
        asked_for: Option<Duration>,
        now: Timestamp,
    ) -> Option<Duration> {
        let failures = u32::try_from(job.failures.len()).unwrap_or(u32::MAX);
        let wait = self.wait(failures, asked_for);
        let time_left = life_ends_at(job).is_none_or(|end| now.after(wait) < end);
        (failures < job.new.max_failures && time_left).then_some(wait)
    }

    /// Returns the wait after this many earlier failures: doubled each time, plus up to half of that.
    pub(super) fn wait(self, failures: u32, asked_for: Option<Duration>) -> Duration {
        let grown = self.base.saturating_mul(1 << failures.min(16)).min(Self::MAX_WAIT);
        let spread = grown.mul_f64(1.0 + self.jitter.clamp(0.0, 1.0) / 2.0);
        spread.max(asked_for.unwrap_or(Duration::ZERO)).min(Self::MAX_WAIT)
    }
}
