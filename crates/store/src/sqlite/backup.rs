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
    /// found sound; only its owner can read it. It can be opened as a store: jobs that were running are then found
    /// without their workers and resumed.
    pub async fn backup(&self, to: &Path) -> Result<(), StoreError> {
        let to = to.to_owned();
        self.readers.run(move |connection| Ok(copy(connection, &to)?)).await
    }
}

fn copy(connection: &Connection, to: &Path) -> Result<(), StoreError> {
    if fs::symlink_metadata(to).is_ok() {
        return Err(unavailable(format!("{} is there already", to.display())));
    }
    let mut partial = to.as_os_str().to_owned();
    partial.push(format!(".{}.partial", Uuid::new_v4().simple()));
    let partial = Partial(partial.into());
    open::make_private_file(&partial.0, Existing::Refuse)
        .map_err(|error| of_io(&partial.0, error))?;
    fill(connection, &partial.0)?;
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
fn fill(connection: &Connection, to: &Path) -> Result<(), Fault> {
    const ALL: i32 = -1;
    let mut copy = open::connect(to, Access::Write)?;
    let step = Backup::new(connection, &mut copy)?.step(ALL)?;
    match step {
        StepResult::Done => Ok(()),
        other => Err(unavailable(format!("the copy stopped half-way: {other:?}")).into()),
    }
}

fn verify(path: &Path) -> Result<(), StoreError> {
    let copy = open::connect(path, Access::Read)?;
    match check::file(&copy)?.into_iter().next() {
        Some(at) => Err(StoreError::Corrupt { at }),
        None => Ok(()),
    }
}

/// A copy without its name yet; what is left of it goes when it is given up.
struct Partial(PathBuf);

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
