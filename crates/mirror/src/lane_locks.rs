//! Turns at writing a conversation's files, between tasks and between processes.
//!
//! Whoever has the turn reads the store and then writes. So of two writers the later one has read the later state,
//! and an older state never replaces a newer one; no number has to be compared, and a crash gives the turn back.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::folder::{make_private_dir, private};
use crate::folder_name::{FolderName, number_of};

/// How many conversations can be written at a time. All processes must agree on it.
const LANES: usize = 16;

/// The lock files, a few for all conversations.
#[derive(Debug)]
pub(crate) struct Turns {
    dir: PathBuf,
    /// Taken before the file: one task of this process at most waits at a file, on one thread.
    lanes: [Arc<Mutex<()>>; LANES],
}

/// The sole right to write a conversation's files; ends when dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    // Dropped first: closed is unlocked.
    _file: File,
    _lane: OwnedMutexGuard<()>,
}

impl Turns {
    /// Uses `dir`, and makes it with the first turn.
    pub(crate) fn new(dir: PathBuf) -> Self {
        Self { dir, lanes: std::array::from_fn(|_| Arc::default()) }
    }

    /// Waits for the turn, for as long as the caller likes: whoever gives up leaves a thread behind that takes it
    /// and gives it back.
    pub(crate) async fn take(&self, name: &FolderName) -> io::Result<Turn> {
        let lane = number_of(name.as_str().as_bytes()) as usize % LANES;
        let path = self.dir.join(format!("{lane:02}.lock"));
        let dir = self.dir.clone();
        let lane = Arc::clone(&self.lanes[lane]).lock_owned().await;
        let taking = tokio::task::spawn_blocking(move || {
            make_private_dir(&dir)?;
            let file = private().create(true).truncate(false).open(path)?;
            file.lock()?;
            Ok(Turn { _file: file, _lane: lane })
        });
        taking.await.map_err(io::Error::other)?
    }
}
