//! The machine's clock, which is read only here, and the clock of a store.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use outlast_core::{Clock, Store, Timestamp};

/// The machine's wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the store owns the clock, and this is it")]
    fn now(&self) -> Timestamp {
        // If the machine's clock is before 1970, this returns the epoch: wrong, but ordered and without a panic.
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(0).after(since_epoch)
    }
}

/// The store's clock once the store is open, and this machine's clock until then. Use it for times that other machines
/// compare with their own.
#[derive(Clone, Default)]
pub struct StoreClock(Arc<OnceLock<Arc<dyn Store>>>);

impl StoreClock {
    /// Reads the time from this store from now on. Only the first store counts.
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
