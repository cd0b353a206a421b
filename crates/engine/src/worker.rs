//! A worker: claims jobs while it has free slots, works on them concurrently, and shuts down cleanly. It runs the
//! held calls of its process past the queue (`held_calls.rs`).

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use outlast_core::{ClaimedJob, Job, Profile, StoreError, WorkerId};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::attempt::Start;
use crate::engine::Engine;
use crate::held_calls::HeldCalls;
use crate::idle::{self, Idleness, LeaveTime};
use crate::lease_renewer::LeaseRenewer;
use crate::rescuer::{ClockTrust, Leases};
use crate::shared::Shared;
use crate::wakeups::{HeldStart, WorkerSignals};
use crate::{attempt, leaving, notices, remote_stops, rescuer, sweeper};

/// The wait after a failed claim, before the next.
const AFTER_ERROR: Duration = Duration::from_secs(1);

/// The maximum number of concurrent claims: other processes want their turn. The number only grows to this while the
/// queue has a job for every claim.
const MAX_CLAIMS_AT_ONCE: usize = 32;

/// The jobs that a worker runs in addition to its process's held calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerRole {
    /// Jobs from the queue, at most as many at a time as the engine's options allow.
    TheQueue,
    /// No other jobs.
    HeldCallsOnly,
}

/// One process's share of the work.
pub struct Worker {
    shared: Arc<Shared>,
    id: WorkerId,
    profiles: Vec<Profile>,
    takes: WorkerRole,
    renewer: Arc<LeaseRenewer>,
    is_current: Box<dyn Fn() -> bool + Send + Sync>,
}

/// The result of concurrent claims.
enum Claims {
    /// Each claim got a job.
    AllOfThem,
    /// The queue had fewer jobs than claims.
    NoMore,
}

impl Worker {
    /// Creates a worker over the engine's store and providers, with a fresh id.
    pub fn new(engine: &Engine, takes: WorkerRole) -> Self {
        let shared = Arc::clone(&engine.shared);
        let profiles = shared.providers.keys().cloned().collect();
        let id = WorkerId::new(uuid::Uuid::new_v4().simple().to_string());
        let (renewer, is_current) = (Arc::default(), Box::new(|| true));
        Self { shared, id, profiles, takes, renewer, is_current }
    }

    /// Sets a check that is called before every claim. Once it returns false, the worker claims nothing more from the
    /// queue, and leaves when its jobs have ended. For a worker whose configuration may be replaced.
    #[must_use]
    pub fn while_current(mut self, is_current: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.is_current = Box::new(is_current);
        self
    }

    /// Works until the engine's [`crate::Shutdown`] is asked, or sooner; returns when no attempt is under way. Fails
    /// only under [`LeaveTime::IdleFor`], with the store's last error.
    pub async fn run(self, until: LeaveTime) -> Result<(), StoreError> {
        let signals = self.shared.wakeups.register_worker(self.id.clone());
        let leaving = CancellationToken::new();
        let working = async {
            let worked = self.work(until, &signals).await;
            leaving.cancel();
            worked
        };
        let (worked, ()) = tokio::join!(working, notices::run(&self.shared, &signals, &leaving));
        worked
    }

    /// Works on jobs and performs the other tasks of a worker, until it shuts down.
    async fn work(&self, until: LeaveTime, signals: &WorkerSignals) -> Result<(), StoreError> {
        let (mut queued, mut held) = (JoinSet::new(), HeldCalls::new());
        let worked = tokio::select! {
            () = self.claim_and_spawn(until, signals, &mut queued, &mut held) => Ok(()),
            () = self.renewer.run(&self.shared, signals) => Ok(()),
            () = rescuer::watch(&self.shared, signals, &self.id, &self.renewer) => Ok(()),
            () = remote_stops::run(&self.shared, signals) => Ok(()),
            () = sweeper::run(&self.shared, signals) => Ok(()),
            () = rescuer::look_for_lost_jobs(&self.shared) => Ok(()),
            () = leaving::is_delayed(&self.shared) => Ok(()),
            error = idle::store_is_gone(&self.shared), if until != LeaveTime::Asked => Err(error),
        };
        let leaving =
            leaving::leave(&self.shared, &self.id, signals, [&mut queued, &mut held.tries]);
        // An attempt that winds down may need its lease for longer than that lasts.
        tokio::select! {
            () = leaving => worked,
            () = self.renewer.run(&self.shared, signals) => worked,
        }
    }

    /// Fills free slots with jobs until asked to stop.
    async fn claim_and_spawn(
        &self,
        until: LeaveTime,
        signals: &WorkerSignals,
        queued: &mut JoinSet<()>,
        held: &mut HeldCalls,
    ) {
        let mut trust = ClockTrust::new(&self.shared);
        if let Err(error) = rescuer::rescue(&self.shared, &mut trust, Leases::MayHaveEnded).await {
            tracing::warn!(%error, "dead workers cannot be looked for at the start");
        }
        let (mut at_once, mut idleness, mut has_failed) = (1, Idleness::new(until), false);
        while !self.shared.stop.is_asked() {
            let (id, profiles) = (&self.id, &self.profiles);
            for HeldStart { claimed, since } in signals.take_handed_over() {
                self.spawn(claimed, since, Start::AboutToSend, &mut held.tries);
            }
            let taken = Instant::now();
            for claimed in held.take(&self.shared, id, profiles, signals).await {
                self.spawn(claimed, taken, Start::Claimed, &mut held.tries);
            }
            while let Some(ended) = queued.try_join_next() {
                leaving::log_lost_attempt(&self.id, ended);
            }
            let is_current = (self.is_current)();
            if !is_current && queued.is_empty() && held.tries.is_empty() {
                return;
            }
            let is_draining = self.shared.stop.is_draining();
            if is_draining && queued.is_empty() && held.tries.is_empty() {
                self.shared.stop.ask();
                return;
            }
            let room = match self.takes {
                WorkerRole::TheQueue if is_current && !is_draining => {
                    self.shared.options.concurrency.saturating_sub(queued.len())
                }
                WorkerRole::TheQueue | WorkerRole::HeldCallsOnly => 0,
            };
            let claimed = self.claim(room.min(at_once), queued).await;
            has_failed = has_failed && claimed.is_err();
            let pause = match claimed {
                Ok(Claims::AllOfThem) if room > 0 => {
                    at_once = (2 * at_once).min(MAX_CLAIMS_AT_ONCE);
                    continue;
                }
                Ok(Claims::AllOfThem) => None,
                Ok(Claims::NoMore) => {
                    at_once = 1;
                    let has_tries = !queued.is_empty() || !held.tries.is_empty();
                    match idleness.without_jobs(&self.shared, profiles, has_tries).await {
                        ControlFlow::Continue(pause) => pause,
                        ControlFlow::Break(()) => return,
                    }
                }
                Err(error) => {
                    // Logged once: the store's own log has the course of a longer failure.
                    if !std::mem::replace(&mut has_failed, true) {
                        tracing::warn!(%error, "failed to claim a job; retrying until it succeeds");
                    }
                    at_once = 1;
                    let has_tries = !queued.is_empty() || !held.tries.is_empty();
                    if idleness.without_claims(has_tries).is_break() {
                        tracing::error!(%error, "failed to claim a job for minutes and have none in hand; leaving");
                        return;
                    }
                    Some(AFTER_ERROR)
                }
            };
            tokio::select! {
                () = signals.jobs_due.notified(), if room > 0 => {}
                ended = held.next(signals) => leaving::log_lost_attempt(&self.id, ended),
                Some(ended) = queued.join_next() => leaving::log_lost_attempt(&self.id, ended),
                () = tokio::time::sleep(pause.unwrap_or_default()), if pause.is_some() => {}
                () = self.shared.stop.wait() => {}
                () = self.shared.stop.wait_for_drain(), if !is_draining => {}
            }
        }
    }

    /// Claims this many jobs concurrently, so that they share the store's commit, and begins to work on them.
    async fn claim(&self, jobs: usize, tries: &mut JoinSet<()>) -> Result<Claims, StoreError> {
        if jobs == 0 {
            return Ok(Claims::AllOfThem);
        }
        if let Some(handover) = self.shared.options.dispatch.handover()
            && !handover.may_claim(&*self.shared.store, &self.profiles).await?
        {
            return Ok(Claims::NoMore);
        }
        let taken = Instant::now();
        let claims = (0..jobs).map(|_| self.shared.claim(&self.id, &self.profiles));
        let mut outcome = Ok(Claims::AllOfThem);
        // Every claimed job is worked on, whatever the result of the other claims.
        for claimed in join_all(claims).await {
            match claimed {
                Ok(Some(claimed)) => self.spawn(claimed, taken, Start::Claimed, tries),
                Ok(None) if outcome.is_ok() => outcome = Ok(Claims::NoMore),
                Ok(None) => {}
                Err(error) => outcome = Err(error),
            }
        }
        outcome
    }

    /// Begins to work on a job that was claimed at this moment or later.
    fn spawn(&self, claimed: ClaimedJob, taken: Instant, start: Start, tries: &mut JoinSet<()>) {
        let Job { id, new, failures, .. } = &claimed.job;
        let (conversation, attempt) = (new.conversation_id(), failures.len() + 1);
        tracing::info!(job.id = %id, conversation.id = conversation, tool = new.tool(), priority = new.priority, attempt, "Job dequeued");
        let lease = self.renewer.hold(claimed.lease, taken, self.shared.options.lease);
        tries.spawn(attempt::work(Arc::clone(&self.shared), claimed.job, lease, start));
    }
}
