//! Inspects a store from outside, for `outlast doctor`. It creates, migrates and rescues nothing.

use std::fs;
use std::path::Path;
use std::time::Duration;

use outlast_core::StoreError;
use rusqlite::TransactionBehavior;

use super::fault::Fault;
use super::liveness::Liveness;
use super::mark::{self, SecondMark};
use super::open::{self, ConnectionPurpose};
use super::{SqliteFile, sql, worker_list};
use crate::{count, unavailable};

/// The maximum time that an inspection waits for the lock of a process that is writing.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(1);

/// The result of an inspection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// The schema version of the file.
    pub schema: u32,
    /// The schema version that this program writes. Opening an older file updates it to this version.
    pub newest_schema: u32,
    /// Jobs that have not ended.
    pub unfinished: u64,
    /// Workers on this machine that hold their lock.
    pub live_workers: u32,
}

/// Returns true if there is a store at `path`. A log without its database is an error, because SQLite would fill a new store
/// from it.
pub fn is_there(path: &Path) -> Result<bool, StoreError> {
    let is_there = fs::exists(path).map_err(unavailable)?;
    if !is_there {
        open::refuse_orphaned_log(path)?;
    }
    Ok(is_there)
}

/// Inspects the store at `path`; returns `None` if the file does not exist. Takes the write lock briefly to verify that it is
/// available, and writes nothing.
pub fn inspect<'a>(store: impl Into<SqliteFile<'a>>) -> Result<Option<Inspection>, StoreError> {
    let store = store.into();
    match is_there(store.path)? {
        true => Ok(Some(look(store)?)),
        false => Ok(None),
    }
}

fn look(store: SqliteFile<'_>) -> Result<Inspection, Fault> {
    let path = store.path;
    let marked = mark::peek(path);
    let mut connection = open::connect(path, ConnectionPurpose::Write)?;
    connection.busy_timeout(MAX_LOCK_WAIT)?;
    open::refuse_readonly(&connection, path)?;
    let moment = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let (schema, newest_schema) = open::schema(&moment, path)?;
    if schema > 0 {
        mark::refuse_outdated(&moment, marked)?;
        let found = mark::read_reached(&moment)?;
        let second = found.and_then(|found| SecondMark::of(store)?.read(found.store));
        mark::refuse_outdated(&moment, second)?;
    }
    let mut found = Inspection { schema, newest_schema, unfinished: 0, live_workers: 0 };
    if schema == newest_schema {
        let unfinished = sql!(sqlite::inspect::look);
        found.unfinished = sql::value::<i64>(&moment, unfinished, [])?.unsigned_abs();
        let liveness = Liveness::of_database(path);
        let listed = worker_list::all(&moment)?;
        found.live_workers = count(listed.iter().filter(|id| liveness.is_alive(id)).count());
    }
    Ok(found)
}

/// The version of the bundled SQLite.
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}
