//! The mirror: an observer that keeps the files of one owner's conversations in step with the store.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast_core::conversation::Conversation;
use outlast_core::{
    ConversationId, FollowUp, InsertOutcome, Job, Observer, OwnerId, Profile, Provider, Scope,
    Store, StoreError, StoreEvent,
};

use crate::cursor::Cursor;
use crate::file_bytes::FileBytes;
use crate::folder;
use crate::folder_name::{FolderName, stable_hash};
use crate::lane_locks::LaneLocks;
use crate::unwritten::{MirrorError, StaleConversations};

/// The maximum time a caller waits for the files of one conversation.
const MAX_SYNC_TIME: Duration = Duration::from_secs(2);

/// The options of a mirror.
#[derive(Clone, Debug)]
pub struct MirrorOptions {
    /// The directory of the conversation folders; created with the first folder.
    pub logs_dir: PathBuf,
    /// The directory of the mirror's locks and cursor: its own directory next to the store, the same for every
    /// process that uses the store, and not in `logs_dir`.
    pub state_dir: PathBuf,
    /// The owner whose conversations are mirrored.
    pub owner: OwnerId,
}

/// The files of one owner's conversations. When a start returns, the files of a promised turn are written (C2); when
/// a deletion returns, those of the conversation are gone. Other changes of a job are written by [`Mirror::run`].
pub struct Mirror {
    pub(crate) store: Arc<dyn Store>,
    /// Used to look up the expected model.
    providers: HashMap<Profile, Arc<dyn Provider>>,
    pub(crate) logs_dir: PathBuf,
    pub(crate) owner: OwnerId,
    lane_locks: LaneLocks,
    pub(crate) cursor: Cursor,
    /// Locked by the one process that follows the store.
    pub(crate) follower_lock: PathBuf,
    /// True if this process is the follower.
    pub(crate) is_follower: AtomicBool,
    /// The directory with one file for each conversation that is being deleted.
    pub(crate) deletion_notes: PathBuf,
    /// The conversations that this process is deleting.
    pub(crate) deleting: Mutex<HashSet<ConversationId>>,
    unwritten: StaleConversations,
}

/// The handling of files whose conversation is not in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AbsentConversation {
    /// Keep them: they belong to an older server.
    Keep,
    /// Remove them: the conversation was deleted.
    Remove,
}

impl Mirror {
    /// Creates the mirror of a store. Creates no file yet: a process that only lists jobs leaves no trace.
    pub fn open(
        store: Arc<dyn Store>,
        providers: HashMap<Profile, Arc<dyn Provider>>,
        options: MirrorOptions,
    ) -> io::Result<Self> {
        let logs_dir = std::path::absolute(options.logs_dir)?;
        // Each pair of owner and directory has its own locks and cursor.
        let mut what = logs_dir.as_os_str().as_encoded_bytes().to_vec();
        what.push(0);
        what.extend(options.owner.as_str().as_bytes());
        let dir = options.state_dir.join(format!("{:016x}", stable_hash(&what)));
        Ok(Self {
            store,
            providers,
            logs_dir,
            owner: options.owner,
            lane_locks: LaneLocks::new(dir.join("turns")),
            follower_lock: dir.join("holder.lock"),
            is_follower: AtomicBool::new(false),
            deletion_notes: dir.join("going"),
            deleting: Mutex::default(),
            cursor: Cursor { dir },
            unwritten: StaleConversations::default(),
        })
    }

    /// The directory of this owner's conversations; `None` for every owner but the mirror's.
    pub fn logs_dir(&self, owner: &OwnerId) -> Option<&Path> {
        (*owner == self.owner).then_some(&*self.logs_dir)
    }

    /// Returns true if the files of this job must exist before its id is promised (C2).
    fn must_be_written(&self, job: &Job) -> bool {
        job.new.owner == self.owner && job.new.visibility.caller_has_id()
    }

    /// Writes a conversation's files, and logs when writing starts or stops failing. Returns true if they are
    /// written. Files that are not written in time are left to the follower, because the jobs are durable
    /// without them.
    pub(crate) async fn write(&self, id: &ConversationId) -> bool {
        let written = self.sync(id, AbsentConversation::Keep).await;
        match &written {
            Ok(()) => self.unwritten.remove(id, self.is_follower.load(Ordering::Relaxed)),
            Err(error) => self.unwritten.add(id, &self.logs_dir, error),
        }
        written.is_ok()
    }

    /// Updates a conversation's files from the store.
    pub(crate) async fn sync(
        &self,
        id: &ConversationId,
        absent: AbsentConversation,
    ) -> Result<(), MirrorError> {
        let Some(name) = FolderName::of(id) else { return Ok(()) };
        let syncing = async {
            // Lock before reading the store, or an older state could overwrite a newer one.
            let lock = self.lane_locks.lock(&name).await?;
            let conversation = self.conversation(id).await?;
            let bytes = conversation.map(|conversation| self.file_bytes(&conversation));
            let bytes = bytes.transpose()?;
            let logs_dir = self.logs_dir.clone();
            let writing = tokio::task::spawn_blocking(move || {
                // Held by this thread until the files are written, even if the caller has given up.
                let _lock = lock;
                match bytes {
                    Some(bytes) => folder::write(&logs_dir, &name, &bytes),
                    None if absent == AbsentConversation::Remove => {
                        folder::remove(&logs_dir, &name)
                    }
                    None => Ok(()),
                }
            });
            Ok(writing.await.map_err(io::Error::other)??)
        };
        tokio::time::timeout(MAX_SYNC_TIME, syncing).await.unwrap_or(Err(MirrorError::TimedOut))
    }

    /// Returns the owner's conversation, or `None` if the store has nothing to show of it.
    pub(crate) async fn conversation(
        &self,
        id: &ConversationId,
    ) -> Result<Option<Conversation>, StoreError> {
        let turns = self.store.turns(&Scope::Owner(self.owner.clone()), id).await?;
        Ok(Conversation::from_turns(id.clone(), turns))
    }

    fn file_bytes(&self, conversation: &Conversation) -> Result<FileBytes, serde_json::Error> {
        let asked = &conversation.last().new;
        let provider = self.providers.get(&asked.profile);
        let model = provider.and_then(|provider| provider.expected_model(&asked.request));
        FileBytes::of(conversation, model)
    }
}

impl Observer for Mirror {
    // Only an insert and a deletion update files immediately; the follower handles every other change.
    fn observe<'a>(&'a self, event: &StoreEvent<'a>) -> Option<FollowUp<'a>> {
        match *event {
            // Existing jobs too: the process that created one may have crashed before its files were written.
            StoreEvent::Inserted(InsertOutcome::New(job) | InsertOutcome::Existing { job, .. }) => {
                let id = job.new.conversation.as_ref().filter(|_| self.must_be_written(job))?;
                Some(Box::pin(async move {
                    self.write(id).await;
                }))
            }
            StoreEvent::Deleting { scope, conversation } => {
                Some(Box::pin(self.note_deletion(scope, conversation)))
            }
            StoreEvent::Deleted { conversation } => {
                Some(Box::pin(self.finish_own_deletion(conversation)))
            }
            StoreEvent::Claimed { .. }
            | StoreEvent::Taken(_)
            | StoreEvent::Renewed { .. }
            | StoreEvent::Checkpointed
            | StoreEvent::Noted
            | StoreEvent::Settled { .. }
            | StoreEvent::Cancelled(_)
            | StoreEvent::Asked { .. }
            | StoreEvent::Answered(_)
            | StoreEvent::StopRecorded
            | StoreEvent::WriteFailed(_) => None,
        }
    }
}

impl fmt::Debug for Mirror {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mirror").field("logs_dir", &self.logs_dir).finish_non_exhaustive()
    }
}
