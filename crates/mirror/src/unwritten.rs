//! Tells once that the mirror cannot write, and once that it can again: a full disk under a thousand jobs is one line.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use outlast_core::{ConversationId, StoreError};

/// Why a conversation could not be mirrored. It is tried again; nobody but the log is told.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MirrorError {
    #[error("the conversation cannot be read: {0}")]
    Store(#[from] StoreError),
    #[error("the conversation cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("another writer, or the disk, does not let go")]
    Late,
}

/// The conversations whose files are behind.
#[derive(Debug, Default)]
pub(crate) struct Trouble(Mutex<HashSet<ConversationId>>);

impl Trouble {
    /// One more.
    pub(crate) fn failed(&self, id: &ConversationId, logs_dir: &Path, error: &MirrorError) {
        let mut behind = self.behind();
        if behind.is_empty() {
            tracing::warn!(
                conversation.id = %id,
                %error,
                "files in {} cannot be written; jobs go on, and the files follow when they can",
                logs_dir.display()
            );
        }
        behind.insert(id.clone());
    }

    /// One less.
    pub(crate) fn mended(&self, id: &ConversationId) {
        let mut behind = self.behind();
        if behind.remove(id) && behind.is_empty() {
            tracing::info!("files of conversations are written again");
        }
    }

    /// None, as far as this process will ever know: another one follows.
    pub(crate) fn over(&self) {
        let mut behind = self.behind();
        if !behind.is_empty() {
            behind.clear();
            tracing::info!("files of conversations are written again");
        }
    }

    fn behind(&self) -> MutexGuard<'_, HashSet<ConversationId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
