//! The time of all runs: real, or advanced by hand.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// A clock that starts at zero.
pub(crate) struct Clock {
    started: Instant,
    /// The current time of a virtual clock.
    hand: Option<watch::Sender<Duration>>,
    speed: f64,
}

impl Clock {
    pub(crate) fn real(speed: f64) -> Self {
        Self { started: Instant::now(), hand: None, speed }
    }

    pub(crate) fn manual(speed: f64) -> Self {
        Self { hand: Some(watch::Sender::new(Duration::ZERO)), ..Self::real(speed) }
    }

    pub(crate) fn now(&self) -> Duration {
        self.hand.as_ref().map_or_else(|| self.started.elapsed(), |hand| *hand.borrow())
    }

    /// Returns a delay of `ms` milliseconds divided by the speed.
    pub(crate) fn scaled(&self, ms: f64) -> Duration {
        // A huge delay divided by a tiny speed overflows a Duration; a century is long enough.
        Duration::from_secs_f64((ms / 1_000.0 / self.speed).min(3e9))
    }

    pub(crate) fn speed(&self) -> f64 {
        self.speed
    }

    pub(crate) async fn sleep_until(&self, at: Duration) {
        match &self.hand {
            None => tokio::time::sleep_until(self.started + at).await,
            Some(hand) => {
                // The sender exists as long as `self`, so this cannot fail before that time.
                _ = hand.subscribe().wait_for(|now| *now >= at).await;
            }
        }
    }

    /// Advances a virtual clock; returns false for a real one, which cannot be advanced.
    pub(crate) fn advance(&self, by: Duration) -> bool {
        let Some(hand) = &self.hand else { return false };
        hand.send_modify(|now| *now = now.saturating_add(by));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_virtual_clock_moves_only_by_hand() {
        let clock = Clock::manual(1.0);
        assert_eq!(clock.now(), Duration::ZERO);
        let sleeping = clock.sleep_until(Duration::from_secs(5));
        let waking = async {
            sleeping.await;
            clock.now()
        };
        let moving = async {
            for _ in 0..6 {
                clock.advance(Duration::from_secs(1));
                tokio::task::yield_now().await;
            }
        };
        let waking = tokio::time::timeout(Duration::from_secs(5), waking);
        let (woken_at, ()) = tokio::join!(waking, moving);
        let woken_at = woken_at.unwrap();
        assert!(woken_at >= Duration::from_secs(5));
        assert!(!Clock::real(1.0).advance(Duration::from_secs(1)));
    }
}
