//! Making files and connections: the one place that does, with the pragmas the promises rest on.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use outlast_core::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, MAIN_DB, OpenFlags, Transaction, TransactionBehavior};

use super::fault::{Fault, of_io, unavailable};
use super::mark;
use super::rows;
use super::write_lock::Gate;

/// Each brings the schema one number further; `PRAGMA user_version` counts those applied.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/1.sql"),
    include_str!("migrations/2.sql"),
    include_str!("migrations/3.sql"),
    include_str!("migrations/4.sql"),
];

/// Marks a database as ours: "outl".
const APPLICATION_ID: i64 = 0x6f75_746c;

/// How long SQLite itself waits for another process's lock.
const BUSY: Duration = Duration::from_secs(5);

/// What a connection is for.
#[derive(Clone, Copy)]
pub(super) enum Access {
    Write,
    Read,
    /// For a place that cannot be written, where SQLite could not make its working files. Only while there is no log.
    Immutable,
}

/// Opens an existing database file.
#[expect(clippy::disallowed_methods, reason = "this is where connections are made")]
pub(super) fn connect(path: &Path, access: Access) -> Result<Connection, Fault> {
    // Without CREATE, so that a file that went away is an error and not an empty second truth; without URI,
    // so that a path is a path.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match access {
        Access::Write | Access::Read => Connection::open_with_flags(path, flags)?,
        Access::Immutable => {
            let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
            Connection::open_with_flags(
                immutable_uri(path),
                flags | OpenFlags::SQLITE_OPEN_NO_MUTEX,
            )?
        }
    };
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(64);
    // A plan that looked at a bound value is made anew whenever the next value is bound, which cost a third of a
    // writer's time; ours are to depend on the statement alone.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    match access {
        Access::Write => connection.execute_batch(
            "PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -8000;",
        )?,
        // Few pages: each of several readers would keep megabytes of the last long report.
        Access::Read | Access::Immutable => {
            connection.execute_batch("PRAGMA query_only = ON; PRAGMA cache_size = -512;")?
        }
    }
    Ok(connection)
}

/// A path that SQLite takes for a file that does not change: it locks nothing and makes nothing beside it.
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

/// Opens an existing database to be read, also where nothing can be written, and says how it was opened.
pub(super) fn look(path: &Path) -> Result<(Connection, Access), StoreError> {
    refuse_directory(path)?;
    let open = |access| {
        let connection = connect(path, access)?;
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok((connection, access))
    };
    match open(Access::Read) {
        Err(Fault::Sql(error)) if needs_its_files(&error) => {}
        opened => return opened.map_err(StoreError::from),
    }
    if has_log(path) {
        let path = path.display();
        return Err(unavailable(format!(
            "{path} has changes in its -wal file, which can be read only where files can be written"
        )));
    }
    open(Access::Immutable).map_err(StoreError::from)
}

/// Whether SQLite failed to make, or to write, the files it needs beside a database.
fn needs_its_files(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied)
    )
}

/// Checks whose database it is, and brings its schema up to date. The gate is left out where no other process is there.
pub(super) fn prepare(path: &Path, gate: Option<&Gate>) -> Result<Connection, StoreError> {
    let mut connection = connect(path, Access::Write)?;
    // SQLite opens what it may only read without a word, and would refuse the first write.
    if connection.is_readonly(MAIN_DB).map_err(Fault::Sql)? {
        return Err(unavailable(format!("{} cannot be written", path.display())));
    }
    migrate(&mut connection, path, gate)?;
    mark::name(&connection)?;
    Ok(connection)
}

/// Makes the directory (0700) and an empty database file (0600) where there are none.
pub(super) fn make_files(path: &Path) -> Result<(), StoreError> {
    make_private_dir(&directory_of(path))?;
    refuse_directory(path)?;
    // Closing any handle on a database drops the whole process's locks on it, those of SQLite included; so an
    // existing file is never opened here, and a new one is closed before anybody else can find it.
    static MAKING: Mutex<()> = Mutex::new(());
    let _alone = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    // Looked for first: once the database is there, so may its log be.
    let orphan = refuse_orphaned_log(path);
    match make_private_file(path, Existing::Refuse) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        // A new database would be taken for the old one, and filled from its log.
        Ok(_) if orphan.is_err() => {
            fs::remove_file(path).map_err(|error| of_io(path, error))?;
            orphan
        }
        made => made.map(drop).map_err(|error| of_io(path, error)),
    }
}

fn refuse_directory(path: &Path) -> Result<(), StoreError> {
    if fs::metadata(path).is_ok_and(|found| found.is_dir()) {
        return Err(unavailable(format!("{} is a directory, not a database", path.display())));
    }
    Ok(())
}

/// Refuses a place where a database's log is; asked where the database itself is missing.
pub(super) fn refuse_orphaned_log(path: &Path) -> Result<(), StoreError> {
    if has_log(path) {
        let path = path.display();
        return Err(StoreError::Corrupt {
            at: format!("{path}, gone while its -wal file is there"),
        });
    }
    Ok(())
}

/// Whether there is something in the database's write-ahead log.
fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    fs::metadata(log).is_ok_and(|log| log.len() > 0)
}

/// The directory a database lives in, with what belongs to it.
pub(super) fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        Some(_) | None => PathBuf::from("."),
    }
}

/// Makes a directory only its owner can enter, whatever the umask; leaves an existing one as it is.
pub(super) fn make_private_dir(dir: &Path) -> Result<(), StoreError> {
    if dir.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir).map_err(|error| of_io(dir, error))?;
    restrict(dir, 0o700).map_err(|error| of_io(dir, error))
}

/// What to do about a file that is there already.
#[derive(Clone, Copy)]
pub(super) enum Existing {
    Refuse,
    Open,
}

/// Makes a file only its owner can read, whatever the umask.
pub(super) fn make_private_file(path: &Path, existing: Existing) -> io::Result<fs::File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    match existing {
        Existing::Refuse => options.create_new(true),
        Existing::Open => options.create(true).truncate(false),
    };
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    match existing {
        Existing::Refuse => restrict(path, 0o600)?,
        Existing::Open => {}
    }
    Ok(file)
}

#[cfg(unix)]
fn restrict(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))
}

#[cfg(not(unix))]
fn restrict(_path: &Path, _mode: u32) -> io::Result<()> {
    Ok(())
}

/// The schema of a database that is ours, and the newest one.
pub(super) fn schema(moment: &Transaction<'_>, path: &Path) -> Result<(u32, u32), StoreError> {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Ok((number(applied(moment, path)?), number(MIGRATIONS.len())))
}

fn migrate(
    connection: &mut Connection,
    path: &Path,
    gate: Option<&Gate>,
) -> Result<(), StoreError> {
    let snapshot = connection.unchecked_transaction().map_err(Fault::Sql)?;
    if applied(&snapshot, path)? == MIGRATIONS.len() {
        return Ok(());
    }
    drop(snapshot);
    // Two processes that make the same database at once would meet a lock SQLite does not wait for.
    let _held = gate.and_then(Gate::pass);
    migrate_alone(connection, path)
}

fn migrate_alone(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    // Counts only for a database without a page yet, which the next line gives its first one. What is removed later
    // can then be given back in small steps.
    connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL").map_err(Fault::Sql)?;
    let mode: String = connection
        .query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
        .map_err(Fault::Sql)?;
    if mode != "wal" {
        let path = path.display();
        return Err(unavailable(format!("{path} cannot have a write-ahead log, only {mode}")));
    }
    let migration =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(Fault::Sql)?;
    let from = applied(&migration, path)?;
    let apply = || {
        for statements in MIGRATIONS.iter().skip(from) {
            migration.execute_batch(statements)?;
        }
        migration.pragma_update(None, "application_id", APPLICATION_ID)?;
        migration.pragma_update(None, "user_version", rows::signed(MIGRATIONS.len() as u64))
    };
    apply().map_err(Fault::Sql)?;
    migration.commit().map_err(Fault::Sql)?;
    Ok(())
}

/// How many migrations the database has seen; refuses one that is not ours or newer than we are.
///
/// Asks in a transaction, because one that is just being made would look half like another program's.
fn applied(moment: &Transaction<'_>, path: &Path) -> Result<usize, StoreError> {
    let number = |pragma: &str| -> Result<i64, Fault> {
        Ok(moment.query_row(pragma, [], |row| row.get(0))?)
    };
    let version = number("PRAGMA user_version")?;
    let ours = number("PRAGMA application_id")? == APPLICATION_ID;
    if !ours && number("SELECT count(*) FROM sqlite_schema")? > 0 {
        return Err(unavailable(format!("{} is another program's database", path.display())));
    }
    let newer = StoreError::Newer { schema: u32::try_from(version).unwrap_or(u32::MAX) };
    usize::try_from(version).ok().filter(|version| *version <= MIGRATIONS.len()).ok_or(newer)
}
