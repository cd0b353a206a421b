//! The machine's clock, which is read here alone, and a store's.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use outlast_core::{Clock, Store, Timestamp};

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

/// The clock of a store once it is open, and of this machine until then: for times that other machines compare with theirs.
#[derive(Clone, Default)]
pub struct StoreClock(Arc<OnceLock<Arc<dyn Store>>>);

impl StoreClock {
    /// Tells the time of this store from now on; the first store counts.
    pub fn follow(&self, store: &Arc<dyn Store>) {
        let _ = self.0.set(Arc::clone(store));
    }
}

impl Clock for StoreClock {
    fn now(&self) -> Timestamp {
        self.0.get().map_or_else(|| SystemClock.now(), |store| store.now())
    }
}

impl fmt::Debug for StoreClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoreClock")
    }
}
