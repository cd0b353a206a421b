//! Records the store's latest state in a small file next to the database. A database that is behind this mark is an earlier
//! copy.
//!
//! The file holds the store's id and the number of a durable change, at most a few seconds old. It is written without a
//! flush: a mark that is too low only misses the latest changes. Every process that may write to the store holds a shared
//! lock on this file. A restore takes an exclusive lock, and so knows whether the store is in use.
//!
//! A second file with the same content is in the user's state directory, named after the store's id and the database's path.
//! It stays in place when the whole directory of the database is rolled back. A database at another path has no second file.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use outlast_core::{Rev, StoreError};
use rusqlite::Connection;

use super::fault::{Fault, file_error};
use super::files::{beside, directory_of, make_private_dir, open_private_file};
use super::{SqliteFile, sql};
use crate::{columns, unavailable};

/// A store's id and its latest change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReachedChange {
    /// The id that distinguishes this store from others. Copies of a store have the same id.
    pub(super) store: i64,
    /// The number of the latest change.
    pub(super) rev: Rev,
}

/// The file, open and locked.
pub(super) struct LockedMarkFile {
    file: File,
    path: PathBuf,
    second: Option<SecondMark>,
}

impl LockedMarkFile {
    /// Takes a shared lock on the file, and creates it if it does not exist. Fails while the store is being restored.
    pub(super) fn open_shared(store: SqliteFile<'_>) -> Result<Self, StoreError> {
        let mark = Self::open(store)?;
        match mark.file.try_lock_shared() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(unavailable("it is being restored; try again when that is done"));
            }
            Err(TryLockError::Error(error)) => {
                let path = mark.path.display();
                tracing::warn!(%error, "no lock on {path}; a restore could not see this process");
            }
        }
        Ok(mark)
    }

    /// Takes an exclusive lock on the file. Returns `None` while another process uses the store.
    pub(super) fn alone(store: SqliteFile<'_>) -> Result<Option<Self>, StoreError> {
        let mark = Self::open(store)?;
        match mark.file.try_lock() {
            Ok(()) => Ok(Some(mark)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(file_error(&mark.path)(error)),
        }
    }

    fn open(store: SqliteFile<'_>) -> Result<Self, StoreError> {
        let path = path_of(store.path);
        let file = open_private_file(&path).map_err(file_error(&path))?;
        Ok(Self { file, path, second: SecondMark::of(store) })
    }

    /// Reads the file. Returns `None` if it is not readable.
    pub(super) fn read(&self) -> Option<ReachedChange> {
        let (mut file, mut text) = (&self.file, String::new());
        file.rewind().and_then(|()| file.read_to_string(&mut text)).ok()?;
        parse(&text)
    }

    /// Reads the second mark of the store in this database.
    pub(super) fn read_second(
        &self,
        connection: &Connection,
    ) -> Result<Option<ReachedChange>, Fault> {
        let Some(second) = &self.second else { return Ok(None) };
        Ok(read_reached(connection)?.and_then(|found| second.read(found.store)))
    }

    /// Records that the store has reached this state, unless it is known to be further.
    pub(super) fn write(&self, reached: ReachedChange) {
        if !is_ahead(self.read(), reached) {
            self.write_here(reached);
        }
        if let Some(second) = &self.second
            && !is_ahead(second.read(reached.store), reached)
        {
            second.write(reached);
        }
    }

    /// Records the store's state, whatever was recorded before.
    pub(super) fn reset(&self, reached: ReachedChange) {
        self.write_here(reached);
        if let Some(second) = &self.second {
            second.write(reached);
        }
    }

    fn write_here(&self, reached: ReachedChange) {
        let mut file = &self.file;
        let written = file.rewind().and_then(|()| file.write_all(text_of(reached).as_bytes()));
        if let Err(error) = written {
            tracing::debug!(%error, "{} could not be written", self.path.display());
        }
    }
}

/// The mark in the user's state directory.
pub(super) struct SecondMark {
    directory: PathBuf,
    /// Distinguishes databases at different paths.
    path_digest: String,
    is_reported: AtomicBool,
}

impl SecondMark {
    /// The second mark of this database; `None` if there is no state directory.
    pub(super) fn of(SqliteFile { path, state_dir }: SqliteFile<'_>) -> Option<Self> {
        let place = fs::canonicalize(directory_of(path)).ok()?.join(path.file_name()?);
        Some(Self {
            directory: state_dir?.join("marks"),
            path_digest: format!("{:016x}", digest(place.as_os_str().as_encoded_bytes())),
            is_reported: AtomicBool::new(false),
        })
    }

    /// Reads the mark of this store. Returns `None` if it is not readable.
    pub(super) fn read(&self, store: i64) -> Option<ReachedChange> {
        let reached = parse(&fs::read_to_string(self.path(store)).ok()?)?;
        (reached.store == store).then_some(reached)
    }

    fn write(&self, reached: ReachedChange) {
        let path = self.path(reached.store);
        let written = make_private_dir(&self.directory).map_err(io::Error::other).and_then(|()| {
            let mut file = open_private_file(&path)?;
            file.write_all(text_of(reached).as_bytes())
        });
        if let Err(error) = written
            && !self.is_reported.swap(true, Ordering::Relaxed)
        {
            let path = path.display();
            tracing::warn!(%error, "cannot write {path}: a rollback of the whole data directory would not be noticed");
        }
    }

    fn path(&self, store: i64) -> PathBuf {
        self.directory.join(format!("{store:016x}-{}", self.path_digest))
    }
}

/// FNV-1a: distinguishes the paths of one user's databases, and is the same in every version of this program.
fn digest(bytes: &[u8]) -> u64 {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// One line of a fixed length, written in a single call, so that no reader and no crash sees half of it.
fn text_of(reached: ReachedChange) -> String {
    format!("{:>20} {:>20}\n", reached.store, reached.rev.0)
}

fn is_ahead(known: Option<ReachedChange>, reached: ReachedChange) -> bool {
    known.is_some_and(|known| known.store == reached.store && known.rev >= reached.rev)
}

/// Reads the mark next to a database without creating it.
pub(super) fn peek(database: &Path) -> Option<ReachedChange> {
    parse(&fs::read_to_string(path_of(database)).ok()?)
}

/// Refuses a database that is an earlier state of a store. `marked` must have been read before `connection` reads.
pub(super) fn refuse_outdated(
    connection: &Connection,
    marked: Option<ReachedChange>,
) -> Result<(), StoreError> {
    let outdated = explain_outdated(connection, marked)?;
    outdated.map_or(Ok(()), |why| Err(StoreError::Outdated { why }))
}

/// Returns the reason why this database is an earlier state of a store, if it is.
pub(super) fn explain_outdated(
    connection: &Connection,
    marked: Option<ReachedChange>,
) -> Result<Option<String>, Fault> {
    if meta(connection, "backup")?.is_some() {
        return Ok(Some("it was made by `outlast store backup`".to_owned()));
    }
    let both = marked.zip(read_reached(connection)?);
    let behind =
        both.filter(|(marked, found)| found.store == marked.store && found.rev < marked.rev);
    Ok(behind.map(|(marked, found)| {
        format!("its latest change is number {}, and it had reached {}", found.rev.0, marked.rev.0)
    }))
}

/// The state of the database itself; `None` if it has no id yet.
pub(super) fn read_reached(connection: &Connection) -> Result<Option<ReachedChange>, Fault> {
    let store = meta(connection, "store")?;
    let rev = meta(connection, "rev")?.map(columns::rev);
    Ok(store.zip(rev).map(|(store, rev)| ReachedChange { store, rev }))
}

/// Assigns an id to a store that has none.
pub(super) fn give_number(connection: &Connection) -> Result<(), Fault> {
    if meta(connection, "store")?.is_none() {
        let insert = "INSERT INTO meta VALUES ('store', random()) ON CONFLICT DO NOTHING";
        connection.execute(insert, [])?;
    }
    Ok(())
}

fn meta(connection: &Connection, name: &str) -> Result<Option<i64>, Fault> {
    sql::optional(connection, "SELECT value FROM meta WHERE name = ?1", [name])
}

fn path_of(database: &Path) -> PathBuf {
    beside(database, ".mark")
}

fn parse(text: &str) -> Option<ReachedChange> {
    let mut words = text.split_whitespace();
    let (store, rev) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    words.next().is_none().then_some(ReachedChange { store, rev: Rev(rev) })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use tempfile::TempDir;

    use super::*;

    fn at(store: i64, rev: u64) -> ReachedChange {
        ReachedChange { store, rev: Rev(rev) }
    }

    #[test]
    fn a_mark_only_rises_and_begins_again_for_another_store() {
        let dir = TempDir::new().unwrap();
        let database = dir.path().join("jobs.db");
        let mark = LockedMarkFile::open_shared((&database).into()).unwrap();
        assert_eq!((mark.read(), peek(&database)), (None, None));
        let steps = [(at(-7, 5), at(-7, 5)), (at(-7, 3), at(-7, 5)), (at(9, 1), at(9, 1))];
        for (written, expected) in steps {
            mark.write(written);
            assert_eq!((mark.read(), peek(&database)), (Some(expected), Some(expected)));
        }
        mark.write(at(i64::MIN, u64::MAX >> 1));
        assert_eq!(mark.read(), Some(at(i64::MIN, u64::MAX >> 1)), "the longest numbers fit");
        for rubbish in ["", "\0\0\0", "5", "a b", "1 2 3"] {
            fs::write(path_of(&database), rubbish).unwrap();
            assert_eq!(mark.read(), None, "{rubbish:?}");
        }
    }

    #[test]
    fn the_second_mark_belongs_to_one_store_at_one_path() {
        let dir = TempDir::new().unwrap();
        let (database, state) = (dir.path().join("data/jobs.db"), dir.path().join("state"));
        fs::create_dir(dir.path().join("data")).unwrap();
        fs::create_dir(dir.path().join("moved")).unwrap();
        let moved = dir.path().join("moved/jobs.db");
        let marked = |path| SqliteFile { path, state_dir: Some(&state) };
        let mark = LockedMarkFile::open_shared(marked(&database)).unwrap();
        mark.write(at(7, 5));
        mark.write(at(7, 3));
        let read = |path, store| SecondMark::of(marked(path)).unwrap().read(store);
        assert_eq!(read(&database, 7), Some(at(7, 5)), "it only rises");
        assert_eq!((read(&database, 8), read(&moved, 7)), (None, None));
        mark.reset(at(7, 3));
        assert_eq!(read(&database, 7), Some(at(7, 3)));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let file = fs::read_dir(state.join("marks")).unwrap().next().unwrap().unwrap();
        assert_eq!((mode(&state.join("marks")), mode(&file.path())), (0o700, 0o600));
    }

    #[test]
    fn a_second_mark_that_cannot_be_written_stops_nothing() {
        let dir = TempDir::new().unwrap();
        let (database, state) = (dir.path().join("jobs.db"), dir.path().join("state"));
        fs::write(&state, "no directory").unwrap();
        let mark =
            LockedMarkFile::open_shared(SqliteFile { path: &database, state_dir: Some(&state) })
                .unwrap();
        mark.write(at(7, 5));
        assert_eq!(mark.read(), Some(at(7, 5)));
    }

    #[test]
    fn a_store_in_use_cannot_be_had_alone() {
        let dir = TempDir::new().unwrap();
        let database = dir.path().join("jobs.db");
        let users = [
            LockedMarkFile::open_shared((&database).into()).unwrap(),
            LockedMarkFile::open_shared((&database).into()).unwrap(),
        ];
        assert!(LockedMarkFile::alone((&database).into()).unwrap().is_none());
        drop(users);
        let alone = LockedMarkFile::alone((&database).into()).unwrap().expect("no process uses it");
        assert!(LockedMarkFile::alone((&database).into()).unwrap().is_none());
        assert!(matches!(
            LockedMarkFile::open_shared((&database).into()),
            Err(StoreError::Unavailable(_))
        ));
        drop(alone);
        LockedMarkFile::open_shared((&database).into()).unwrap();
    }
}
