//! A worker: claims jobs while it has room, works on them side by side, and leaves cleanly.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use outlast_core::{Claimed, Profile, StoreError, WorkerId};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use crate::attempt;
use crate::engine::{Engine, Shared};
use crate::keeper::Keeper;
use crate::rescuer::ClockTrust;
use crate::wakeups::{WorkerSignals, locked};
use crate::{remote_stops, rescuer, sweeper};

/// How long attempts may take to give their jobs back when the worker leaves.
const LEAVING: Duration = Duration::from_millis(1_500);
/// How often a worker that leaves when idle looks whether it is.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// After a claim that failed, before the next.
const AFTER_ERROR: Duration = Duration::from_secs(1);
/// How long a worker that leaves when idle puts up with a store that cannot be read, whatever it has in hand. Whoever
/// left it behind may have removed the store since, and nobody would come to ask it to leave.
const GIVES_UP: Duration = Duration::from_secs(300);
/// How often it looks whether the store can be read.
const LOOK_AT_STORE: Duration = Duration::from_secs(10);

/// A held call that is still queued so long after it was made was left by a process that died before it took it.
const TAKEN_BY_NOW: Duration = Duration::from_secs(1);

/// So many claims are made at once, at most: other processes want their turn. There are as many as that only while the
/// queue gives whatever is asked of it.
const AT_ONCE: usize = 32;

/// When a worker leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// When it is asked to.
    Asked,
    /// When there is nothing left that it could do, or it is asked to, or the store cannot be read for minutes.
    Idle,
}

/// What a worker carries beside the held calls of its own process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Jobs from the queue, as many at a time as the engine's options say.
    TheQueue,
    /// Nothing.
    HeldCallsOnly,
}

/// One process's share of the work.
pub struct Worker {
    shared: Arc<Shared>,
    id: WorkerId,
    profiles: Vec<Profile>,
    takes: Takes,
}

/// What came of claims made at once.
enum Claims {
    /// Each got a job.
    AllOfThem,
    /// The queue had fewer jobs than that.
    NoMore,
}

/// The tries under way.
#[derive(Default)]
struct Crew {
    /// At jobs from the queue.
    queued: JoinSet<()>,
    /// At held calls, of which there may be any number.
    held: JoinSet<()>,
}

impl Crew {
    fn is_empty(&self) -> bool {
        self.queued.is_empty() && self.held.is_empty()
    }

    /// Waits for a try to end; for ever when there is none. Cancel-safe.
    async fn next_end(&mut self) -> Result<(), JoinError> {
        tokio::select! {
            Some(ended) = self.queued.join_next() => ended,
            Some(ended) = self.held.join_next() => ended,
            else => std::future::pending().await,
        }
    }
}

impl Worker {
    /// A worker over the engine's store and providers, under a fresh name.
    pub fn new(engine: &Engine, takes: Takes) -> Self {
        let shared = Arc::clone(&engine.shared);
        let profiles = shared.providers.keys().cloned().collect();
        let id = WorkerId::new(uuid::Uuid::new_v4().simple().to_string());
        Self { shared, id, profiles, takes }
    }

    /// Works until the engine's [`crate::Shutdown`] is asked, or sooner; returns when all is quiet. Fails only under
    /// [`Until::Idle`], with what the store said last.
    pub async fn run(self, until: Until) -> Result<(), StoreError> {
        let desk = self.shared.hub.open_desk();
        let keeper = Arc::new(Keeper::default());
        let mut crew = Crew::default();
        let worked = tokio::select! {
            () = self.claim_and_spawn(until, &desk, &keeper, &mut crew) => Ok(()),
            () = keeper.run(&self.shared, &desk) => Ok(()),
            () = rescuer::watch(&self.shared, &desk) => Ok(()),
            () = remote_stops::run(&self.shared, &desk) => Ok(()),
            () = sweeper::run(&self.shared, &desk) => Ok(()),
            error = self.store_is_gone(), if until == Until::Idle => Err(error),
        };
        if tokio::time::timeout(LEAVING, self.drain(&mut crew)).await.is_err() {
            // What is left is waiting for a provider's answer; its job is found by the next process.
            tracing::warn!(worker.id = %self.id, "left before every job was given back");
        }
        if let Err(error) = self.shared.store.dismiss(&self.id).await {
            tracing::warn!(worker.id = %self.id, %error, "could not be taken off the list of workers");
        }
        worked
    }

    /// Takes the tries off the list that have ended.
    fn reap(&self, crew: &mut Crew) {
        while let Some(ended) = crew.queued.try_join_next() {
            self.log_lost_attempt(ended);
        }
    }

    async fn drain(&self, crew: &mut Crew) {
        while !crew.is_empty() {
            let ended = crew.next_end().await;
            self.log_lost_attempt(ended);
        }
    }

    /// Fills free room with jobs until asked to stop.
    async fn claim_and_spawn(
        &self,
        until: Until,
        desk: &WorkerSignals,
        keeper: &Arc<Keeper>,
        crew: &mut Crew,
    ) {
        if let Err(error) = rescuer::rescue(&self.shared, &mut ClockTrust::new(&self.shared)).await
        {
            tracing::warn!(%error, "dead workers cannot be looked for at the start");
        }
        let mut look_at = self.carry_orphans(desk).await;
        let mut at_once = 1;
        while !self.shared.stop.is_asked() {
            self.carry_held(desk, keeper, crew).await;
            self.reap(crew);
            let room = self.room(crew);
            let mut pause = None;
            if room > 0 {
                match self.claim(room.min(at_once), keeper, &mut crew.queued).await {
                    Ok(Claims::AllOfThem) => {
                        at_once = (2 * at_once).min(AT_ONCE);
                        continue;
                    }
                    Ok(Claims::NoMore) if until == Until::Idle && crew.is_empty() => {
                        match self.nothing_left().await {
                            Ok(true) => return,
                            // A try that waits for its time, or a stop that is owed.
                            Ok(false) => pause = Some(LOOK_AGAIN),
                            Err(error) => {
                                tracing::warn!(%error, "what is left cannot be read, will try again");
                                pause = Some(AFTER_ERROR);
                            }
                        }
                    }
                    Ok(Claims::NoMore) => {}
                    Err(error) => {
                        tracing::warn!(%error, "no job can be claimed, will try again");
                        pause = Some(AFTER_ERROR);
                    }
                }
                at_once = 1;
            }
            let has_room = room > 0;
            tokio::select! {
                () = desk.work.notified(), if has_room => {}
                () = desk.holds.notified() => {}
                () = desk.orphans.notified() => look_at = self.carry_orphans(desk).await,
                () = desk.untaken.notified() => {
                    look_at.get_or_insert_with(|| Instant::now() + TAKEN_BY_NOW);
                }
                () = at(look_at) => look_at = self.carry_orphans(desk).await,
                ended = crew.next_end() => self.log_lost_attempt(ended),
                () = tokio::time::sleep(pause.unwrap_or_default()), if pause.is_some() => {}
                () = self.shared.stop.asked() => {}
            }
        }
    }

    /// Waits until the store could not be read for so long that it will not come back.
    async fn store_is_gone(&self) -> StoreError {
        let mut since = None;
        loop {
            tokio::time::sleep(LOOK_AT_STORE).await;
            let Err(error) = self.shared.store.rev().await else {
                since = None;
                continue;
            };
            if since.get_or_insert_with(Instant::now).elapsed() >= GIVES_UP {
                tracing::error!(%error, "the store is gone, leaving");
                return error;
            }
        }
    }

    /// So many jobs can be taken from the queue.
    fn room(&self, crew: &Crew) -> usize {
        match self.takes {
            Takes::TheQueue => self.shared.options.concurrency.saturating_sub(crew.queued.len()),
            Takes::HeldCallsOnly => 0,
        }
    }

    /// Claims so many jobs, side by side, so that they share the store's commit, and begins to work on them.
    async fn claim(
        &self,
        jobs: usize,
        keeper: &Arc<Keeper>,
        attempts: &mut JoinSet<()>,
    ) -> Result<Claims, StoreError> {
        let store = &self.shared.store;
        let lease = self.shared.options.lease;
        let claims = (0..jobs).map(|_| store.claim(&self.id, &self.profiles, lease));
        let mut outcome = Ok(Claims::AllOfThem);
        // What was claimed is worked on, whatever became of the others.
        for claimed in join_all(claims).await {
            match claimed {
                Ok(Some(claimed)) => self.spawn(claimed, keeper, attempts),
                Ok(None) if outcome.is_ok() => outcome = Ok(Claims::NoMore),
                Ok(None) => {}
                Err(error) => outcome = Err(error),
            }
        }
        outcome
    }

    /// Takes the held calls this process was asked to carry. One that somebody else has taken is theirs.
    async fn carry_held(&self, desk: &WorkerSignals, keeper: &Arc<Keeper>, crew: &mut Crew) {
        let held = std::mem::take(&mut *locked(&desk.held));
        for id in held {
            let lease = self.shared.options.lease;
            match self.shared.store.take(&self.id, &self.profiles, &id, lease).await {
                Ok(Some(claimed)) => self.spawn(claimed, keeper, &mut crew.held),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(job.id = %id, %error, "a held call cannot be taken, will try again");
                    locked(&desk.held).push(id);
                    tokio::select! {
                        () = tokio::time::sleep(AFTER_ERROR) => desk.holds.notify_one(),
                        () = self.shared.stop.asked() => return,
                    }
                }
            }
        }
    }

    /// Carries the held calls of its profiles whose process died, whichever process noticed that. Returns when to look
    /// again, if they could not be looked for.
    async fn carry_orphans(&self, desk: &WorkerSignals) -> Option<Instant> {
        match self.shared.store.orphans(&self.profiles).await {
            Ok(orphans) if orphans.is_empty() => None,
            Ok(orphans) => {
                locked(&desk.held).extend(orphans);
                desk.holds.notify_one();
                None
            }
            Err(error) => {
                tracing::warn!(%error, "held calls without a carrier cannot be looked for, will try again");
                Some(Instant::now() + AFTER_ERROR)
            }
        }
    }

    /// Whether neither a job nor an owed stop is left for this worker, now or later.
    async fn nothing_left(&self) -> Result<bool, StoreError> {
        let store = &self.shared.store;
        Ok(store.queued(&self.profiles).await? == 0
            && store.orphans(&self.profiles).await?.is_empty()
            && store.owed_stops(&self.profiles, 1).await?.is_empty())
    }

    fn spawn(&self, claimed: Claimed, keeper: &Arc<Keeper>, attempts: &mut JoinSet<()>) {
        tracing::info!(
            job.id = %claimed.job.id,
            conversation.id = claimed.job.new.conversation_id(),
            tool = claimed.job.new.tool(),
            priority = claimed.job.new.priority,
            attempt = claimed.job.failures.len() + 1,
            "Job dequeued"
        );
        let kept = keeper.keep(claimed.lease);
        attempts.spawn(attempt::work(Arc::clone(&self.shared), claimed.job, kept));
    }

    fn log_lost_attempt(&self, ended: Result<(), JoinError>) {
        if let Err(error) = ended {
            tracing::error!(worker.id = %self.id, %error, "an attempt ended without settling its job");
        }
    }
}

/// Waits for this moment; for ever when there is none. Cancel-safe.
async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
