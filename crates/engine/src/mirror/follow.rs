//! The follower: one process at a time goes after the store's changes and writes what they mean for the files. If it
//! dies, another one takes over within a few seconds and goes on from the cursor.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use outlast_core::{ChangeWait, Rev, Scope, StoreError};
use tokio::time::Instant;

use super::backlog::Backlog;
use super::{Held, Mirror};
use crate::engine::Shared;
use crate::shutdown::Shutdown;

/// How often other processes' changes are looked for.
const EVERY: Duration = Duration::from_millis(250);
/// How long one look may last.
const LONGEST_LOOK: Duration = Duration::from_secs(5);
/// How often a process that does not follow asks whether it may.
const ASK_AGAIN: Duration = Duration::from_secs(2);
/// After an error, before the next look.
const AFTER_ERROR: Duration = Duration::from_millis(500);
/// How often the cursor is kept.
const KEEP_EVERY: Duration = Duration::from_secs(5);
/// How often it is looked whether a deletion was left half done.
const TIDY_EVERY: Duration = Duration::from_secs(60);
/// What one step takes on, so that a long backlog does not keep what happens now waiting.
const STEP: usize = 64;
/// How many conversations are written side by side.
const SIDE_BY_SIDE: usize = 8;
/// How long a process that leaves may take to write the last states.
const LEAVING: Duration = Duration::from_secs(1);

/// Follows until asked to stop, in turn with other processes.
pub(crate) async fn follow(shared: Arc<Shared>, mirror: Arc<Mirror>, stop: Shutdown) {
    let Some(_held) = hold(&mirror, &stop).await else { return };
    let Some(backlog) = begin(&shared, &mirror, &stop).await else { return };
    let kept = backlog.rev();
    let mut follower = Follower { shared: &shared, mirror: &mirror, backlog, kept };
    tokio::select! {
        () = follower.run() => {}
        () = stop.asked() => {}
    }
    if tokio::time::timeout(LEAVING, follower.finish()).await.is_err() {
        tracing::debug!("left before every file was written; the next process goes on");
    }
}

/// Waits until no other process follows; `None` when asked to stop first.
async fn hold<'a>(mirror: &'a Mirror, stop: &Shutdown) -> Option<Held<'a>> {
    let mut told = false;
    loop {
        match mirror.try_hold() {
            Ok(Some(held)) => return Some(held),
            Ok(None) => {}
            Err(error) if !told => {
                told = true;
                tracing::warn!(%error, "nobody can be made to follow the store for its files, will try again");
            }
            Err(_) => {}
        }
        tokio::select! {
            () = tokio::time::sleep(ASK_AGAIN) => {}
            () = stop.asked() => return None,
        }
    }
}

/// Finds where the last follower stopped; `None` when asked to stop first.
async fn begin(shared: &Shared, mirror: &Mirror, stop: &Shutdown) -> Option<Backlog> {
    loop {
        match shared.store.rev().await {
            Ok(latest) => return Some(Backlog::new(mirror.cursor.read(latest))),
            Err(error) => {
                tracing::warn!(%error, "the store cannot be read for its files, will try again");
            }
        }
        tokio::select! {
            () = tokio::time::sleep(AFTER_ERROR) => {}
            () = stop.asked() => return None,
        }
    }
}

struct Follower<'a> {
    shared: &'a Shared,
    mirror: &'a Mirror,
    backlog: Backlog,
    /// What the kept cursor says.
    kept: Rev,
}

impl Follower<'_> {
    /// Goes on for ever. May be dropped at any await: what it was at is still in the backlog.
    async fn run(&mut self) {
        let mut keep_at = Instant::now() + KEEP_EVERY;
        let mut tidy_at = Instant::now();
        loop {
            if tidy_at <= Instant::now() {
                self.mirror.finish_forgetting(self.shared).await;
                tidy_at = Instant::now() + TIDY_EVERY;
            }
            if let Err(error) = self.step(self.rest()).await {
                tracing::warn!(%error, "changes cannot be read for the files, will look again");
                tokio::time::sleep(AFTER_ERROR).await;
            }
            if keep_at <= Instant::now() {
                self.keep();
                keep_at = Instant::now() + KEEP_EVERY;
            }
        }
    }

    /// How long there is nothing to do but look.
    fn rest(&self) -> Duration {
        if self.backlog.has_unsorted() {
            return Duration::ZERO;
        }
        let due = self.backlog.next_due().map(|due| due.duration_since(Instant::now()));
        due.map_or(LONGEST_LOOK, |due| due.min(LONGEST_LOOK))
    }

    /// Looks, sorts some of what is found, and writes some of what is due.
    async fn step(&mut self, wait: Duration) -> Result<(), StoreError> {
        let wait = ChangeWait { at_most: wait, look_every: EVERY };
        let changes = self.shared.store.changes(self.backlog.rev(), wait).await?;
        self.backlog.take_in(&changes);
        self.sort(STEP).await?;
        self.write(Some(Instant::now()), STEP).await;
        Ok(())
    }

    /// The last look: writes everything, due or not, once.
    async fn finish(&mut self) {
        let wait = ChangeWait { at_most: Duration::ZERO, look_every: EVERY };
        match self.shared.store.changes(self.backlog.rev(), wait).await {
            Ok(changes) => self.backlog.take_in(&changes),
            Err(error) => tracing::debug!(%error, "left without a last look for the files"),
        }
        if let Err(error) = self.sort(usize::MAX).await {
            tracing::debug!(%error, "left before every change was sorted for the files");
        }
        self.write(None, usize::MAX).await;
        self.keep();
    }

    async fn sort(&mut self, most: usize) -> Result<(), StoreError> {
        let scope = Scope::Owner(self.mirror.owner().clone());
        for _ in 0..most {
            let Some(change) = self.backlog.next_unsorted() else { break };
            let conversation = match self.backlog.conversation_of(&change.id) {
                Some(known) => known,
                None => {
                    let job = self.shared.store.job(&scope, &change.id).await?;
                    job.and_then(|job| job.new.conversation)
                }
            };
            self.backlog.sort(conversation, Instant::now());
        }
        Ok(())
    }

    async fn write(&mut self, due_at: Option<Instant>, most: usize) {
        let (shared, mirror) = (self.shared, self.mirror);
        let written: Vec<_> = stream::iter(self.backlog.due(due_at, most))
            .map(|id| async move { (mirror.sync(shared, &id).await, id) })
            .buffer_unordered(SIDE_BY_SIDE)
            .collect()
            .await;
        let now = Instant::now();
        for (synced, id) in written {
            match synced {
                Ok(()) => {
                    mirror.trouble.mended(&id);
                    self.backlog.wrote(id, now);
                }
                Err(error) => {
                    mirror.trouble.failed(&id, mirror.logs_dir(), &error);
                    self.backlog.failed(&id, now);
                }
            }
        }
    }

    fn keep(&mut self) {
        let done = self.backlog.done();
        if done == self.kept {
            return;
        }
        match self.mirror.cursor.write(done) {
            Ok(()) => self.kept = done,
            Err(error) => tracing::debug!(%error, "how far the files have come cannot be kept"),
        }
    }
}
