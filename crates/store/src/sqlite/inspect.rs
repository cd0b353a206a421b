//! Looking at a store from outside: nothing is made, migrated or rescued. For people who ask what is wrong.

use std::fs;
use std::path::Path;
use std::time::Duration;

use outlast_core::StoreError;
use rusqlite::{MAIN_DB, TransactionBehavior};

use super::fault::{Fault, unavailable};
use super::liveness::{Liveness, Sign};
use super::open::{self, Access};
use super::{mark, workers};

/// Whoever looks does not wait long for those who work.
const PATIENCE: Duration = Duration::from_secs(1);

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// The schema of the file.
    pub schema: u32,
    /// The schema this program writes; an older file is brought up to it when it is opened.
    pub newest_schema: u32,
    /// Jobs that have not ended.
    pub unfinished: u64,
    /// Workers that hold their lock, on this machine.
    pub live_workers: u32,
}

/// Whether there is a store at `path`. A log without its database is an error: a new store would be filled from it.
pub fn is_there(path: &Path) -> Result<bool, StoreError> {
    let is_there = fs::exists(path).map_err(unavailable)?;
    if !is_there {
        open::refuse_orphaned_log(path)?;
    }
    Ok(is_there)
}

/// Looks at the store at `path`; `None` when there is no such file. Takes the write lock for a moment, to see that it
/// can be had, and writes nothing.
pub fn inspect(path: &Path) -> Result<Option<Inspection>, StoreError> {
    if !is_there(path)? {
        return Ok(None);
    }
    let marked = mark::peek(path);
    let mut connection = open::connect(path, Access::Write)?;
    connection.busy_timeout(PATIENCE).map_err(Fault::Sql)?;
    if connection.is_readonly(MAIN_DB).map_err(Fault::Sql)? {
        return Err(unavailable(format!("{} cannot be written", path.display())));
    }
    let moment = connection.transaction_with_behavior(TransactionBehavior::Immediate);
    let moment = moment.map_err(Fault::Sql)?;
    let (schema, newest) = open::schema(&moment, path)?;
    let mut found = Inspection { schema, newest_schema: newest, unfinished: 0, live_workers: 0 };
    if schema > 0 {
        mark::refuse_outdated(&moment, marked)?;
    }
    if schema == newest {
        let unfinished = "SELECT count(*) FROM jobs WHERE ended_at IS NULL";
        let count = moment.query_row(unfinished, [], |row| row.get::<_, i64>(0));
        found.unfinished = u64::try_from(count.map_err(Fault::Sql)?).unwrap_or_default();
        let liveness = Liveness::new(open::directory_of(path).join("workers"));
        let listed = workers::listed(&moment)?;
        let alive = listed.iter().filter(|worker| liveness.sign(worker) == Sign::Alive).count();
        found.live_workers = u32::try_from(alive).unwrap_or(u32::MAX);
    }
    Ok(Some(found))
}

/// The version of SQLite that is built in.
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}
