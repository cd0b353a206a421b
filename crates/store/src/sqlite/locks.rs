//! Whether locks keep processes apart in a folder: some network and container filesystems say yes and do not.
//!
//! One process holds both kinds a store rests on, another tries to take them. Within one process it could not be told.

use std::fs::File;
use std::path::Path;

use outlast_core::StoreError;
use rusqlite::{Connection, ErrorCode};

use super::fault::{Fault, of_io};
use super::open::{Access, Existing, connect, make_private_file};

const FILE: &str = "lock";
const DATABASE: &str = "lock.db";

/// Locks that are held until dropped.
pub struct HeldLocks {
    _file: File,
    _database: Connection,
}

/// Holds a lock on a file, and SQLite's write lock, in an empty folder made for this.
pub fn hold_locks(dir: &Path) -> Result<HeldLocks, StoreError> {
    let (path, database) = (dir.join(FILE), dir.join(DATABASE));
    let made =
        |path: &Path| make_private_file(path, Existing::Refuse).map_err(|error| of_io(path, error));
    let file = made(&path)?;
    file.try_lock().map_err(|error| of_io(&path, error.into()))?;
    drop(made(&database)?);
    let connection = connect(&database, Access::Write)?;
    let begin = "PRAGMA journal_mode = WAL; CREATE TABLE t (x); BEGIN IMMEDIATE;";
    connection.execute_batch(begin).map_err(Fault::Sql)?;
    Ok(HeldLocks { _file: file, _database: connection })
}

/// Which of the locks another process holds could be taken all the same; none where locks work.
pub fn locks_that_give_way(dir: &Path) -> Result<Vec<&'static str>, StoreError> {
    let (path, database) = (dir.join(FILE), dir.join(DATABASE));
    let mut given = Vec::new();
    let file = File::options().write(true).open(&path).map_err(|error| of_io(&path, error))?;
    if file.try_lock().is_ok() {
        given.push("file locks");
    }
    let connection = connect(&database, Access::Write)?;
    connection.busy_timeout(std::time::Duration::ZERO).map_err(Fault::Sql)?;
    match connection.execute_batch("BEGIN IMMEDIATE") {
        Ok(()) => given.push("SQLite's locks"),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {}
        Err(error) => return Err(Fault::Sql(error).into()),
    }
    Ok(given)
}
