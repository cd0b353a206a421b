//! Locks on writing a conversation's files, between tasks and between processes.
//!
//! A writer locks, reads the store and then writes. So the later of two writers has read the later state, and
//! an older state never replaces a newer one; no revisions have to be compared, and a crash releases the lock.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::folder::{make_private_dir, open_private};
use crate::folder_name::{FolderName, stable_hash};

/// The number of conversations that can be written at a time. All processes must agree on it.
const LANES: usize = 16;

/// The lock files, a few for all conversations.
#[derive(Debug)]
pub(crate) struct LaneLocks {
    dir: PathBuf,
    /// Locked before the file, so that at most one task of this process waits for a file, on one thread.
    lanes: [Arc<Mutex<()>>; LANES],
}

/// The exclusive right to write a conversation's files; released on drop.
#[derive(Debug)]
pub(crate) struct LaneLock {
    // Dropped first, because closing the file unlocks it.
    _file: File,
    _lane: OwnedMutexGuard<()>,
}

impl LaneLocks {
    /// Uses `dir`, which is created with the first lock.
    pub(crate) fn new(dir: PathBuf) -> Self {
        Self { dir, lanes: std::array::from_fn(|_| Arc::default()) }
    }

    /// Waits for the lock. An abandoned call leaves a thread behind that acquires the lock and releases it.
    pub(crate) async fn lock(&self, name: &FolderName) -> io::Result<LaneLock> {
        let lane = stable_hash(name.as_str().as_bytes()) as usize % LANES;
        let dir = self.dir.clone();
        let guard = Arc::clone(&self.lanes[lane]).lock_owned().await;
        let locking = tokio::task::spawn_blocking(move || {
            make_private_dir(&dir)?;
            let path = dir.join(format!("{lane:02}.lock"));
            let file = open_private().create(true).truncate(false).open(path)?;
            file.lock()?;
            Ok(LaneLock { _file: file, _lane: guard })
        });
        locking.await.map_err(io::Error::other)?
    }
}
