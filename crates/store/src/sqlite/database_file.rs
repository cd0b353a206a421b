//! Detects that the database file is no longer the one that was opened.
//!
//! An open file outlives its name. After a deletion or a replacement, SQLite would continue with the old file, and its
//! commits there are lost when the process exits. So the file at the path is compared before and after every use.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use outlast_core::StoreError;
use rusqlite::Connection;

use super::fault::file_error;
use super::open::{ConnectionPurpose, connect};

/// The database's path and the identity of the file there.
pub(super) struct DatabaseFile {
    path: PathBuf,
    id: (u64, u64),
    reads: ConnectionPurpose,
}

impl DatabaseFile {
    /// Records the file that is at `path` now, and the access mode for reads.
    pub(super) fn of(path: &Path, reads: ConnectionPurpose) -> Result<Self, StoreError> {
        let found = fs::metadata(path).map_err(file_error(path))?;
        Ok(Self { path: path.to_owned(), id: file_id(&found), reads })
    }

    /// Opens the database for reading and verifies that it is this file.
    pub(super) fn connect(&self) -> Result<Connection, StoreError> {
        let connection = connect(&self.path, self.reads)?;
        self.check()?;
        Ok(connection)
    }

    /// Fails if another file, or none, is at the path. Succeeds again when the old file is back.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        match fs::metadata(&self.path) {
            Ok(found) if file_id(&found) == self.id => Ok(()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(file_error(&self.path)(error))
            }
            Ok(_) | Err(_) => {
                let path = self.path.display();
                Err(StoreError::Corrupt { at: format!("{path}, deleted or replaced while open") })
            }
        }
    }
}

/// The device and the inode number of the file.
fn file_id(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn only_the_same_file_at_the_same_path_passes() {
        let dir = TempDir::new().unwrap();
        let (path, aside) = (dir.path().join("jobs.db"), dir.path().join("aside.db"));
        fs::write(&path, "one").unwrap();
        let file = DatabaseFile::of(&path, ConnectionPurpose::Read).unwrap();
        fs::write(&path, "other content, same file").unwrap();
        file.check().unwrap();
        fs::rename(&path, &aside).unwrap();
        assert!(matches!(file.check(), Err(StoreError::Corrupt { .. })), "none");
        fs::write(&path, "one").unwrap();
        assert!(matches!(file.check(), Err(StoreError::Corrupt { .. })), "another");
        fs::rename(&aside, &path).unwrap();
        file.check().unwrap();
    }
}
