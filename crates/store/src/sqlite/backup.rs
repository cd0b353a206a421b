//! Copies the store to one file while other processes continue to write.

use std::fs;
use std::path::{Path, PathBuf};

use outlast_core::StoreError;
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use uuid::Uuid;

use super::fault::{Fault, file_error};
use super::files::{beside, make_private_file, rename_durably};
use super::open::{self, ConnectionPurpose};
use super::{SqliteStore, check, sql};
use crate::unavailable;

impl SqliteStore {
    /// Copies a consistent snapshot of the store to `to`, which must not exist yet.
    ///
    /// No writer waits for this, and it waits for no writer. The file appears under its name only when the copy is complete
    /// and has been opened and checked. Only its owner can read it. The copy can be read as it is. Before it becomes a store
    /// again it must be restored ([`super::Restore`]), because its queued jobs may be run and paid for in the meantime.
    pub async fn backup(&self, to: &Path) -> Result<(), StoreError> {
        let to = to.to_owned();
        self.readers.run(move |connection| copy(connection, &to)).await
    }
}

fn copy(connection: &Connection, to: &Path) -> Result<(), Fault> {
    if fs::symlink_metadata(to).is_ok() {
        return Err(unavailable(format!("{} is there already", to.display())).into());
    }
    let partial = Partial::beside(to)?;
    fill(connection, &partial.0)?;
    label(&partial.0)?;
    verify(&partial.0)?;
    // Create the name first, so that the rename does not overwrite a file that appeared meanwhile.
    make_private_file(to).map_err(file_error(to))?;
    Ok(rename_durably(&partial.0, to)?)
}

/// Copies all pages in one step. A reader of a write-ahead log delays no writer, but a copy in several steps would start over
/// at every commit of another process.
pub(super) fn fill(connection: &Connection, to: &Path) -> Result<(), Fault> {
    const ALL: i32 = -1;
    let mut copy = open::connect(to, ConnectionPurpose::Write)?;
    let step = Backup::new(connection, &mut copy)?.step(ALL)?;
    match step {
        StepResult::Done => Ok(()),
        other => Err(unavailable(format!("the copy stopped half-way: {other:?}")).into()),
    }
}

/// Marks the copy as a backup, so that it is not opened as the store itself.
fn label(copy: &Path) -> Result<(), Fault> {
    let connection = open::connect(copy, ConnectionPurpose::Write)?;
    connection.execute(sql!(sqlite::backup::label), [])?;
    sql::close(connection)
}

pub(super) fn verify(path: &Path) -> Result<(), Fault> {
    check::refuse_damaged(&open::connect(path, ConnectionPurpose::Read)?)
}

/// A copy under a temporary name; its files are removed when it is dropped.
pub(super) struct Partial(pub(super) PathBuf);

impl Partial {
    /// Creates an empty file next to `path`.
    pub(super) fn beside(path: &Path) -> Result<Self, StoreError> {
        Self::make(beside(path, &format!(".{}.partial", Uuid::new_v4().simple())))
    }

    /// Creates it for a caller that runs alone: first removes the files that a killed process left.
    pub(super) fn alone_beside(path: &Path) -> Result<Self, StoreError> {
        let path = beside(path, ".restoring");
        drop(Self(path.clone()));
        Self::make(path)
    }

    fn make(path: PathBuf) -> Result<Self, StoreError> {
        make_private_file(&path).map_err(file_error(&path))?;
        Ok(Self(path))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        for end in ["", "-journal", "-wal", "-shm"] {
            // Usually gone already: renamed, or removed by SQLite.
            let _ = fs::remove_file(beside(&self.0, end));
        }
    }
}
