//! Deletes the files of a conversation. A prune is not one of the store's changes, so the process that prunes
//! removes the files.
//!
//! A note in the state directory exists from before the deletion until the files are gone; after a crash in
//! between, the next follower finishes the deletion. A process without a mirror leaves no note: then the files
//! stay, as a folder that is not in the store.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::sync::{MutexGuard, PoisonError};

use outlast_core::{ConversationId, Scope};

use crate::folder::{make_private_dir, open_private, remove_file};
use crate::folder_name::FolderName;
use crate::mirror::{AbsentConversation, Mirror};
use crate::unwritten::MirrorError;

impl Mirror {
    /// Records that a conversation is about to be deleted, if it has files of the mirror.
    pub(crate) async fn note_deletion(&self, scope: &Scope, id: &ConversationId) {
        let Some(name) = FolderName::of(id).filter(|_| scope.sees(&self.owner)) else { return };
        match self.conversation(id).await {
            Ok(Some(_)) => {}
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(conversation.id = %id, %error, "failed to prepare a deletion; the files of the conversation may remain");
                return;
            }
        }
        self.lock_deletions().insert(id.clone());
        let noted = make_private_dir(&self.deletion_notes).and_then(|()| {
            open_private().create(true).truncate(true).open(self.deletion_note(&name))
        });
        if let Err(error) = noted {
            tracing::warn!(conversation.id = %id, %error, "failed to record a deletion; if this process crashes now, the files remain");
        }
    }

    /// Finishes the deletion if this process has noted it.
    pub(crate) async fn finish_own_deletion(&self, id: &ConversationId) {
        let is_noted = self.lock_deletions().remove(id);
        if is_noted {
            self.finish_deletion(id).await;
        }
    }

    fn lock_deletions(&self) -> MutexGuard<'_, HashSet<ConversationId>> {
        self.deleting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the files of a deleted conversation, or writes them if the conversation is in the store after
    /// all.
    pub(crate) async fn finish_deletion(&self, id: &ConversationId) {
        let Some(name) = FolderName::of(id) else { return };
        let removed = match self.sync(id, AbsentConversation::Remove).await {
            Ok(()) => remove_file(&self.deletion_note(&name)).map_err(MirrorError::Io),
            Err(error) => Err(error),
        };
        if let Err(error) = removed {
            tracing::warn!(conversation.id = %id, %error, "failed to remove the files of a deleted conversation; will try again");
        }
    }

    /// Finishes the deletions of a process that crashed or could not write.
    pub(crate) async fn finish_deletions(&self) {
        let Ok(notes) = fs::read_dir(&self.deletion_notes) else { return };
        for note in notes.flatten() {
            self.finish_deletion(&ConversationId::new(note.file_name().to_string_lossy())).await;
        }
    }

    /// Returns true if a conversation is being deleted.
    pub(crate) fn is_being_deleted(&self, name: &FolderName) -> bool {
        self.deletion_note(name).exists()
    }

    fn deletion_note(&self, name: &FolderName) -> PathBuf {
        self.deletion_notes.join(name.as_str())
    }
}
