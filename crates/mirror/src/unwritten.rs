//! Logs once when files cannot be written and once when they can again, so that a full disk with a thousand
//! jobs causes one line.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use outlast_core::{ConversationId, StoreError};

/// The reasons a conversation's files could not be written. The follower tries again; the reason appears only
/// in the log.
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

/// The conversations whose files are out of date.
#[derive(Debug, Default)]
pub(crate) struct StaleConversations(Mutex<HashSet<ConversationId>>);

impl StaleConversations {
    /// Records that a conversation's files could not be written.
    pub(crate) fn add(&self, id: &ConversationId, logs_dir: &Path, error: &MirrorError) {
        let mut unwritten = self.lock();
        if unwritten.is_empty() {
            tracing::warn!(
                conversation.id = %id,
                %error,
                "files in {} cannot be written; jobs continue, and the files will be written later",
                logs_dir.display()
            );
        }
        unwritten.insert(id.clone());
    }

    /// Records that a conversation's files were written. If another process is the follower, the other
    /// conversations are forgotten, because this process does not learn when they are written.
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
