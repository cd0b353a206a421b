//! The mirror: files that show the local owner's conversations to people and scripts, for as long as they look there.

use std::collections::HashMap;
use std::fmt;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::conversation::Conversation;
use outlast_core::{
    ConversationId, Insert, Inserted, Job, OwnerId, Profile, Provider, Prune, Pruned, Scope, Store,
    StoreError, StoreWrapper,
};

use crate::cursor::Cursor;
use crate::file_bytes::Documents;
use crate::folder::{self, make_private_dir, private};
use crate::folder_name::{FolderName, number_of};
use crate::lane_locks::Turns;
use crate::unwritten::{MirrorError, Trouble};

/// No caller waits longer for the files of a new job.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// What a mirror is told once.
#[derive(Clone, Debug)]
pub struct MirrorOptions {
    /// Where the folders are; made when there is something to put there.
    pub logs_dir: PathBuf,
    /// Where the mirror keeps its locks and how far it has come: a directory of its own beside the store, the same
    /// for every process on it, and not in `logs_dir`.
    pub state_dir: PathBuf,
    /// Whose conversations.
    pub owner: OwnerId,
}

/// The files of one owner's conversations in one directory, and the store that they show: whoever uses this store finds
/// the files of a promised turn written when its insert returns, and those of a deleted conversation gone.
pub struct Mirror {
    pub(crate) store: Arc<dyn Store>,
    /// Asked for the model that will answer.
    providers: HashMap<Profile, Arc<dyn Provider>>,
    pub(crate) logs_dir: PathBuf,
    pub(crate) owner: OwnerId,
    pub(crate) turns: Turns,
    pub(crate) cursor: Cursor,
    /// Locked by the one process that follows the store.
    holder: PathBuf,
    /// Conversations that are being deleted, a file each.
    pub(crate) going: PathBuf,
    is_holder: AtomicBool,
    pub(crate) trouble: Trouble,
}

impl Mirror {
    /// Makes no file yet: a process that only lists jobs leaves no trace.
    pub fn open(
        store: Arc<dyn Store>,
        providers: HashMap<Profile, Arc<dyn Provider>>,
        options: MirrorOptions,
    ) -> io::Result<Self> {
        let logs_dir = std::path::absolute(options.logs_dir)?;
        // Two owners, or two places, have nothing to do with one another.
        let mut what = logs_dir.as_os_str().as_encoded_bytes().to_vec();
        what.push(0);
        what.extend(options.owner.as_str().as_bytes());
        let dir = options.state_dir.join(format!("{:016x}", number_of(&what)));
        Ok(Self {
            store,
            providers,
            logs_dir,
            owner: options.owner,
            turns: Turns::new(dir.join("turns")),
            cursor: Cursor::new(dir.clone()),
            holder: dir.join("holder.lock"),
            going: dir.join("going"),
            is_holder: AtomicBool::new(false),
            trouble: Trouble::default(),
        })
    }

    /// Where this owner's conversations are shown as files; `None` for every owner but the mirror's.
    pub fn logs_dir(&self, owner: &OwnerId) -> Option<&Path> {
        (*owner == self.owner).then_some(&*self.logs_dir)
    }

    /// Makes sure of the files of a job that is about to be promised (C2). What cannot be written in time is said in
    /// the log and left to the follower: the job is durable, with or without files.
    async fn promise(&self, job: &Job) {
        let Some(id) = &job.new.conversation else { return };
        if job.new.owner != self.owner || !job.new.visibility.is_told() {
            return;
        }
        match self.sync(id).await {
            Ok(()) if self.is_holder.load(Ordering::Relaxed) => self.trouble.mended(id),
            Ok(()) => self.trouble.over(),
            Err(error) => self.trouble.failed(id, &self.logs_dir, &error),
        }
    }

    /// Makes a conversation's files show what the store has; leaves them alone when it has nothing to show.
    pub(crate) async fn sync(&self, id: &ConversationId) -> Result<(), MirrorError> {
        let Some(name) = FolderName::of(id) else { return Ok(()) };
        let syncing = async {
            // Before the store is read, or an older state could be written over a newer one.
            let turn = self.turns.take(&name).await?;
            let Some(documents) = self.documents(id).await? else { return Ok(()) };
            let logs_dir = self.logs_dir.clone();
            let writing = tokio::task::spawn_blocking(move || {
                let written = folder::write(&logs_dir, &name, &documents);
                drop(turn);
                written
            });
            Ok(writing.await.map_err(io::Error::other)??)
        };
        tokio::time::timeout(PATIENCE, syncing).await.unwrap_or(Err(MirrorError::Late))
    }

    /// What a conversation's files should hold; `None` when there should be none.
    pub(crate) async fn documents(
        &self,
        id: &ConversationId,
    ) -> Result<Option<Documents>, MirrorError> {
        let turns = self.store.turns(&Scope::Owner(self.owner.clone()), id).await?;
        let Some(conversation) = Conversation::of(id.clone(), turns) else { return Ok(None) };
        let asked = &conversation.last().new;
        let provider = self.providers.get(&asked.profile);
        let model = provider.and_then(|provider| provider.expected_model(&asked.ask));
        Ok(Some(Documents::of(&conversation, model)?))
    }

    /// Becomes the one process that follows; `None` while another one is.
    pub(crate) fn try_hold(&self) -> io::Result<Option<Held<'_>>> {
        if let Some(dir) = self.holder.parent() {
            make_private_dir(dir)?;
        }
        let file = private().create(true).truncate(false).open(&self.holder)?;
        match file.try_lock() {
            Ok(()) => {
                self.is_holder.store(true, Ordering::Relaxed);
                Ok(Some(Held { mirror: self, _file: file }))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

#[async_trait]
impl StoreWrapper for Mirror {
    fn inner(&self) -> &dyn Store {
        &*self.store
    }

    async fn insert(&self, insert: Insert) -> Result<Inserted, StoreError> {
        let inserted = self.store.insert(insert).await?;
        // Also of one that existed: the process that made it may have died before its files were there.
        let (Inserted::New(job) | Inserted::Existing { job, .. }) = &inserted;
        self.promise(job).await;
        Ok(inserted)
    }

    async fn prune(&self, scope: &Scope, prune: &Prune) -> Result<Pruned, StoreError> {
        let going = match prune {
            Prune::Conversation(id) => self.will_forget(scope, id).await,
            Prune::Expired | Prune::EndedBefore(_) => None,
        };
        let pruned = self.store.prune(scope, prune).await;
        if let Some(going) = going {
            self.forget(going).await;
        }
        pruned
    }
}

impl fmt::Debug for Mirror {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mirror").field("logs_dir", &self.logs_dir).finish_non_exhaustive()
    }
}

/// The right to follow; ends when dropped, or with the process.
pub(crate) struct Held<'a> {
    mirror: &'a Mirror,
    _file: File,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.mirror.is_holder.store(false, Ordering::Relaxed);
    }
}
