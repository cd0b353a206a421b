//! A copy of the store in one file, taken while everybody goes on writing.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use outlast_core::StoreError;
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use uuid::Uuid;

use super::fault::{Fault, of_io, unavailable};
use super::open::{self, Access, Existing};
use super::{SqliteStore, check};

impl SqliteStore {
    /// Copies the store as it is at one moment to `to`, which must not exist yet.
    ///
    /// Nobody waits for it and it waits for nobody. The name appears only when the copy is complete, was opened and
    /// found sound; only its owner can read it. It can be read as it is; to become a store again it must be restored
    /// ([`super::Restore`]), because what it has queued may be run and paid for while it lies there.
    pub async fn backup(&self, to: &Path) -> Result<(), StoreError> {
        let to = to.to_owned();
        self.readers.run(move |connection| Ok(copy(connection, &to)?)).await
    }
}

fn copy(connection: &Connection, to: &Path) -> Result<(), StoreError> {
    if fs::symlink_metadata(to).is_ok() {
        return Err(unavailable(format!("{} is there already", to.display())));
    }
    let partial = Partial::beside(to)?;
    fill(connection, &partial.0)?;
    name_backup(&partial.0)?;
    verify(&partial.0)?;
    // Takes the name first, so that whoever took it meanwhile is not overwritten by the rename.
    open::make_private_file(to, Existing::Refuse).map_err(|error| of_io(to, error))?;
    let named = fs::rename(&partial.0, to).and_then(|()| {
        File::open(open::directory_of(to)).and_then(|directory| directory.sync_all())
    });
    named.map_err(|error| of_io(to, error))
}

/// All pages in one step: a reader of a write-ahead log holds nobody up, and a copy in several steps would begin
/// again with every commit of another process.
pub(super) fn fill(connection: &Connection, to: &Path) -> Result<(), Fault> {
    const ALL: i32 = -1;
    let mut copy = open::connect(to, Access::Write)?;
    let step = Backup::new(connection, &mut copy)?.step(ALL)?;
    match step {
        StepResult::Done => Ok(()),
        other => Err(unavailable(format!("the copy stopped half-way: {other:?}")).into()),
    }
}

/// Writes into the copy what it is, so that it is not opened as the store itself.
fn name_backup(copy: &Path) -> Result<(), Fault> {
    let connection = open::connect(copy, Access::Write)?;
    connection.execute("INSERT INTO meta VALUES ('backup', 1) ON CONFLICT DO NOTHING", [])?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(connection.close().map_err(|(_, error)| error)?)
}

pub(super) fn verify(path: &Path) -> Result<(), StoreError> {
    check::refuse_damaged(&open::connect(path, Access::Read)?)
}

/// A copy without its name yet; what is left of it goes when it is given up.
pub(super) struct Partial(pub(super) PathBuf);

impl Partial {
    /// Makes an empty file for it, beside what it is to be.
    pub(super) fn beside(path: &Path) -> Result<Self, StoreError> {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}.partial", Uuid::new_v4().simple()));
        Self::make(name.into())
    }

    /// The same for a caller that is alone here: what another left when it was killed goes first.
    pub(super) fn alone_beside(path: &Path) -> Result<Self, StoreError> {
        let mut name = path.as_os_str().to_owned();
        name.push(".restoring");
        drop(Self(name.clone().into()));
        Self::make(name.into())
    }

    fn make(path: PathBuf) -> Result<Self, StoreError> {
        let made = open::make_private_file(&path, Existing::Refuse);
        made.map_err(|error| of_io(&path, error))?;
        Ok(Self(path))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        for end in ["", "-journal", "-wal", "-shm"] {
            let mut path = self.0.as_os_str().to_owned();
            path.push(end);
            // Gone already, as a rule: renamed, or cleared away by SQLite.
            let _ = fs::remove_file(path);
        }
    }
}
