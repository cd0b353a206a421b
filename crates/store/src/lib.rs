//! Adapters of [`outlast_core::Store`]: the databases that hold the jobs.
//!
//! They lock, load, ask [`outlast_core::rules`] and save; none of them makes a decision. The memory store is the reference;
//! users run the SQLite or the PostgreSQL store. One suite, `outlast_testkit::store_suite`, tests all of them.

#[macro_use]
mod statements;
mod clock;
mod columns;
mod copy_side;
mod journal_columns;
mod ledger_columns;
mod listing;
mod memory;
mod postgres;
mod problems;
mod restored;
mod sqlite;
mod tables;
mod titles;
mod transfer;

pub use clock::{StoreClock, SystemClock};
pub use copy_side::CopyRefusal;
pub use memory::MemoryStore;
pub use postgres::{AddressError, ConnectionDefaults, with_defaults, without_password};
pub use postgres::{
    ConnectionLimits, Connections, DatabaseInspection, Judgement, PostgresOptions, PostgresStore,
    WakeupMode,
};
pub use restored::{RestoreError, Restored, RestoredJob};
pub use sqlite::{
    HeldLocks, Inspection, hold_locks, inspect, is_there, locks_that_give_way, sqlite_version,
};
pub use sqlite::{Restore, SqliteFile, SqliteStore};
pub use transfer::{CopyCounts, CopyError, CopyPass, StorePlace, copy};

use outlast_core::{BoxError, Cursor, StoreError};

/// Returns the first `limit` of these numbered items, and the start of the next page if there are more.
fn page<T, E>(
    items: impl IntoIterator<Item = Result<(u64, T), E>>,
    limit: u32,
) -> Result<(Vec<T>, Option<Cursor>), E> {
    let (mut page, mut last) = (Vec::new(), None);
    for item in items {
        let (seq, item) = item?;
        if page.len() == limit as usize {
            return Ok((page, last));
        }
        page.push(item);
        last = Some(Cursor(seq));
    }
    Ok((page, None))
}

/// An error of the store itself, not a refusal.
fn unavailable(why: impl Into<BoxError>) -> StoreError {
    StoreError::Unavailable(why.into())
}

/// Copies an error, so that every call of a failed transaction receives one.
fn copy_error(error: &StoreError) -> StoreError {
    match error {
        StoreError::Full => StoreError::Full,
        StoreError::Corrupt { at } => StoreError::Corrupt { at: at.clone() },
        StoreError::Outdated { why } => StoreError::Outdated { why: why.clone() },
        StoreError::Unavailable(source) => unavailable(source.to_string()),
        StoreError::Unconfirmed(source) => StoreError::Unconfirmed(source.to_string().into()),
        StoreError::InsertUnconfirmed { job, source } => {
            StoreError::InsertUnconfirmed { job: *job, source: source.to_string().into() }
        }
        // A refusal affects only its own call, never the transaction.
        refused => unavailable(refused.to_string()),
    }
}

/// A number of items in the type that the port uses.
fn count(things: usize) -> u32 {
    u32::try_from(things).unwrap_or(u32::MAX)
}
