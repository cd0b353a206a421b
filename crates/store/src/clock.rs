//! The machine's clock: the one place that reads it.

use std::time::{SystemTime, UNIX_EPOCH};

use outlast_core::{Clock, Timestamp};

/// Tells the machine's wall-clock time.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the store owns the clock, and this is it")]
    fn now(&self) -> Timestamp {
        // A machine whose clock stands before 1970 gets the epoch: wrong, but ordered and without a panic.
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(0).after(since_epoch)
    }
}
