//! Held calls: a caller waits for the result of its own call, and may give up and call again. The same call (owner,
//! tool, input) is the same job for as long as its key is valid ([`outlast_core::KeyLife`]). The process that took the
//! call carries its job, at once and beside the queue; the held call of a process that died is an orphan, which the next
//! worker with its profile carries.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;

use outlast_core::{
    Carrier, Claimed, Dead, Job, JobId, Key, Lease, NewJob, Profile, StateKind, StoreError,
    WorkerId,
};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use crate::engine::{Engine, Started};
use crate::leaving;
use crate::shared::Shared;
use crate::wakeups::{WorkerSignals, locked, until};

/// A held call that is still in the state Queued so long after it was made was left by a process that died before it
/// took the call.
const TAKEN_BY_NOW: Duration = Duration::from_secs(1);
/// How late a process without a worker sees that another's has died.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How long after an error of the store the next look is.
const AFTER_ERROR: Duration = Duration::from_secs(1);

impl Engine {
    /// Starts a held call, or attaches to the same call made before: while its job is unfinished, and for a while after
    /// its end.
    pub async fn start_held(&self, job: NewJob, key: Key) -> Result<Started, StoreError> {
        let carrier = self.carrier(&job);
        let started = match carrier {
            Some(carrier) => {
                // A task of its own: a caller that goes away must not leave a job that is held and that no try works on.
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
            // The process that carried the job may have died; then the job waits from now on, and this process takes it.
            self.find_dead_workers().await;
        }
        // Also a promised job in the queue: a caller waits here for it, so it does not wait for a slot.
        self.carry(&started.job.id);
        Ok(started)
    }

    /// This process's worker, if it can carry the job from the start. A promised job has its turn in the queue.
    fn carrier(&self, job: &NewJob) -> Option<Carrier> {
        if job.visibility.goes_through_queue() || !self.has_provider(&job.profile) {
            return None;
        }
        let worker = self.shared.wakeups.carrier()?;
        Some(Carrier { worker, lease: self.shared.options.lease })
    }

    async fn start_carried(
        self,
        job: NewJob,
        key: Key,
        carrier: Carrier,
    ) -> Result<Started, StoreError> {
        let (worker, since) = (carrier.worker.clone(), Instant::now());
        let started = self.insert(job, Some(key), None, Some(carrier)).await?;
        if !started.existed && started.job.state.kind() == StateKind::Running {
            let job = started.job.clone();
            let lease = Lease { job: job.id, worker, fence: job.fence };
            let taken = Taken { claimed: Claimed { job, lease }, since };
            if let Err(lease) = self.shared.wakeups.hand_over(taken) {
                // The worker has left.
                leaving::give_back(&self.shared, &lease).await;
            }
        }
        Ok(started)
    }

    /// Carries the job in this process if it is a held call. A promised job is left in the queue, for its slot.
    pub fn carry_if_held(&self, job: &Job) {
        if !job.new.visibility.goes_through_queue() {
            self.carry(&job.id);
        }
    }

    /// Carries this job in this process, now, also past the queue: for a caller who waits for it here.
    pub fn carry(&self, id: &JobId) {
        self.shared.wakeups.carry(*id);
    }

    /// Records that a call was answered with the outcome of this job.
    pub async fn record_answer(&self, id: &JobId) -> Result<(), StoreError> {
        self.shared.store.record_answer(id).await
    }

    /// The same without waiting for it: what this process asks of the store later finds it recorded. If it cannot be stored, the
    /// outcome is told once more than need be.
    pub fn record_answer_soon(&self, id: &JobId) {
        let (shared, id) = (Arc::clone(&self.shared), *id);
        let mut recording = Box::pin(async move {
            if let Err(error) = shared.store.record_answer(&id).await {
                tracing::warn!(job.id = %id, %error, "not recorded that a call was answered");
            }
        });
        // Asked of the store here and now, so that nothing comes before it.
        if recording.as_mut().now_or_never().is_none() {
            crate::spawn(recording);
        }
    }

    /// Puts back the jobs of workers that are known to be dead, so that what is read next is true. Best effort: a store
    /// that cannot be written is read as it is.
    pub async fn find_dead_workers(&self) {
        if let Err(error) = self.shared.store.rescue(&Dead::Proven).await {
            tracing::warn!(%error, "dead workers cannot be looked for");
        }
    }

    /// Does so again and again, where no worker of this process does. Never ends.
    pub async fn keep_finding_dead_workers(&self) {
        loop {
            self.find_dead_workers().await;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// A held call that this process's worker holds since it was made, about to be sent.
pub(crate) struct Taken {
    pub(crate) claimed: Claimed,
    /// The lease counts from here.
    pub(crate) since: Instant,
}

/// A worker's side of held calls: it takes them by name, and the tries at them are under way here.
pub(crate) struct HeldCalls {
    /// The tries under way.
    pub(crate) tries: JoinSet<()>,
    /// When to look for orphans next.
    look_at: Option<Instant>,
}

impl HeldCalls {
    /// Looks for orphans first: an earlier process may have left some.
    pub(crate) fn new() -> Self {
        Self { tries: JoinSet::new(), look_at: Some(Instant::now()) }
    }

    /// Waits until there may be a held call to carry, or a try at one has ended. Cancel-safe.
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

    /// Takes the held calls that this process was asked to carry, and orphans. What another worker has taken is left to
    /// that worker.
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
            match shared.store.orphans(profiles).await {
                Ok(orphans) => asked_for.extend(orphans),
                Err(error) => {
                    tracing::warn!(%error, "held calls without a carrier cannot be looked for, will try again");
                    self.look_at = Some(Instant::now() + AFTER_ERROR);
                }
            }
        }
        let mut taken = Vec::new();
        for id in asked_for {
            match shared.store.take(worker, profiles, &id, shared.options.lease).await {
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
