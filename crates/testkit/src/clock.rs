//! Clocks for tests: one moved by hand, one that follows tokio's paused time.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use outlast_core::{Clock, Timestamp};
use tokio::time::Instant;

/// The default start of test clocks: 2026-11-15T02:21:00.000Z.
pub const START: Timestamp = Timestamp::from_millis(1_794_709_260_000);

/// A clock that only a test moves.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// Creates a clock that shows `now`.
    pub fn new(now: Timestamp) -> Self {
        Self(AtomicI64::new(now.as_millis()))
    }

    /// Sets the clock to `now`, which may be in the past.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_millis(), Ordering::SeqCst);
    }

    /// Advances the clock.
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

/// A clock that follows tokio's time, so a test that pauses or advances tokio's time moves it too.
#[derive(Debug)]
pub struct TokioClock {
    base: Timestamp,
    started: Instant,
    millis_ahead: AtomicI64,
}

impl TokioClock {
    /// Creates a clock that shows `base` now.
    pub fn new(base: Timestamp) -> Self {
        Self { base, started: Instant::now(), millis_ahead: AtomicI64::new(0) }
    }

    /// Sets the clock forward without moving tokio's time.
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
