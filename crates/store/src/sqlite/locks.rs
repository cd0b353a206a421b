//! Checks that locks in a folder exclude other processes. Some network and container file systems grant a lock twice.
//!
//! The check needs two processes: one holds both kinds of lock that a store needs, and the other tries to take them.

use std::fs::File;
use std::path::Path;

use outlast_core::StoreError;
use rusqlite::{Connection, ErrorCode};

use super::fault::{Fault, file_error};
use super::files::make_private_file;
use super::open::{ConnectionPurpose, connect};

const FILE: &str = "lock";
const DATABASE: &str = "lock.db";

/// Locks that are held until this is dropped.
pub struct HeldLocks {
    _file: File,
    _database: Connection,
}

/// Locks a file, and takes SQLite's write lock, in an empty folder created for this check.
pub fn hold_locks(dir: &Path) -> Result<HeldLocks, StoreError> {
    let (path, database) = (dir.join(FILE), dir.join(DATABASE));
    let file = make_private_file(&path).map_err(file_error(&path))?;
    file.try_lock().map_err(|error| file_error(&path)(error.into()))?;
    make_private_file(&database).map_err(file_error(&database))?;
    let connection = connect(&database, ConnectionPurpose::Write)?;
    let begin = "PRAGMA journal_mode = WAL; CREATE TABLE t (x); BEGIN IMMEDIATE;";
    connection.execute_batch(begin).map_err(Fault::Sql)?;
    Ok(HeldLocks { _file: file, _database: connection })
}

/// Returns the locks that this process could take although another process holds them. Returns none if locks work.
pub fn locks_that_give_way(dir: &Path) -> Result<Vec<&'static str>, StoreError> {
    let (path, database) = (dir.join(FILE), dir.join(DATABASE));
    let mut given = Vec::new();
    let file = File::options().write(true).open(&path).map_err(file_error(&path))?;
    if file.try_lock().is_ok() {
        given.push("file locks");
    }
    let connection = connect(&database, ConnectionPurpose::Write)?;
    connection.busy_timeout(std::time::Duration::ZERO).map_err(Fault::Sql)?;
    match connection.execute_batch("BEGIN IMMEDIATE") {
        Ok(()) => given.push("SQLite's locks"),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {}
        Err(error) => return Err(Fault::Sql(error).into()),
    }
    Ok(given)
}
