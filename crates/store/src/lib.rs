//! Where jobs live: adapters of [`outlast_core::Store`].
//!
//! They lock, load, ask [`outlast_core::rules`] and save; none of them decides anything. The memory store is
//! the reference, the SQLite store is what people run. One suite, `outlast_testkit::store_suite`, holds both.

mod clock;
mod memory;
mod postgres;
mod sqlite;

pub use clock::SystemClock;
pub use memory::MemoryStore;
pub use postgres::{Judgement, PostgresOptions, PostgresStore};
pub use sqlite::SqliteStore;
pub use sqlite::{
    HeldLocks, Inspection, hold_locks, inspect, is_there, locks_that_give_way, sqlite_version,
};
pub use sqlite::{Restore, RestoreError, Restored, RestoredJob};
