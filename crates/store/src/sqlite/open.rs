//! Opens databases. Only this file creates connections, with the pragmas that durability depends on.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use outlast_core::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags, Transaction, TransactionBehavior};

use super::fault::{Fault, file_error};
use super::files::{beside, directory_of, make_private_dir, make_private_file};
use super::mark;
use super::write_lock::WriteLock;
use crate::{columns, count, unavailable};

/// Each migration raises the schema by one version; `PRAGMA user_version` counts the applied ones.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/1.sql"),
    include_str!("migrations/2.sql"),
    include_str!("migrations/3.sql"),
    include_str!("migrations/4.sql"),
    include_str!("migrations/5.sql"),
    include_str!("migrations/6.sql"),
    include_str!("migrations/7.sql"),
    include_str!("migrations/8.sql"),
    include_str!("migrations/9.sql"),
    include_str!("migrations/10.sql"),
    include_str!("migrations/11.sql"),
    include_str!("migrations/12.sql"),
    include_str!("migrations/13.sql"),
    include_str!("migrations/14.sql"),
    include_str!("migrations/15.sql"),
    include_str!("migrations/16.sql"),
    include_str!("migrations/17.sql"),
];

/// Marks a database as one of outlast: "outl".
const APPLICATION_ID: i64 = 0x6f75_746c;

/// The time for which SQLite itself waits for another process's lock.
const BUSY: Duration = Duration::from_secs(5);

/// The purpose of a connection.
#[derive(Clone, Copy)]
pub(super) enum ConnectionPurpose {
    Write,
    Read,
    /// For a directory that is not writable, in which SQLite could not create its working files. Only while there is no log.
    Immutable,
}

/// Opens an existing database file.
#[expect(clippy::disallowed_methods, reason = "this is where connections are made")]
pub(super) fn connect(path: &Path, access: ConnectionPurpose) -> Result<Connection, Fault> {
    // Without CREATE, so that a missing file is an error and not a new empty database. Without URI, so that no character of a
    // path has a special meaning.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match access {
        ConnectionPurpose::Write | ConnectionPurpose::Read => {
            Connection::open_with_flags(path, flags)?
        }
        ConnectionPurpose::Immutable => {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
            Connection::open_with_flags(
                immutable_uri(path),
                flags | OpenFlags::SQLITE_OPEN_NO_MUTEX,
            )?
        }
    };
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(64);
    // Without this, a plan that depends on a bound value is prepared again for the next value. That cost a third of a
    // writer's time.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    match access {
        ConnectionPurpose::Write => connection.execute_batch(
            "PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -8000;",
        )?,
        // A small cache: otherwise each of several readers would keep megabytes of the last long report.
        ConnectionPurpose::Read | ConnectionPurpose::Immutable => {
            connection.execute_batch("PRAGMA query_only = ON; PRAGMA cache_size = -512;")?
        }
    }
    Ok(connection)
}

/// Returns a URI which declares that the file does not change: SQLite then locks nothing and creates no file next to it.
fn immutable_uri(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                uri.push(char::from(*byte));
            }
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri + "?immutable=1"
}

/// Opens an existing database for reading, even if nothing is writable, and returns the access mode.
pub(super) fn look(path: &Path) -> Result<(Connection, ConnectionPurpose), Fault> {
    refuse_directory(path)?;
    let open = |access| {
        let connection = connect(path, access)?;
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok((connection, access))
    };
    match open(ConnectionPurpose::Read) {
        Err(Fault::Sql(error)) if needs_its_files(&error) => {}
        opened => return opened,
    }
    if has_log(path) {
        let why = "has changes in its -wal file, which can be read only where files can be written";
        return Err(unavailable(format!("{} {why}", path.display())).into());
    }
    open(ConnectionPurpose::Immutable)
}

/// Returns true if SQLite failed to create or write the files that it needs next to a database.
fn needs_its_files(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied)
    )
}

/// Opens a database for writing and updates its schema. Pass no lock if no other process can have the database open.
pub(super) fn prepare(path: &Path, lock: Option<&WriteLock>) -> Result<Connection, Fault> {
    let mut connection = connect(path, ConnectionPurpose::Write)?;
    refuse_readonly(&connection, path)?;
    migrate(&mut connection, path, lock)?;
    mark::give_number(&connection)?;
    Ok(connection)
}

/// Refuses a read-only file. SQLite opens such a file without an error, and would refuse the first write.
pub(super) fn refuse_readonly(connection: &Connection, path: &Path) -> Result<(), Fault> {
    if connection.is_readonly(MAIN_DB)? {
        return Err(unavailable(format!("{} cannot be written", path.display())).into());
    }
    Ok(())
}

/// Creates the directory (0700) and an empty database file (0600) if they do not exist.
pub(super) fn make_files(path: &Path) -> Result<(), StoreError> {
    make_private_dir(&directory_of(path))?;
    refuse_directory(path)?;
    // Closing any handle on a database drops all locks of this process on it, including SQLite's. So an existing file is
    // never opened here, and a new one is closed before another thread can find it.
    static MAKING: Mutex<()> = Mutex::new(());
    let _alone = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    // Check this first: as soon as the database exists, its log may exist too.
    let orphan = refuse_orphaned_log(path);
    match make_private_file(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        // SQLite would mistake a new database for the old one and fill it from the log.
        Ok(_) if orphan.is_err() => {
            fs::remove_file(path).map_err(file_error(path))?;
            orphan
        }
        made => made.map(drop).map_err(file_error(path)),
    }
}

fn refuse_directory(path: &Path) -> Result<(), StoreError> {
    if path.is_dir() {
        return Err(unavailable(format!("{} is a directory, not a database", path.display())));
    }
    Ok(())
}

/// Refuses a path with the log of a database. Called if the database itself is missing.
pub(super) fn refuse_orphaned_log(path: &Path) -> Result<(), StoreError> {
    if has_log(path) {
        let at = format!("{}, gone while its -wal file is there", path.display());
        return Err(StoreError::Corrupt { at });
    }
    Ok(())
}

/// Returns true if the database's write-ahead log is not empty.
fn has_log(path: &Path) -> bool {
    fs::metadata(beside(path, "-wal")).is_ok_and(|log| log.len() > 0)
}

/// The schema version of a database of outlast, and the newest version.
pub(super) fn schema(moment: &Transaction<'_>, path: &Path) -> Result<(u32, u32), Fault> {
    Ok((count(apply(moment, path)?), count(MIGRATIONS.len())))
}

fn migrate(
    connection: &mut Connection,
    path: &Path,
    lock: Option<&WriteLock>,
) -> Result<(), Fault> {
    if apply(&connection.unchecked_transaction()?, path)? == MIGRATIONS.len() {
        return Ok(());
    }
    // Two processes that create the same database at the same time would meet a lock for which SQLite does not wait.
    let _turn = lock.and_then(WriteLock::wait);
    // Affects only a database without pages; the next line creates its first page. The file can then be shrunk later in small
    // steps.
    connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL")?;
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        let path = path.display();
        let why = format!("{path} cannot have a write-ahead log, only {mode}");
        return Err(unavailable(why).into());
    }
    let migration = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for statements in MIGRATIONS.iter().skip(apply(&migration, path)?) {
        migration.execute_batch(statements)?;
    }
    migration.pragma_update(None, "application_id", APPLICATION_ID)?;
    migration.pragma_update(None, "user_version", columns::to_signed(MIGRATIONS.len() as u64))?;
    Ok(migration.commit()?)
}

/// Returns the number of migrations that the database has had. Refuses a database of another program or of a newer version.
///
/// Reads in a transaction, because a database that another process is creating would look like another program's.
fn apply(moment: &Transaction<'_>, path: &Path) -> Result<usize, Fault> {
    let number = |pragma: &str| moment.query_row(pragma, [], |row| row.get::<_, i64>(0));
    let version = number("PRAGMA user_version")?;
    let ours = number("PRAGMA application_id")? == APPLICATION_ID;
    if !ours && number("SELECT count(*) FROM sqlite_schema")? > 0 {
        let why = format!("{} is another program's database", path.display());
        return Err(unavailable(why).into());
    }
    let applied = usize::try_from(version).ok().filter(|version| *version <= MIGRATIONS.len());
    let newer = StoreError::Newer { schema: u32::try_from(version).unwrap_or(u32::MAX) };
    applied.ok_or(newer.into())
}

/// Creates a new database, for tests of statements.
#[cfg(test)]
pub(super) fn made_for_test(dir: &tempfile::TempDir) -> Connection {
    let path = dir.path().join("jobs.db");
    make_files(&path).unwrap();
    prepare(&path, None).unwrap()
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    /// No character of a path has a special meaning, and no file is created next to a file that is read as it is.
    #[test]
    fn a_file_of_any_name_is_read_from_a_read_only_folder() {
        let dir = tempfile::tempdir().unwrap();
        drop(made_for_test(&dir));
        for name in ["a b?mode=memory&x#y%41.db", "\u{e4}.db"] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(name);
            fs::copy(dir.path().join("jobs.db"), &path).unwrap();
            let connection = connect(&path, ConnectionPurpose::Immutable).unwrap();
            let read = connection.query_row("SELECT count(*) FROM jobs", [], |row| row.get(0));
            assert_eq!(read, Ok(0_i64), "{name}");
            assert!(connection.is_readonly(MAIN_DB).unwrap(), "{name}");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "{name}");
        }
    }

    #[test]
    fn what_sqlite_says_where_it_can_make_no_files_is_known() {
        for (code, needs) in [
            (ffi::SQLITE_CANTOPEN, true),
            (ffi::SQLITE_READONLY, true),
            (ffi::SQLITE_PERM, true),
            (ffi::SQLITE_CORRUPT, false),
            (ffi::SQLITE_BUSY, false),
        ] {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            assert_eq!(needs_its_files(&error), needs, "{code}");
        }
    }
}
