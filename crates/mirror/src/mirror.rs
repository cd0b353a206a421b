//! The mirror: a store around another that keeps the files of one owner's conversations as that store has them.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::conversation::Conversation;
use outlast_core::{
    ConversationId, Insert, Inserted, Job, OwnerId, Profile, Provider, Prune, Pruned, Scope, Store,
    StoreError, StoreMethod, StoreWrapper,
};

use crate::cursor::Cursor;
use crate::file_bytes::FileBytes;
use crate::folder;
use crate::folder_name::{FolderName, stable_hash};
use crate::lane_locks::LaneLocks;
use crate::unwritten::{MirrorError, Unwritten};

/// How long a caller waits at most for the files of one conversation.
const MAX_SYNC_TIME: Duration = Duration::from_secs(2);

/// What a mirror is told once.
#[derive(Clone, Debug)]
pub struct MirrorOptions {
    /// Where the folders are; made when there is something to put there.
    pub logs_dir: PathBuf,
    /// Where the mirror keeps its locks and its cursor: a directory of its own beside the store, the same for every
    /// process on it, and not in `logs_dir`.
    pub state_dir: PathBuf,
    /// Whose conversations.
    pub owner: OwnerId,
}

/// The store, and the files of one owner's conversations. When an insert returns, the files of a promised turn are
/// written (C2); when a prune returns, those of a deleted conversation are gone. What happens to a job in between is
/// written by [`Mirror::run`].
pub struct Mirror {
    pub(crate) store: Arc<dyn Store>,
    /// Asked for the model that will answer.
    providers: HashMap<Profile, Arc<dyn Provider>>,
    pub(crate) logs_dir: PathBuf,
    pub(crate) owner: OwnerId,
    lane_locks: LaneLocks,
    pub(crate) cursor: Cursor,
    /// Locked by the one process that follows the store.
    pub(crate) follower_lock: PathBuf,
    /// Whether that is this process.
    pub(crate) is_follower: AtomicBool,
    /// Conversations that are being deleted, a file each.
    pub(crate) deletion_notes: PathBuf,
    unwritten: Unwritten,
}

/// What becomes of the files of a conversation that the store does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfAbsent {
    /// They are an older server's.
    Keep,
    /// The conversation was deleted.
    Remove,
}

impl Mirror {
    /// Puts the mirror around a store. Makes no file yet: a process that only lists jobs leaves no trace.
    pub fn open(
        store: Arc<dyn Store>,
        providers: HashMap<Profile, Arc<dyn Provider>>,
        options: MirrorOptions,
    ) -> io::Result<Self> {
        let logs_dir = std::path::absolute(options.logs_dir)?;
        // Each owner and each directory of files has locks and a cursor of its own.
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
            cursor: Cursor { dir },
            unwritten: Unwritten::default(),
        })
    }

    /// Where this owner's conversations are shown as files; `None` for every owner but the mirror's.
    pub fn logs_dir(&self, owner: &OwnerId) -> Option<&Path> {
        (*owner == self.owner).then_some(&*self.logs_dir)
    }

    /// Whether the files of this job must stand before its id is promised (C2).
    fn shows(&self, job: &Job) -> bool {
        job.new.owner == self.owner && job.new.visibility.caller_has_id()
    }

    /// Writes a conversation's files, and logs where that begins or ceases to fail; true when they are written. Files that
    /// are not written in time are left to the follower: the jobs are durable without them.
    pub(crate) async fn write(&self, id: &ConversationId) -> bool {
        let written = self.sync(id, IfAbsent::Keep).await;
        match &written {
            Ok(()) => self.unwritten.remove(id, self.is_follower.load(Ordering::Relaxed)),
            Err(error) => self.unwritten.add(id, &self.logs_dir, error),
        }
        written.is_ok()
    }

    /// Makes a conversation's files show what the store has.
    pub(crate) async fn sync(
        &self,
        id: &ConversationId,
        if_absent: IfAbsent,
    ) -> Result<(), MirrorError> {
        let Some(name) = FolderName::of(id) else { return Ok(()) };
        let syncing = async {
            // Locked before the store is read, or an older state could be written over a newer one.
            let lock = self.lane_locks.lock(&name).await?;
            let conversation = self.conversation(id).await?;
            let bytes = conversation.map(|conversation| self.file_bytes(&conversation));
            let bytes = bytes.transpose()?;
            let logs_dir = self.logs_dir.clone();
            let writing = tokio::task::spawn_blocking(move || {
                // Held by this thread until the files are written, also when the caller has given up.
                let _lock = lock;
                match bytes {
                    Some(bytes) => folder::write(&logs_dir, &name, &bytes),
                    None if if_absent == IfAbsent::Remove => folder::remove(&logs_dir, &name),
                    None => Ok(()),
                }
            });
            Ok(writing.await.map_err(io::Error::other)??)
        };
        tokio::time::timeout(MAX_SYNC_TIME, syncing).await.unwrap_or(Err(MirrorError::TimedOut))
    }

    /// The owner's conversation; `None` when the store has nothing to show of it.
    pub(crate) async fn conversation(
        &self,
        id: &ConversationId,
    ) -> Result<Option<Conversation>, StoreError> {
        let turns = self.store.turns(&Scope::Owner(self.owner.clone()), id).await?;
        Ok(Conversation::of(id.clone(), turns))
    }

    fn file_bytes(&self, conversation: &Conversation) -> Result<FileBytes, serde_json::Error> {
        let asked = &conversation.last().new;
        let provider = self.providers.get(&asked.profile);
        let model = provider.and_then(|provider| provider.expected_model(&asked.ask));
        FileBytes::of(conversation, model)
    }
}

#[async_trait]
impl StoreWrapper for Mirror {
    fn inner(&self) -> &dyn Store {
        &*self.store
    }

    // Only an insert and a prune write or remove files at once; the follower shows every other change.
    fn after(&self, _: StoreMethod, _: Option<&StoreError>) {}

    async fn insert(&self, insert: Insert) -> Result<Inserted, StoreError> {
        let inserted = self.store.insert(insert).await?;
        // Also of a job that existed: the process that made it may have died before its files were there.
        let (Inserted::New(job) | Inserted::Existing { job, .. }) = &inserted;
        if let Some(id) = job.new.conversation.as_ref().filter(|_| self.shows(job)) {
            self.write(id).await;
        }
        Ok(inserted)
    }

    async fn prune(&self, scope: &Scope, prune: &Prune) -> Result<Pruned, StoreError> {
        let deleted = match prune {
            Prune::Conversation(id) if self.note_deletion(scope, id).await => Some(id),
            Prune::Conversation(_) | Prune::Expired | Prune::EndedBefore(_) => None,
        };
        let pruned = self.store.prune(scope, prune).await;
        if let Some(id) = deleted {
            self.finish_deletion(id).await;
        }
        pruned
    }
}

impl fmt::Debug for Mirror {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mirror").field("logs_dir", &self.logs_dir).finish_non_exhaustive()
    }
}
