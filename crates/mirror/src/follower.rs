//! The follower: one process at a time reads the store's changes and updates the files. If it crashes, another
//! process takes over within a few seconds and continues from the cursor.

use std::fs::{File, TryLockError};
use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use outlast_core::{ChangeWait, Rev, Scope, StoreError};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::backlog::Backlog;
use crate::folder::{make_private_dir, open_private};
use crate::mirror::Mirror;

/// The interval at which changes of other processes are read.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The maximum duration of one read of changes when everything is written.
const MAX_LOOK: Duration = FINISH_DELETIONS_EVERY;
/// The interval at which other processes try to become the follower while there is something to write.
const TRY_LOCK_EVERY: Duration = Duration::from_secs(2);
/// The delay after the store could not be read.
const AFTER_ERROR: Duration = Duration::from_millis(500);
/// The interval at which the cursor is saved.
const SAVE_CURSOR_EVERY: Duration = Duration::from_secs(5);
/// The interval at which unfinished deletions are checked.
const FINISH_DELETIONS_EVERY: Duration = Duration::from_secs(60);
/// The amount of work in one step, so that a long backlog does not delay current changes.
const STEP: usize = 64;
/// The number of conversations that are written concurrently.
const SIDE_BY_SIDE: usize = 8;
/// The time an exiting process has to write the last states.
const MAX_LAST_WRITES: Duration = Duration::from_secs(1);

impl Mirror {
    /// Writes the files of the owner's conversations, taking turns with other processes, until `stop` is
    /// cancelled; then once more. Stop the workers first, so that the files show their last changes.
    pub async fn run(&self, stop: CancellationToken) {
        let start = async { (self.lock_follower().await, self.first_backlog().await) };
        let Some((_lock, backlog)) = stop.run_until_cancelled(start).await else { return };
        let saved = backlog.rev;
        let mut follower = Follower { mirror: self, backlog, saved };
        stop.run_until_cancelled(follower.run()).await;
        if tokio::time::timeout(MAX_LAST_WRITES, follower.finish()).await.is_err() {
            tracing::debug!("stopped before every file was written; the next process continues");
        }
    }

    /// Waits until no other process is the follower.
    async fn lock_follower(&self) -> FollowerLock<'_> {
        let mut warned = false;
        loop {
            match self.try_lock_follower() {
                Ok(Some(lock)) => return lock,
                Ok(None) => {}
                Err(error) if !warned => {
                    warned = true;
                    tracing::warn!(%error, "failed to acquire the lock for conversation files; will try again");
                }
                Err(_) => {}
            }
            tokio::time::sleep(TRY_LOCK_EVERY).await;
            self.follower_needed().await;
        }
    }

    /// Waits until there may be something to write that the follower has not written: if it exits before, nothing is missing.
    async fn follower_needed(&self) {
        let Ok(latest) = self.store.rev().await else { return };
        if self.cursor.read(latest) == latest {
            let wait = ChangeWait { at_most: MAX_LOOK, look_every: TRY_LOCK_EVERY };
            // Whatever ends the wait, the lock is tried.
            drop(self.store.changes(latest, wait).await);
        }
    }

    fn try_lock_follower(&self) -> io::Result<Option<FollowerLock<'_>>> {
        if let Some(dir) = self.follower_lock.parent() {
            make_private_dir(dir)?;
        }
        let file = open_private().create(true).truncate(false).open(&self.follower_lock)?;
        match file.try_lock() {
            Ok(()) => {
                self.is_follower.store(true, Ordering::Relaxed);
                Ok(Some(FollowerLock { mirror: self, _file: file }))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Continues where the last follower stopped.
    async fn first_backlog(&self) -> Backlog {
        loop {
            match self.store.rev().await {
                Ok(latest) => return Backlog::new(self.cursor.read(latest)),
                Err(error) => {
                    tracing::warn!(%error, "failed to read the store for conversation files; will try again");
                }
            }
            tokio::time::sleep(AFTER_ERROR).await;
        }
    }
}

/// The right to follow; released on drop or when the process exits.
struct FollowerLock<'a> {
    mirror: &'a Mirror,
    _file: File,
}

impl Drop for FollowerLock<'_> {
    fn drop(&mut self) {
        self.mirror.is_follower.store(false, Ordering::Relaxed);
    }
}

struct Follower<'a> {
    mirror: &'a Mirror,
    backlog: Backlog,
    /// The position in the saved cursor.
    saved: Rev,
}

impl Follower<'_> {
    /// Never returns. It may be dropped at any await: unfinished work stays in the backlog.
    async fn run(&mut self) {
        let mut save_at = Instant::now() + SAVE_CURSOR_EVERY;
        let mut deletions_at = Instant::now();
        loop {
            if deletions_at <= Instant::now() {
                self.mirror.finish_deletions().await;
                deletions_at = Instant::now() + FINISH_DELETIONS_EVERY;
            }
            if let Err(error) = self.step(self.rest()).await {
                tracing::warn!(%error, "failed to read changes for conversation files; will try again");
                tokio::time::sleep(AFTER_ERROR).await;
            }
            if save_at <= Instant::now() {
                self.save_cursor();
                save_at = Instant::now() + SAVE_CURSOR_EVERY;
            }
        }
    }

    /// Returns the time until the next conversation is due.
    fn rest(&self) -> Duration {
        if self.backlog.next_unsorted().is_some() {
            return Duration::ZERO;
        }
        let is_saved = self.backlog.last_written() == self.saved;
        let longest = if is_saved { MAX_LOOK } else { SAVE_CURSOR_EVERY };
        let due = self.backlog.next_due().map(|due| due.duration_since(Instant::now()));
        due.map_or(longest, |due| due.min(longest))
    }

    /// Reads changes, sorts some of them, and writes some of the conversations that are due.
    async fn step(&mut self, wait: Duration) -> Result<(), StoreError> {
        self.look(wait).await?;
        self.sort(STEP).await?;
        self.write(Some(Instant::now()), STEP).await;
        Ok(())
    }

    /// The last step: writes all conversations once, due or not.
    async fn finish(&mut self) {
        if let Err(error) = self.look(Duration::ZERO).await {
            tracing::debug!(%error, "stopped without a last read of changes");
        }
        if let Err(error) = self.sort(usize::MAX).await {
            tracing::debug!(%error, "stopped before every change was sorted");
        }
        self.write(None, usize::MAX).await;
        self.save_cursor();
    }

    async fn look(&mut self, wait: Duration) -> Result<(), StoreError> {
        let wait = ChangeWait { at_most: wait, look_every: LOOK_EVERY };
        let changes = self.mirror.store.changes(self.backlog.rev, wait).await?;
        self.backlog.add(&changes);
        Ok(())
    }

    /// Finds the conversations of changed jobs.
    async fn sort(&mut self, limit: usize) -> Result<(), StoreError> {
        let scope = Scope::Owner(self.mirror.owner.clone());
        for _ in 0..limit {
            let Some(change) = self.backlog.next_unsorted() else { break };
            let conversation = match self.backlog.known_conversation(&change.id) {
                Some(known) => known,
                None if !change.in_conversation => None,
                None => {
                    let job = self.mirror.store.job(&scope, &change.id).await?;
                    job.and_then(|job| job.new.conversation)
                }
            };
            self.backlog.sort(conversation, Instant::now());
        }
        Ok(())
    }

    async fn write(&mut self, due_at: Option<Instant>, limit: usize) {
        let mirror = self.mirror;
        let written: Vec<_> = stream::iter(self.backlog.due(due_at, limit))
            .map(|id| async move { (mirror.write(&id).await, id) })
            .buffer_unordered(SIDE_BY_SIDE)
            .collect()
            .await;
        let now = Instant::now();
        for (written, id) in written {
            if written {
                self.backlog.record_written(id, now);
            } else {
                self.backlog.record_failure(&id, now);
            }
        }
    }

    fn save_cursor(&mut self) {
        let done = self.backlog.last_written();
        if done == self.saved {
            return;
        }
        match self.mirror.cursor.write(done) {
            Ok(()) => self.saved = done,
            Err(error) => {
                tracing::debug!(%error, "failed to save the cursor of the conversation files")
            }
        }
    }
}
