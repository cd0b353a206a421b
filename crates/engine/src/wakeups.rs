//! Wake-ups inside one process: which callers wait for which job, and what a worker has to look at. A wake-up says that
//! something changed, never what: the one that is woken reads the store.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outlast_core::rules::{Sharing, may_take};
use outlast_core::{Changes, Job, JobId, Scope, StateKind, Uncarried};
use tokio::sync::{Notify, OnceCell, watch};
use tokio::time::Instant;

/// The waiting callers and the workers of one process.
#[derive(Default)]
pub(crate) struct Wakeups {
    waiting: Mutex<Waiting>,
    /// Rung when a caller or a worker comes, so that the follower looks more often, or at all.
    interest: Notify,
    workers: Mutex<Vec<Arc<WorkerSignals>>>,
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
}

/// What a waiter has been told.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    changes: u64,
    ended: bool,
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
    pub(crate) to_carry: Mutex<Vec<JobId>>,
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

impl Wakeups {
    /// Starts to wait for a job, unless too many do already. Read the store after this, or an end in between is
    /// missed.
    pub(crate) fn watch(
        self: &Arc<Self>,
        scope: &Scope,
        id: JobId,
        limits: PollLimits,
    ) -> Option<Watcher> {
        let (receiver, end) = {
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
            (waiters.sender.subscribe(), Arc::clone(&waiters.end))
        };
        self.interest.notify_one();
        Some(Watcher { wakeups: Arc::clone(self), scope: scope.clone(), id, receiver, end })
    }

    /// Registers a worker until the answer is dropped.
    pub(crate) fn register_worker(self: &Arc<Self>) -> RegisteredWorker {
        let signals = Arc::new(WorkerSignals::default());
        locked(&self.workers).push(Arc::clone(&signals));
        self.interest.notify_one();
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

    /// Makes the follower look at once: another process told of a change.
    pub(crate) fn look_now(&self) {
        self.interest.notify_one();
    }

    /// Passes changes on to the callers and workers that wait for them.
    pub(crate) fn publish(&self, changes: &Changes) {
        {
            let waiting = locked(&self.waiting);
            for change in &changes.jobs {
                if let Some(waiters) = waiting.jobs.get(&change.id) {
                    waiters.sender.send_modify(|seen| {
                        seen.changes += 1;
                        seen.ended |= change.state.is_terminal();
                    });
                }
            }
        }
        for signals in locked(&self.workers).iter() {
            signals.hear(changes);
        }
    }

    /// Asks this process's worker to carry a job beside the queue.
    pub(crate) fn carry(&self, id: JobId) {
        for signals in locked(&self.workers).iter() {
            locked(&signals.to_carry).push(id);
            signals.carry_asked.notify_one();
        }
    }

    /// Tells workers that the clock has made a job or a lease due.
    pub(crate) fn publish_due(&self) {
        for signals in locked(&self.workers).iter() {
            signals.jobs_due.notify_one();
            signals.lease_ends.notify_one();
            // A held call whose next try is due is not in the queue.
            signals.orphaned.notify_one();
        }
    }
}

impl WorkerSignals {
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
        locked(&self.wakeups.workers).retain(|other| !Arc::ptr_eq(other, &self.signals));
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
}

impl Watcher {
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
        if waiters.watchers == 0 {
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
mod tests {
    use outlast_core::{Change, OwnerId, Rev};

    use super::*;

    const FREE: PollLimits =
        PollLimits { in_all: usize::MAX, per_job: usize::MAX, sharing: Sharing::OneOwner };

    /// E8: in all, and for each job; a caller that leaves makes room.
    #[test]
    fn no_more_than_so_many_wait_at_a_time() {
        let wakeups = Arc::new(Wakeups::default());
        let limits = PollLimits { in_all: 3, per_job: 2, sharing: Sharing::OneOwner };
        let first = wakeups.watch(&ann(), job(1), limits);
        let second = wakeups.watch(&ann(), job(1), limits);
        assert!(first.is_some() && second.is_some());
        assert!(wakeups.watch(&ann(), job(1), limits).is_none(), "two wait for this job");
        let third = wakeups.watch(&ann(), job(2), limits);
        assert!(third.is_some());
        assert!(wakeups.watch(&ann(), job(3), limits).is_none(), "three wait in all");
        drop(first);
        assert!(wakeups.watch(&ann(), job(1), limits).is_some());
    }

    /// F10: one owner's polls leave room for another's.
    #[test]
    fn f10_an_owner_who_parks_all_they_can_leaves_room_for_others() {
        let wakeups = Arc::new(Wakeups::default());
        let limits = PollLimits { in_all: 8, per_job: 100, sharing: Sharing::SeveralOwners };
        let park = |owner: &str| {
            let scope = Scope::Owner(OwnerId::new(owner));
            std::iter::from_fn(|| wakeups.watch(&scope, job(1), limits)).collect::<Vec<_>>()
        };
        let anns = park("ann");
        let bobs = park("bob");
        assert_eq!((anns.len(), bobs.len(), park("carol").len()), (4, 2, 1));
        drop(anns);
        assert_eq!(park("bob").len(), 2, "four of eight");
        drop(bobs);
        assert!(locked(&wakeups.waiting).by.is_empty());
    }

    fn ann() -> Scope {
        Scope::Owner(OwnerId::new("ann"))
    }

    fn job(number: u128) -> JobId {
        JobId::new(uuid::Uuid::from_u128(number))
    }

    fn ended(id: JobId) -> Changes {
        Changes {
            rev: Rev(1),
            jobs: vec![Change { id, state: StateKind::Succeeded, uncarried: Uncarried::No }],
            next_due: None,
        }
    }

    #[tokio::test]
    async fn only_the_end_of_the_watched_job_wakes_its_watcher() {
        let wakeups = Arc::new(Wakeups::default());
        let mut watcher = wakeups.watch(&ann(), job(1), FREE).unwrap();
        wakeups.publish(&ended(job(2)));
        let progress = Changes {
            jobs: vec![Change { id: job(1), state: StateKind::Running, uncarried: Uncarried::No }],
            ..ended(job(1))
        };
        wakeups.publish(&progress);
        assert!(!watcher.receiver.borrow().ended);
        wakeups.publish(&ended(job(1)));
        watcher.ended().await;
    }

    #[test]
    fn nothing_is_kept_of_watchers_that_left() {
        let wakeups = Arc::new(Wakeups::default());
        let (first, second) =
            (wakeups.watch(&ann(), job(1), FREE), wakeups.watch(&ann(), job(1), FREE));
        assert_eq!(wakeups.interest(), Interest::Waiting);
        drop(first);
        assert_eq!(locked(&wakeups.waiting).jobs.len(), 1);
        drop(second);
        assert_eq!(locked(&wakeups.waiting).jobs.len(), 0);
        assert_eq!(wakeups.interest(), Interest::None);
    }

    /// Two that leave at the same moment: one of them must see that it is the last.
    #[test]
    fn nothing_is_kept_of_watchers_that_left_together() {
        let wakeups = Arc::new(Wakeups::default());
        for _ in 0..20 {
            let crowd = || {
                (0..5_000)
                    .map(|number| wakeups.watch(&ann(), job(number), FREE))
                    .collect::<Vec<_>>()
            };
            let (first, second) = (crowd(), crowd());
            std::thread::scope(|scope| {
                scope.spawn(|| drop(first));
                scope.spawn(|| drop(second));
            });
            assert_eq!(locked(&wakeups.waiting).jobs.len(), 0);
        }
    }

    #[tokio::test]
    async fn a_worker_is_registered_until_it_ends() {
        let wakeups = Arc::new(Wakeups::default());
        let signals = wakeups.register_worker();
        wakeups.publish(&ended(job(1)));
        assert_eq!(*locked(&signals.ended), [job(1)]);
        drop(signals);
        assert_eq!(wakeups.interest(), Interest::None);
    }
}
