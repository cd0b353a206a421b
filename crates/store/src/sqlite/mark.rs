//! How far the store has come, in a small file beside the database: a database that is behind it is an earlier copy.
//!
//! The file holds the store's own number and the number of a durable change, a few seconds old at most. It is written
//! without a flush: a mark that is too low only misses the latest changes. Every process that may write to the store
//! holds a shared lock on this file; a restore locks it alone, and so knows whether the store is in use.

use std::fs::{self, File, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use outlast_core::{Rev, StoreError};
use rusqlite::Connection;

use super::fault::{Fault, file_error};
use super::files::{beside, open_private_file};
use super::sql;
use crate::{columns, unavailable};

/// A store, and how far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reached {
    /// The number that tells one store from another; its copies have the same.
    pub(super) store: i64,
    /// The latest change.
    pub(super) rev: Rev,
}

/// The file, open and locked.
pub(super) struct Mark {
    file: File,
    path: PathBuf,
}

impl Mark {
    /// Makes the file if there is none, and shares the lock; refused while the store is being restored.
    pub(super) fn shared(database: &Path) -> Result<Self, StoreError> {
        let mark = Self::open(database)?;
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

    /// The same with the lock for itself; `None` while another process uses the store.
    pub(super) fn alone(database: &Path) -> Result<Option<Self>, StoreError> {
        let mark = Self::open(database)?;
        match mark.file.try_lock() {
            Ok(()) => Ok(Some(mark)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(file_error(&mark.path)(error)),
        }
    }

    fn open(database: &Path) -> Result<Self, StoreError> {
        let path = path_of(database);
        Ok(Self { file: open_private_file(&path).map_err(file_error(&path))?, path })
    }

    /// What the file says; `None` where it cannot be read.
    pub(super) fn read(&self) -> Option<Reached> {
        let (mut file, mut text) = (&self.file, String::new());
        file.rewind().and_then(|()| file.read_to_string(&mut text)).ok()?;
        parsed(&text)
    }

    /// Notes that the store has come this far, unless it is known to have come further.
    pub(super) fn write(&self, reached: Reached) {
        if let Some(known) = self.read()
            && known.store == reached.store
            && known.rev >= reached.rev
        {
            return;
        }
        // One write of a fixed length, so that no reader and no crash finds half of it.
        let text = format!("{:>20} {:>20}\n", reached.store, reached.rev.0);
        let mut file = &self.file;
        let written = file.rewind().and_then(|()| file.write_all(text.as_bytes()));
        if let Err(error) = written {
            tracing::debug!(%error, "{} could not be written", self.path.display());
        }
    }
}

/// What the mark beside a database says, without making it.
pub(super) fn peek(database: &Path) -> Option<Reached> {
    parsed(&fs::read_to_string(path_of(database)).ok()?)
}

/// Refuses a database that is an earlier state of a store. `marked` must have been read before `connection` looks.
pub(super) fn refuse_outdated(
    connection: &Connection,
    marked: Option<Reached>,
) -> Result<(), StoreError> {
    let outdated = outdated(connection, marked)?;
    outdated.map_or(Ok(()), |why| Err(StoreError::Outdated { why }))
}

/// Why this database is an earlier state of a store, if it is.
pub(super) fn outdated(
    connection: &Connection,
    marked: Option<Reached>,
) -> Result<Option<String>, Fault> {
    if meta(connection, "backup")?.is_some() {
        return Ok(Some("it was made by `outlast store backup`".to_owned()));
    }
    let both = marked.zip(reached(connection)?);
    let behind =
        both.filter(|(marked, found)| found.store == marked.store && found.rev < marked.rev);
    Ok(behind.map(|(marked, found)| {
        format!("its latest change is number {}, and it had reached {}", found.rev.0, marked.rev.0)
    }))
}

/// How far the database itself has come; `None` for one that has no number yet.
pub(super) fn reached(connection: &Connection) -> Result<Option<Reached>, Fault> {
    let store = meta(connection, "store")?;
    let rev = meta(connection, "rev")?.map(columns::rev);
    Ok(store.zip(rev).map(|(store, rev)| Reached { store, rev }))
}

/// Gives a store that has none its number.
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

fn parsed(text: &str) -> Option<Reached> {
    let mut words = text.split_whitespace();
    let (store, rev) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    words.next().is_none().then_some(Reached { store, rev: Rev(rev) })
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn at(store: i64, rev: u64) -> Reached {
        Reached { store, rev: Rev(rev) }
    }

    #[test]
    fn a_mark_only_rises_and_begins_anew_for_another_store() {
        let dir = TempDir::new().unwrap();
        let database = dir.path().join("jobs.db");
        let mark = Mark::shared(&database).unwrap();
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
    fn a_store_in_use_cannot_be_had_alone() {
        let dir = TempDir::new().unwrap();
        let database = dir.path().join("jobs.db");
        let users = [Mark::shared(&database).unwrap(), Mark::shared(&database).unwrap()];
        assert!(Mark::alone(&database).unwrap().is_none());
        drop(users);
        let alone = Mark::alone(&database).unwrap().expect("no process uses it");
        assert!(Mark::alone(&database).unwrap().is_none());
        assert!(matches!(Mark::shared(&database), Err(StoreError::Unavailable(_))));
        drop(alone);
        Mark::shared(&database).unwrap();
    }
}
