//! The mirror: files that show the local owner's conversations to people and scripts, for as long as they look there.
//!
//! Written from the store and never read back: what somebody changes in them is gone with the conversation's next
//! change. Folders that the store does not know, of older servers, can be read and are never touched.

mod name;
mod documents;
mod folder;
mod turns;

mod follow;
mod backlog;
mod cursor;
mod forget;
mod trouble;

mod archive;

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outlast_core::conversation::Conversation;
use outlast_core::{ConversationId, Job, OwnerId, Scope};

use crate::engine::Shared;
use cursor::Cursor;
use documents::Documents;
use folder::{make_private_dir, private};
use name::{FolderName, number_of};
use trouble::{MirrorError, Trouble};
use turns::Turns;

pub use archive::{ArchiveError, Archived};
pub(crate) use follow::follow;

/// No caller waits longer for the files of a new job.
const PATIENCE: Duration = Duration::from_secs(2);

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

/// The files of one owner's conversations in one directory.
#[derive(Debug)]
pub struct Mirror {
    logs_dir: PathBuf,
    owner: OwnerId,
    turns: Turns,
    cursor: Cursor,
    /// Locked by the one process that follows the store.
    holder: PathBuf,
    /// Conversations that are being deleted, a file each.
    going: PathBuf,
    is_holder: AtomicBool,
    trouble: Trouble,
}

impl Mirror {
    /// Makes no file yet: whoever only lists jobs leaves no trace.
    pub fn open(options: MirrorOptions) -> io::Result<Self> {
        let logs_dir = std::path::absolute(options.logs_dir)?;
        // Two owners, or two places, have nothing to do with one another.
        let mut what = logs_dir.as_os_str().as_encoded_bytes().to_vec();
        what.push(0);
        what.extend(options.owner.as_str().as_bytes());
        let dir = options.state_dir.join(format!("{:016x}", number_of(&what)));
        Ok(Self {
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

    /// Where the folders are.
    pub fn logs_dir(&self) -> &Path {
        &self.logs_dir
    }

    /// Whose conversations it shows.
    pub fn owner(&self) -> &OwnerId {
        &self.owner
    }

    /// Makes sure of the files of a job that is about to be promised (C2). What cannot be written in time is said in
    /// the log and left to the follower: the job is durable, with or without files.
    pub(crate) async fn promise(&self, shared: &Shared, job: &Job) {
        let Some(id) = &job.new.conversation else { return };
        if job.new.owner != self.owner || !job.new.visibility.caller_has_id() {
            return;
        }
        match self.sync(shared, id).await {
            Ok(()) if self.is_holder.load(Ordering::Relaxed) => self.trouble.mended(id),
            Ok(()) => self.trouble.over(),
            Err(error) => self.trouble.failed(id, &self.logs_dir, &error),
        }
    }

    /// Makes a conversation's files show what the store has; leaves them alone when it has nothing to show.
    async fn sync(&self, shared: &Shared, id: &ConversationId) -> Result<(), MirrorError> {
        let Some(name) = FolderName::of(id) else { return Ok(()) };
        let syncing = async {
            // Before the store is read, or an older state could be written over a newer one.
            let turn = self.turns.take(&name).await?;
            let Some(documents) = self.documents(shared, id).await? else { return Ok(()) };
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
    async fn documents(
        &self,
        shared: &Shared,
        id: &ConversationId,
    ) -> Result<Option<Documents>, MirrorError> {
        let turns = shared.store.turns(&Scope::Owner(self.owner.clone()), id).await?;
        let Some(conversation) = Conversation::of(id.clone(), turns) else { return Ok(None) };
        let asked = &conversation.last().new;
        let model = shared.expects(&asked.profile, &asked.ask).model;
        Ok(Some(Documents::of(&conversation, model)?))
    }

    /// Becomes the one process that follows; `None` while another one is.
    fn try_hold(&self) -> io::Result<Option<Held<'_>>> {
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

/// The right to follow; ends when dropped, or with the process.
struct Held<'a> {
    mirror: &'a Mirror,
    _file: File,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.mirror.is_holder.store(false, Ordering::Relaxed);
    }
}
