//! Deleting a conversation: a prune is no change, so whoever prunes tells the mirror.
//!
//! A note in the state directory stands from before the deletion until the files are gone, so that a crash in between
//! is made good by the next follower. A process without a mirror leaves no note: then the files stay, as a folder
//! that the store does not know.

use std::fs;
use std::io;
use std::path::PathBuf;

use outlast_core::{ConversationId, Scope};

use crate::folder::{self, make_private_dir, private, remove_file};
use crate::folder_name::FolderName;
use crate::mirror::{Mirror, PATIENCE};
use crate::unwritten::MirrorError;

/// A conversation whose files are to go with it.
#[derive(Debug)]
pub(crate) struct Going(FolderName);

impl Mirror {
    /// Takes note that a conversation is about to be deleted; `None` when it has no files of ours.
    pub(crate) async fn will_forget(&self, scope: &Scope, id: &ConversationId) -> Option<Going> {
        let name = FolderName::of(id)?;
        if !scope.sees(&self.owner) {
            return None;
        }
        match self.documents(id).await {
            Ok(documents) => documents?,
            Err(error) => {
                tracing::warn!(conversation.id = %id, %error, "the files of a conversation may stay behind");
                return None;
            }
        };
        let noted = make_private_dir(&self.going)
            .and_then(|()| private().create(true).truncate(true).open(self.note(&name)));
        if let Err(error) = noted {
            tracing::warn!(conversation.id = %id, %error, "a deletion cannot be noted; if this process dies now, its files stay");
        }
        Some(Going(name))
    }

    /// Makes the files follow: they go with the conversation, or stay if it does.
    pub(crate) async fn forget(&self, Going(name): Going) {
        if let Err(error) = self.try_forget(&name).await {
            let id = name.id();
            tracing::warn!(conversation.id = %id, %error, "the files of a deleted conversation are still there, will try again");
        }
    }

    /// Takes up what somebody who died, or could not, has left undone.
    pub(crate) async fn finish_forgetting(&self) {
        let Ok(notes) = fs::read_dir(&self.going) else { return };
        for note in notes.flatten() {
            let id = ConversationId::new(note.file_name().to_string_lossy());
            if let Some(name) = FolderName::of(&id) {
                self.forget(Going(name)).await;
            }
        }
    }

    /// Whether a conversation is being deleted.
    pub(crate) fn is_going(&self, name: &FolderName) -> bool {
        self.note(name).exists()
    }

    async fn try_forget(&self, name: &FolderName) -> Result<(), MirrorError> {
        let forgetting = async {
            let turn = self.turns.take(name).await?;
            // Not all of it may be gone, and somebody may have begun it anew.
            let documents = self.documents(&name.id()).await?;
            let (logs_dir, name, note) = (self.logs_dir.clone(), name.clone(), self.note(name));
            let removing = tokio::task::spawn_blocking(move || {
                match documents {
                    Some(documents) => folder::write(&logs_dir, &name, &documents)?,
                    None => folder::remove(&logs_dir, &name)?,
                }
                remove_file(&note)?;
                drop(turn);
                io::Result::Ok(())
            });
            Ok(removing.await.map_err(io::Error::other)??)
        };
        tokio::time::timeout(PATIENCE, forgetting).await.unwrap_or(Err(MirrorError::Late))
    }

    fn note(&self, name: &FolderName) -> PathBuf {
        self.going.join(name.as_str())
    }
}
