//! Held calls: the caller waits for the result of the call, and may give up and call again. The same call (owner,
//! tool, input) is the same job for as long as its key is valid ([`outlast_core::KeyLife`]). The process that
//! accepted the call runs its job, at once and past the queue. The held call of a process that crashed is an orphan,
//! which the next worker with its profile runs.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;

use outlast_core::{
    Claimed, InitialWorker, Job, JobId, Key, Lease, NewJob, Profile, StateKind, StoreError,
    WorkerId,
};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use crate::engine::{Engine, Started};
use crate::leaving;
use crate::shared::Shared;
use crate::wakeups::{Taken, WorkerSignals, locked, until};

/// The age from which a held call in the state Queued counts as abandoned by a process that crashed before it claimed
/// the call.
const TAKEN_BY_NOW: Duration = Duration::from_secs(1);
/// The wait after an error of the store, before the next look.
const AFTER_ERROR: Duration = Duration::from_secs(1);

impl Engine {
    /// Starts a held call, or attaches to the same call made before: while its job is unfinished, and for a while
    /// after its end.
    pub async fn start_held(&self, job: NewJob, key: Key) -> Result<Started, StoreError> {
        let carrier = self.carrier(&job);
        let started = match carrier {
            Some(carrier) => {
                // A separate task: a caller that disconnects must not leave a held job without an attempt.
                let starting = self.clone().start_carried(job, key, carrier);
                let started = crate::spawn(starting).await;
                started.map_err(|error| StoreError::Unavailable(error.into()))??
            }
            None => self.start(job, Some(key)).await?,
        };
        let state = started.job.state.kind();
        if state.is_terminal() || (!started.existed && state == StateKind::Running) {
            return Ok(started);
        }
        if started.existed {
            // The process that ran the job may have crashed. If so, the job is queued from now on, and this process
            // claims it.
            self.find_dead_workers().await;
        }
        // This includes a promised job in the queue: a caller waits here for it, so it does not wait for a slot.
        self.carry(&started.job.id);
        Ok(started)
    }

    /// Returns this process's worker, if it can run the job from the start. A promised job waits for its turn in the
    /// queue.
    fn carrier(&self, job: &NewJob) -> Option<InitialWorker> {
        if job.visibility.goes_through_queue() || !self.has_provider(&job.profile) {
            return None;
        }
        let worker = self.shared.wakeups.carrier()?;
        Some(InitialWorker { worker, lease: self.shared.options.lease })
    }

    async fn start_carried(
        self,
        job: NewJob,
        key: Key,
        carrier: InitialWorker,
    ) -> Result<Started, StoreError> {
        let (worker, since) = (carrier.worker.clone(), Instant::now());
        let started = self.insert(job, Some(key), None, Some(carrier)).await?;
        if !started.existed && started.job.state.kind() == StateKind::Running {
            let job = started.job.clone();
            let lease = Lease { job: job.id, worker, fence: job.fence };
            let taken = Taken { claimed: Claimed { job, lease }, since };
            if let Err(lease) = self.shared.wakeups.hand_over(taken) {
                // The worker has shut down.
                leaving::release_unsent(&self.shared, &lease).await;
            }
        }
        Ok(started)
    }

    /// Runs the job in this process if it is a held call. A promised job stays in the queue, for its slot.
    pub fn carry_if_held(&self, job: &Job) {
        if !job.new.visibility.goes_through_queue() {
            self.carry(&job.id);
        }
    }

    /// Runs this job in this process now, even past the queue, for a caller who waits for it here.
    pub fn carry(&self, id: &JobId) {
        self.shared.wakeups.carry(*id);
    }

    /// Records that a call was answered with the outcome of this job.
    pub async fn record_answer(&self, id: &JobId) -> Result<(), StoreError> {
        self.shared.store.record_answer(id).await
    }

    /// Records the answer without waiting for the write: every later request of this process to the store finds it
    /// recorded. If it cannot be stored, the outcome is replayed once more than necessary.
    pub fn record_answer_soon(&self, id: &JobId) {
        let (shared, id) = (Arc::clone(&self.shared), *id);
        let mut recording = Box::pin(async move {
            if let Err(error) = shared.store.record_answer(&id).await {
                tracing::warn!(job.id = %id, %error, "not recorded that a call was answered");
            }
        });
        // The request reaches the store here and now, so that no other request precedes it.
        if recording.as_mut().now_or_never().is_none() {
            crate::spawn(recording);
        }
    }
}

/// The worker's part in held calls: it claims them by id and keeps the attempts at them.
pub(crate) struct HeldCalls {
    /// The attempts under way.
    pub(crate) tries: JoinSet<()>,
    /// The time of the next look for orphans.
    look_at: Option<Instant>,
}

impl HeldCalls {
    /// Looks for orphans first: an earlier process may have left some.
    pub(crate) fn new() -> Self {
        Self { tries: JoinSet::new(), look_at: Some(Instant::now()) }
    }

    /// Waits until there may be a held call to run, or an attempt at one has ended. Cancel-safe.
    pub(crate) async fn next(&mut self, signals: &WorkerSignals) -> Result<(), JoinError> {
        tokio::select! {
            () = signals.carry_asked.notified() => {}
            () = signals.orphaned.notified() => self.look_at = Some(Instant::now()),
            () = signals.untaken.notified() => {
                self.look_at.get_or_insert_with(|| Instant::now() + TAKEN_BY_NOW);
            }
            () = until(self.look_at) => {}
            Some(ended) = self.tries.join_next() => return ended,
        }
        Ok(())
    }

    /// Claims the held calls that this process was asked to run, and orphans. Calls that another worker has claimed
    /// are left to that worker.
    pub(crate) async fn take(
        &mut self,
        shared: &Shared,
        worker: &WorkerId,
        profiles: &[Profile],
        signals: &WorkerSignals,
    ) -> Vec<Claimed> {
        let mut asked_for = std::mem::take(&mut locked(&signals.to_carry).named);
        if self.look_at.is_some_and(|moment| moment <= Instant::now()) {
            self.look_at = None;
            match shared.store.unclaimed_held_calls(profiles).await {
                Ok(orphans) => asked_for.extend(orphans),
                Err(error) => {
                    tracing::warn!(%error, "failed to look for held calls without a worker; will try again");
                    self.look_at = Some(Instant::now() + AFTER_ERROR);
                }
            }
        }
        let mut taken = Vec::new();
        for id in asked_for {
            let taking = async {
                match shared.options.dispatch.may_take(&*shared.store, &id).await? {
                    true => shared.take(worker, profiles, &id).await,
                    false => Ok(None),
                }
            };
            match taking.await {
                Ok(claimed) => taken.extend(claimed),
                Err(error) => {
                    tracing::warn!(job.id = %id, %error, "a held call cannot be taken, will try again");
                    locked(&signals.to_carry).named.push(id);
                    self.look_at = Some(Instant::now() + AFTER_ERROR);
                }
            }
        }
        taken
    }
}
