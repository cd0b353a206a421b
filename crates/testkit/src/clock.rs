//! Clocks that tests move: one by hand, one that follows tokio's paused time.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use outlast_core::{Clock, Timestamp};
use tokio::time::Instant;

/// Where test clocks start unless told otherwise: 2026-11-15T02:21:00.000Z.
pub const START: Timestamp = Timestamp::from_millis(1_794_709_260_000);

/// Stands still until it is moved.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// Shows `now` until it is moved.
    pub fn new(now: Timestamp) -> Self {
        Self(AtomicI64::new(now.as_millis()))
    }

    /// Shows `now` from here on; it may lie behind, as after a clock that was set back.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_millis(), Ordering::SeqCst);
    }

    /// Goes forward by `duration`.
    pub fn advance(&self, duration: Duration) {
        self.set(self.now().after(duration));
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new(START)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

/// Goes with tokio's time, so that a test that pauses or advances that moves this too.
#[derive(Debug)]
pub struct TokioClock {
    base: Timestamp,
    started: Instant,
    millis_ahead: AtomicI64,
}

impl TokioClock {
    /// Shows `base` now.
    pub fn new(base: Timestamp) -> Self {
        Self { base, started: Instant::now(), millis_ahead: AtomicI64::new(0) }
    }

    /// Is set forward while tokio's time stands.
    pub fn set_forward(&self, by: Duration) {
        let millis = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.millis_ahead.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        let elapsed = self.base.after(self.started.elapsed());
        Timestamp::from_millis(elapsed.as_millis() + self.millis_ahead.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_by_hand() {
        let clock = ManualClock::default();
        assert_eq!(clock.now(), START);
        clock.advance(Duration::from_millis(1500));
        assert_eq!(clock.now().since(START), Duration::from_millis(1500));
        clock.set(Timestamp::from_millis(7));
        assert_eq!(clock.now(), Timestamp::from_millis(7));
    }

    #[tokio::test(start_paused = true)]
    async fn a_tokio_clock_follows_paused_time() {
        let clock = TokioClock::new(START);
        assert_eq!(clock.now(), START);
        tokio::time::advance(Duration::from_secs(3600)).await;
        assert_eq!(clock.now(), START.after(Duration::from_secs(3600)));
    }
}
