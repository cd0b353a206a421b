//! The mark: the store's latest state as a process of this user saw it, in a file of the user's state directory.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use outlast_core::{Rev, Timestamp};

use crate::sqlite::{make_private_dir, open_private_file};

/// The identity of a database and of its tables. A restored dump creates tables with another identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DatabaseIdentity {
    /// The server's identifier; `None` if its user may not read it.
    pub(super) system: Option<i64>,
    pub(super) database: i64,
    pub(super) tables: i64,
}

/// A position in the history of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    /// The time of the last `store restore`, or zero.
    pub(super) restored_at: Timestamp,
    /// The timeline of the server; `None` if it is not known.
    pub(super) timeline: Option<u32>,
    /// The number of the latest durable change.
    pub(super) rev: Rev,
}

impl Position {
    /// One line of a fixed length, written in a single call, so that no reader and no crash sees half of it.
    fn text(&self) -> String {
        let Self { restored_at, timeline, rev } = self;
        format!("{:>20} {:>10} {:>20}\n", restored_at.as_millis(), timeline.unwrap_or(0), rev.0)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let restored_at = Timestamp::from_millis(words.next()?.parse().ok()?);
        let timeline = words.next()?.parse().ok()?;
        let rev = Rev(words.next()?.parse().ok()?);
        let timeline = (timeline != 0).then_some(timeline);
        words.next().is_none().then_some(Self { restored_at, timeline, rev })
    }

    fn is_ahead_of(&self, other: &Self) -> bool {
        (self.restored_at, self.timeline, self.rev)
            >= (other.restored_at, other.timeline, other.rev)
    }
}

/// The mark file of one store in one database. The state directory may not exist.
pub(super) struct MarkFile {
    path: Option<PathBuf>,
    is_reported: AtomicBool,
}

impl MarkFile {
    /// The mark of this store in this database.
    pub(super) fn of(state_dir: Option<&Path>, store: &str, of: &DatabaseIdentity) -> Self {
        let DatabaseIdentity { system, database, tables } = of;
        let name = format!("{store}-{:016x}-{database}-{tables}", system.unwrap_or(0));
        let path = state_dir.map(|state_dir| state_dir.join("marks").join(name));
        Self { path, is_reported: AtomicBool::new(false) }
    }

    /// Reads the file. Returns `None` if it is not readable.
    pub(super) fn read(&self) -> Option<Position> {
        Position::parse(&fs::read_to_string(self.path.as_ref()?).ok()?)
    }

    /// Writes the file, unless another process has seen a later state.
    pub(super) fn write(&self, position: &Position) {
        if !self.read().is_some_and(|known| known.is_ahead_of(position)) {
            self.replace(position);
        }
    }

    /// Writes the file, whatever it contained before.
    pub(super) fn replace(&self, position: &Position) {
        let Some(path) = &self.path else { return };
        let write = |directory: &Path| {
            make_private_dir(directory).map_err(io::Error::other)?;
            open_private_file(path)?.write_all(position.text().as_bytes())
        };
        if let Some(Err(error)) = path.parent().map(write)
            && !self.is_reported.swap(true, Ordering::Relaxed)
        {
            let path = path.display();
            tracing::warn!(%error, "failed to write {path}: a rollback of the database could go unnoticed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(restored_at: i64, timeline: u32, rev: u64) -> Position {
        let timeline = (timeline != 0).then_some(timeline);
        Position { restored_at: Timestamp::from_millis(restored_at), timeline, rev: Rev(rev) }
    }

    #[test]
    fn f6_a_mark_only_rises_and_belongs_to_one_database() {
        let folder = tempfile::TempDir::new().unwrap();
        let identity = DatabaseIdentity { system: Some(-1), database: 5, tables: 16_390 };
        let mark = MarkFile::of(Some(folder.path()), "store", &identity);
        assert_eq!(mark.read(), None);
        let steps = [
            (at(0, 1, 50), at(0, 1, 50)),
            (at(0, 1, 30), at(0, 1, 50)),
            (at(0, 2, 40), at(0, 2, 40)),
            (at(0, 1, 90), at(0, 2, 40)),
            (at(7, 1, 1), at(7, 1, 1)),
            (at(7, 0, u64::MAX >> 1), at(7, 1, 1)),
        ];
        for (written, expected) in steps {
            mark.write(&written);
            assert_eq!(mark.read(), Some(expected), "{written:?}");
        }
        mark.replace(&at(7, 1, 0));
        assert_eq!(mark.read(), Some(at(7, 1, 0)));
        let again = DatabaseIdentity { tables: 16_400, ..identity };
        assert_eq!(MarkFile::of(Some(folder.path()), "store", &again).read(), None);
        assert_eq!(MarkFile::of(None, "store", &identity).read(), None);
    }
}
