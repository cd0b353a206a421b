//! Logs once that files cannot be written, and once that they can again: a full disk under a thousand jobs is one line.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use outlast_core::{ConversationId, StoreError};

/// Why a conversation's files could not be written. The follower tries again; only the log has the reason.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MirrorError {
    #[error("the conversation cannot be read: {0}")]
    Store(#[from] StoreError),
    #[error("the conversation cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("another process holds the lock, or the disk is too slow")]
    TimedOut,
}

/// The conversations whose files are behind.
#[derive(Debug, Default)]
pub(crate) struct Unwritten(Mutex<HashSet<ConversationId>>);

impl Unwritten {
    /// A conversation's files could not be written.
    pub(crate) fn add(&self, id: &ConversationId, logs_dir: &Path, error: &MirrorError) {
        let mut unwritten = self.lock();
        if unwritten.is_empty() {
            tracing::warn!(
                conversation.id = %id,
                %error,
                "files in {} cannot be written; jobs go on, and the files follow when they can",
                logs_dir.display()
            );
        }
        unwritten.insert(id.clone());
    }

    /// A conversation's files were written. The others are forgotten where another process is the follower: this one
    /// does not learn when they are written.
    pub(crate) fn remove(&self, id: &ConversationId, is_follower: bool) {
        let mut unwritten = self.lock();
        if unwritten.is_empty() {
            return;
        }
        unwritten.retain(|other| is_follower && other != id);
        if unwritten.is_empty() {
            tracing::info!("files of conversations are written again");
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<ConversationId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
