//! Wake-ups inside one process: which callers wait for which job, and the signals for workers. A wake-up reports that
//! something changed, never what: its receiver reads the store.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outlast_core::rules::{Sharing, may_take};
use outlast_core::{
    Changes, ClaimedJob, HeldCallState, Job, JobId, Lease, Scope, StateKind, WorkerId,
};
use tokio::sync::{Notify, OnceCell, watch};
use tokio::time::Instant;

/// The waiting callers and the workers of one process.
#[derive(Default)]
pub(crate) struct Wakeups {
    waiting: Mutex<WaitingCallers>,
    /// Notified when a caller registers, so that the follower looks more often, or at all.
    interest: Notify,
    /// Notified when the follower should look at once.
    look: Notify,
    workers: Mutex<Vec<(WorkerId, Arc<WorkerSignals>)>>,
}

/// The maximum number of callers that wait at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollLimits {
    /// The maximum for all jobs together.
    pub in_all: usize,
    /// The maximum for one job.
    pub per_job: usize,
    /// The way in which owners share them.
    pub sharing: Sharing,
}

/// The callers that wait.
#[derive(Default)]
struct WaitingCallers {
    jobs: HashMap<JobId, JobWaiters>,
    watchers: usize,
    /// The number of them that wait on behalf of each owner.
    by: HashMap<Scope, usize>,
}

/// The callers that wait for one job.
#[derive(Default)]
struct JobWaiters {
    sender: watch::Sender<ReceivedNews>,
    /// Counted here, under the lock: if two leave at the same time, one must see that it is the last.
    watchers: usize,
    end: Arc<OnceCell<Job>>,
    /// True if a worker of this process has held the job since its creation, so that its end is reported here first.
    is_carried: bool,
}

/// The news that a waiter has received.
#[derive(Clone, Copy, Debug, Default)]
struct ReceivedNews {
    ended: bool,
    /// True if this process no longer runs the job, and has not ended it.
    given_up: bool,
}

/// The signals for a worker.
#[derive(Default)]
pub(crate) struct WorkerSignals {
    /// There may be a job to claim: one was queued, or its time has come.
    pub(crate) jobs_due: Notify,
    /// A worker claimed or released a job, or a running job has changed.
    pub(crate) claims: Notify,
    /// A lease may have ended.
    pub(crate) lease_ends: Notify,
    /// A job was cancelled.
    pub(crate) cancels: Notify,
    /// A held call that a worker ran is queued again.
    pub(crate) orphaned: Notify,
    /// A held call was created; its own process is about to claim it.
    pub(crate) untaken: Notify,
    /// Jobs that this process was asked to run past the queue.
    pub(crate) to_carry: Mutex<ToCarry>,
    /// Notified with every entry in `to_carry`.
    pub(crate) carry_asked: Notify,
    /// Jobs that ended, for the attempts that still work on them.
    pub(crate) ended: Mutex<Vec<JobId>>,
    /// Notified with every entry in `ended`.
    pub(crate) endings: Notify,
    /// Notified with every entry in `ended`, too: a notice of an end may be due.
    pub(crate) notices: Notify,
    /// Notified with every entry in `ended`, too: the retention of a job has begun.
    pub(crate) retention_began: Notify,
}

/// Jobs that do not go through the queue.
#[derive(Default)]
pub(crate) struct ToCarry {
    /// Jobs to be claimed by id.
    pub(crate) named: Vec<JobId>,
    /// Jobs that the worker holds already.
    taken: Vec<HeldStart>,
    /// True if the worker accepts no more jobs.
    is_leaving: bool,
}

/// A held call that this process's worker has held since its creation, about to be sent.
pub(crate) struct HeldStart {
    pub(crate) claimed: ClaimedJob,
    /// The start of the lease.
    pub(crate) since: Instant,
}

impl Wakeups {
    /// Starts to wait for a job, unless too many callers do already. Read the store after this; otherwise an end in
    /// between is missed.
    pub(crate) fn watch(
        self: &Arc<Self>,
        scope: &Scope,
        id: JobId,
        limits: PollLimits,
    ) -> Option<Watcher> {
        let (receiver, end, is_carried) = {
            let mut waiting = lock(&self.waiting);
            let here = waiting.jobs.get(&id).map_or(0, |job| job.watchers);
            let own = waiting.by.get(scope).copied().unwrap_or(0);
            let PollLimits { in_all, per_job, sharing } = limits;
            if here >= per_job || !may_take(own, waiting.watchers, 1, in_all, sharing) {
                return None;
            }
            waiting.watchers += 1;
            waiting.by.insert(scope.clone(), own + 1);
            let waiters = waiting.jobs.entry(id).or_default();
            waiters.watchers += 1;
            (waiters.sender.subscribe(), Arc::clone(&waiters.end), waiters.is_carried)
        };
        self.interest.notify_one();
        let (wakeups, scope) = (Arc::clone(self), scope.clone());
        Some(Watcher { wakeups, scope, id, receiver, end, is_carried })
    }

    /// Registers a worker until the returned value is dropped.
    pub(crate) fn register_worker(self: &Arc<Self>, worker: WorkerId) -> RegisteredWorker {
        let signals = Arc::new(WorkerSignals::default());
        lock(&self.workers).push((worker, Arc::clone(&signals)));
        self.look_now();
        RegisteredWorker { wakeups: Arc::clone(self), signals }
    }

    /// Returns the present interest in changes.
    pub(crate) fn interest(&self) -> Interest {
        if lock(&self.waiting).watchers > 0 {
            Interest::Waiting
        } else if !lock(&self.workers).is_empty() {
            Interest::Working
        } else {
            Interest::None
        }
    }

    /// Waits until interest may have grown. Cancel-safe.
    pub(crate) async fn interest_grew(&self) {
        self.interest.notified().await;
    }

    /// Waits until the follower should look at once. Cancel-safe.
    pub(crate) async fn look_wanted(&self) {
        self.look.notified().await;
    }

    /// Makes the follower look at once: a worker has registered, or another process reported a change.
    pub(crate) fn look_now(&self) {
        self.look.notify_one();
    }

    /// Passes changes on to the callers and workers that wait for them.
    pub(crate) fn publish(&self, changes: &Changes) {
        {
            let waiting = lock(&self.waiting);
            for change in &changes.jobs {
                if let Some(waiters) = waiting.jobs.get(&change.id) {
                    waiters.sender.send_modify(|seen| seen.ended |= change.state.is_terminal());
                }
            }
        }
        for (_, signals) in lock(&self.workers).iter() {
            signals.receive(changes);
        }
    }

    /// Notifies the callers that wait for this job that it has ended, and passes them the job: they need not read it.
    pub(crate) fn publish_end(&self, job: &Job) {
        let waiting = lock(&self.waiting);
        if let Some(waiters) = waiting.jobs.get(&job.id) {
            // An error means that a caller has read it before; an end never changes.
            drop(waiters.end.set(job.clone()));
            waiters.sender.send_modify(|seen| seen.ended = true);
        }
    }

    /// Records that an attempt at this job is over in this process.
    pub(crate) fn try_is_over(&self, id: &JobId) {
        let mut waiting = lock(&self.waiting);
        let Some(waiters) = waiting.jobs.get_mut(id) else { return };
        waiters.is_carried = false;
        if waiters.watchers == 0 {
            waiting.jobs.remove(id);
        } else {
            waiters.sender.send_modify(|seen| seen.given_up = !seen.ended);
        }
    }

    /// Asks this process's worker to run a job past the queue.
    pub(crate) fn carry(&self, id: JobId) {
        for (_, signals) in lock(&self.workers).iter() {
            lock(&signals.to_carry).named.push(id);
            signals.carry_asked.notify_one();
        }
    }

    /// Returns a worker of this process that accepts held calls.
    pub(crate) fn carrier(&self) -> Option<WorkerId> {
        let workers = lock(&self.workers);
        let staying = workers.iter().find(|(_, signals)| !lock(&signals.to_carry).is_leaving);
        staying.map(|(worker, _)| worker.clone())
    }

    /// Gives a job to the worker that holds it. Returns its lease if that worker has shut down.
    pub(crate) fn hand_over(&self, taken: HeldStart) -> Result<(), Lease> {
        let workers = lock(&self.workers);
        let worker = workers.iter().find(|(worker, _)| *worker == taken.claimed.lease.worker);
        match worker.map(|(_, signals)| (signals, lock(&signals.to_carry))) {
            Some((signals, mut to_carry)) if !to_carry.is_leaving => {
                let mut waiting = lock(&self.waiting);
                waiting.jobs.entry(taken.claimed.job.id).or_default().is_carried = true;
                to_carry.taken.push(taken);
                signals.carry_asked.notify_one();
                Ok(())
            }
            Some(_) | None => Err(taken.claimed.lease),
        }
    }

    /// Notifies workers that a job or a lease has become due by the clock.
    pub(crate) fn publish_due(&self) {
        for (_, signals) in lock(&self.workers).iter() {
            signals.jobs_due.notify_one();
            signals.lease_ends.notify_one();
            // A held call whose next attempt is due is not in the queue.
            signals.orphaned.notify_one();
        }
    }
}

impl WorkerSignals {
    /// Returns the jobs that were handed over since the last call.
    pub(crate) fn take_handed_over(&self) -> Vec<HeldStart> {
        std::mem::take(&mut lock(&self.to_carry).taken)
    }

    /// Stops the handover of jobs, and returns those that were handed over.
    pub(crate) fn leave(&self) -> Vec<HeldStart> {
        lock(&self.to_carry).is_leaving = true;
        self.take_handed_over()
    }

    fn receive(&self, changes: &Changes) {
        for change in &changes.jobs {
            match change.state {
                StateKind::Queued => {
                    self.jobs_due.notify_one();
                    self.claims.notify_one();
                    match change.uncarried {
                        HeldCallState::NotWaiting => {}
                        HeldCallState::Unclaimed => self.untaken.notify_one(),
                        HeldCallState::Abandoned => self.orphaned.notify_one(),
                    }
                }
                StateKind::Running | StateKind::Waiting => self.claims.notify_one(),
                StateKind::Succeeded | StateKind::Failed => self.notify_end(change.id),
                StateKind::Cancelled => {
                    self.notify_end(change.id);
                    self.cancels.notify_one();
                }
            }
        }
    }

    fn notify_end(&self, id: JobId) {
        lock(&self.ended).push(id);
        self.endings.notify_one();
        self.retention_began.notify_one();
        self.notices.notify_one();
    }
}

/// A worker's registration: it ends with the worker, in whatever way that ends.
pub(crate) struct RegisteredWorker {
    wakeups: Arc<Wakeups>,
    signals: Arc<WorkerSignals>,
}

impl Deref for RegisteredWorker {
    type Target = WorkerSignals;

    fn deref(&self) -> &WorkerSignals {
        &self.signals
    }
}

impl Drop for RegisteredWorker {
    fn drop(&mut self) {
        lock(&self.wakeups.workers).retain(|(_, other)| !Arc::ptr_eq(other, &self.signals));
    }
}

/// The reason for following changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    /// No reason: the follower rests.
    None,
    /// A worker that looks for jobs.
    Working,
    /// A caller that waits for a job.
    Waiting,
}

/// One caller's wait for one job; dropping it ends the wait.
pub(crate) struct Watcher {
    wakeups: Arc<Wakeups>,
    scope: Scope,
    id: JobId,
    receiver: watch::Receiver<ReceivedNews>,
    /// The job as it ended: read by the first caller that wakes, for all that wait.
    pub(crate) end: Arc<OnceCell<Job>>,
    /// True if this process has run the job since its creation. Then the job has not ended, or its end was reported
    /// here.
    pub(crate) is_carried: bool,
}

impl Watcher {
    /// Waits until the job has ended, or this process no longer runs it; returns whether it has ended. Cancel-safe.
    pub(crate) async fn wait_for_end_or_release(&mut self) -> bool {
        let told = self.receiver.wait_for(|seen| seen.ended || seen.given_up).await;
        told.is_ok_and(|seen| seen.ended)
    }

    /// Waits until the job has ended. Cancel-safe.
    pub(crate) async fn wait_for_end(&mut self) {
        // The wake-ups keep the sender as long as this receiver exists, so there is never an error.
        drop(self.receiver.wait_for(|seen| seen.ended).await);
    }

    /// Waits for the next change of the job. Cancel-safe: a change between two waits ends the second at once.
    pub(crate) async fn next_change(&mut self) {
        drop(self.receiver.changed().await);
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut waiting = lock(&self.wakeups.waiting);
        waiting.watchers -= 1;
        if let Entry::Occupied(mut own) = waiting.by.entry(self.scope.clone()) {
            *own.get_mut() -= 1;
            if *own.get() == 0 {
                own.remove();
            }
        }
        let Some(waiters) = waiting.jobs.get_mut(&self.id) else { return };
        waiters.watchers -= 1;
        if waiters.watchers == 0 && !waiters.is_carried {
            waiting.jobs.remove(&self.id);
        }
    }
}

/// Locks a mutex even if a holder panicked: the data here is never half-written.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for this moment, or for ever if there is none. Cancel-safe.
pub(crate) async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
