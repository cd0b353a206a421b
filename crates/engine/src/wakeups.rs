//! Wake-ups inside one process: which callers wait for which job, and what a worker has to look at. A wake-up says that
//! something changed, never what: the one that is woken reads the store.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outlast_core::rules::{Sharing, may_take};
use outlast_core::{Changes, Job, JobId, Lease, Scope, StateKind, Uncarried, WorkerId};
use tokio::sync::{Notify, OnceCell, watch};
use tokio::time::Instant;

use crate::held_calls::Taken;

/// The waiting callers and the workers of one process.
#[derive(Default)]
pub(crate) struct Wakeups {
    waiting: Mutex<Waiting>,
    /// Rung when a caller comes, so that the follower looks more often, or at all.
    interest: Notify,
    /// Rung when the follower should look at once.
    look: Notify,
    workers: Mutex<Vec<(WorkerId, Arc<WorkerSignals>)>>,
}

/// How many callers may wait at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollLimits {
    /// For any job.
    pub in_all: usize,
    /// For the same job.
    pub per_job: usize,
    /// Whether several owners share them.
    pub sharing: Sharing,
}

/// The callers that wait.
#[derive(Default)]
struct Waiting {
    jobs: HashMap<JobId, JobWaiters>,
    watchers: usize,
    /// How many of them wait on behalf of each owner.
    by: HashMap<Scope, usize>,
}

/// The callers that wait for one job.
#[derive(Default)]
struct JobWaiters {
    sender: watch::Sender<Seen>,
    /// Counted here, under the lock: of two that leave at once, one must see that it is the last.
    watchers: usize,
    end: Arc<OnceCell<Job>>,
    /// A worker of this process has held the job since it was made, so that its end is told here first.
    is_carried: bool,
}

/// What a waiter has been told.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    ended: bool,
    /// This process no longer carries the job, and has not ended it.
    given_up: bool,
}

/// What a worker is told of.
#[derive(Default)]
pub(crate) struct WorkerSignals {
    /// There may be a job to claim: one came into the queue, or its time has come.
    pub(crate) jobs_due: Notify,
    /// A worker claimed a job or gave one back, or a running job has changed.
    pub(crate) claims: Notify,
    /// A lease may have ended.
    pub(crate) lease_ends: Notify,
    /// A job was cancelled.
    pub(crate) cancels: Notify,
    /// A held call that a worker carried waits again.
    pub(crate) orphaned: Notify,
    /// A held call was made; its own process is about to take it.
    pub(crate) untaken: Notify,
    /// Jobs that this process was asked to carry, beside the queue.
    pub(crate) to_carry: Mutex<ToCarry>,
    /// Rung with every entry in `to_carry`.
    pub(crate) carry_asked: Notify,
    /// Jobs that ended, for the attempts that still work on them.
    pub(crate) ended: Mutex<Vec<JobId>>,
    /// Rung with every entry in `ended`.
    pub(crate) endings: Notify,
    /// Rung with them too: a notice of an end may be due.
    pub(crate) notices: Notify,
    /// Rung with them too: the retention of a job has begun.
    pub(crate) retention_began: Notify,
}

/// Jobs beside the queue.
#[derive(Default)]
pub(crate) struct ToCarry {
    /// To be taken by name.
    pub(crate) named: Vec<JobId>,
    /// The worker's own already.
    taken: Vec<Taken>,
    /// The worker takes no more.
    is_leaving: bool,
}

impl Wakeups {
    /// Starts to wait for a job, unless too many do already. Read the store after this, or an end in between is
    /// missed.
    pub(crate) fn watch(
        self: &Arc<Self>,
        scope: &Scope,
        id: JobId,
        limits: PollLimits,
    ) -> Option<Watcher> {
        let (receiver, end, is_carried) = {
            let mut waiting = locked(&self.waiting);
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

    /// Registers a worker until the answer is dropped.
    pub(crate) fn register_worker(self: &Arc<Self>, worker: WorkerId) -> RegisteredWorker {
        let signals = Arc::new(WorkerSignals::default());
        locked(&self.workers).push((worker, Arc::clone(&signals)));
        self.look_now();
        RegisteredWorker { wakeups: Arc::clone(self), signals }
    }

    /// What changes are wanted for just now.
    pub(crate) fn interest(&self) -> Interest {
        if locked(&self.waiting).watchers > 0 {
            Interest::Waiting
        } else if !locked(&self.workers).is_empty() {
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

    /// Makes the follower look at once: a worker has come, or another process told of a change.
    pub(crate) fn look_now(&self) {
        self.look.notify_one();
    }

    /// Passes changes on to the callers and workers that wait for them.
    pub(crate) fn publish(&self, changes: &Changes) {
        {
            let waiting = locked(&self.waiting);
            for change in &changes.jobs {
                if let Some(waiters) = waiting.jobs.get(&change.id) {
                    waiters.sender.send_modify(|seen| seen.ended |= change.state.is_terminal());
                }
            }
        }
        for (_, signals) in locked(&self.workers).iter() {
            signals.hear(changes);
        }
    }

    /// Tells those who wait for this job that it has ended, and how: they need not read it.
    pub(crate) fn publish_end(&self, job: &Job) {
        let waiting = locked(&self.waiting);
        if let Some(waiters) = waiting.jobs.get(&job.id) {
            // Read by a caller before: an end never changes.
            drop(waiters.end.set(job.clone()));
            waiters.sender.send_modify(|seen| seen.ended = true);
        }
    }

    /// Notes that a try at this job is over in this process.
    pub(crate) fn try_is_over(&self, id: &JobId) {
        let mut waiting = locked(&self.waiting);
        let Some(waiters) = waiting.jobs.get_mut(id) else { return };
        waiters.is_carried = false;
        if waiters.watchers == 0 {
            waiting.jobs.remove(id);
        } else {
            waiters.sender.send_modify(|seen| seen.given_up = !seen.ended);
        }
    }

    /// Asks this process's worker to carry a job beside the queue.
    pub(crate) fn carry(&self, id: JobId) {
        for (_, signals) in locked(&self.workers).iter() {
            locked(&signals.to_carry).named.push(id);
            signals.carry_asked.notify_one();
        }
    }

    /// A worker of this process that may be handed held calls.
    pub(crate) fn carrier(&self) -> Option<WorkerId> {
        let workers = locked(&self.workers);
        let staying = workers.iter().find(|(_, signals)| !locked(&signals.to_carry).is_leaving);
        staying.map(|(worker, _)| worker.clone())
    }

    /// Gives a job to the worker that holds it; its lease comes back where that has left.
    pub(crate) fn hand_over(&self, taken: Taken) -> Result<(), Lease> {
        let workers = locked(&self.workers);
        let worker = workers.iter().find(|(worker, _)| *worker == taken.claimed.lease.worker);
        match worker.map(|(_, signals)| (signals, locked(&signals.to_carry))) {
            Some((signals, mut to_carry)) if !to_carry.is_leaving => {
                let mut waiting = locked(&self.waiting);
                waiting.jobs.entry(taken.claimed.job.id).or_default().is_carried = true;
                to_carry.taken.push(taken);
                signals.carry_asked.notify_one();
                Ok(())
            }
            Some(_) | None => Err(taken.claimed.lease),
        }
    }

    /// Tells workers that the clock has made a job or a lease due.
    pub(crate) fn publish_due(&self) {
        for (_, signals) in locked(&self.workers).iter() {
            signals.jobs_due.notify_one();
            signals.lease_ends.notify_one();
            // A held call whose next try is due is not in the queue.
            signals.orphaned.notify_one();
        }
    }
}

impl WorkerSignals {
    /// The jobs that were handed over since the last look.
    pub(crate) fn taken(&self) -> Vec<Taken> {
        std::mem::take(&mut locked(&self.to_carry).taken)
    }

    /// Lets no more jobs be handed over, and returns those that were.
    pub(crate) fn leave(&self) -> Vec<Taken> {
        locked(&self.to_carry).is_leaving = true;
        self.taken()
    }

    fn hear(&self, changes: &Changes) {
        for change in &changes.jobs {
            match change.state {
                StateKind::Queued => {
                    self.jobs_due.notify_one();
                    self.claims.notify_one();
                    match change.uncarried {
                        Uncarried::No => {}
                        Uncarried::NotYet => self.untaken.notify_one(),
                        Uncarried::NoMore => self.orphaned.notify_one(),
                    }
                }
                StateKind::Running => self.claims.notify_one(),
                StateKind::Succeeded | StateKind::Failed => self.ended(change.id),
                StateKind::Cancelled => {
                    self.ended(change.id);
                    self.cancels.notify_one();
                }
            }
        }
    }

    fn ended(&self, id: JobId) {
        locked(&self.ended).push(id);
        self.endings.notify_one();
        self.retention_began.notify_one();
        self.notices.notify_one();
    }
}

/// A worker's registration: it ends with the worker, however that ends.
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
        locked(&self.wakeups.workers).retain(|(_, other)| !Arc::ptr_eq(other, &self.signals));
    }
}

/// What changes are wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    /// Nothing: the follower rests.
    None,
    /// A worker that looks for jobs.
    Working,
    /// A caller that waits for a job.
    Waiting,
}

/// One caller's wait for one job; ends its part when dropped.
pub(crate) struct Watcher {
    wakeups: Arc<Wakeups>,
    scope: Scope,
    id: JobId,
    receiver: watch::Receiver<Seen>,
    /// The job as it ended: read by the first caller that wakes, for all that wait.
    pub(crate) end: Arc<OnceCell<Job>>,
    /// Whether this process carries the job since it was made: then it has not ended, or this was told.
    pub(crate) is_carried: bool,
}

impl Watcher {
    /// Waits until the job has ended, or this process no longer carries it; says whether it has ended. Cancel-safe.
    pub(crate) async fn ended_or_given_up(&mut self) -> bool {
        let told = self.receiver.wait_for(|seen| seen.ended || seen.given_up).await;
        told.is_ok_and(|seen| seen.ended)
    }

    /// Waits until the job has ended. Cancel-safe.
    pub(crate) async fn ended(&mut self) {
        // The sender lives in the wake-ups as long as this receiver does, so an error cannot come.
        drop(self.receiver.wait_for(|seen| seen.ended).await);
    }

    /// Waits for the next change of the job. Cancel-safe: a change that came between two waits ends the second at once.
    pub(crate) async fn changed(&mut self) {
        drop(self.receiver.changed().await);
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut waiting = locked(&self.wakeups.waiting);
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

/// A lock whose holder panicked guards nothing that could be half-written here.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for this moment; for ever when there is none. Cancel-safe.
pub(crate) async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
