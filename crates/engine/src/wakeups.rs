//! Wake-ups inside one process: who waits for which job, and whether there is work. Tells that something changed,
//! never what it is: whoever is woken reads the store.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outlast_core::rules::{Sharing, may_take};
use outlast_core::{Changes, Job, JobId, Scope, StateKind, Uncarried};
use tokio::sync::{Notify, OnceCell, watch};

/// The switchboard.
#[derive(Default)]
pub(crate) struct Wakeups {
    waiting: Mutex<Waiting>,
    /// Rung when somebody starts to care, so that the follower looks harder or at all.
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

/// Who waits.
#[derive(Default)]
struct Waiting {
    lines: HashMap<JobId, JobWaiters>,
    watchers: usize,
    /// On whose behalf.
    by: HashMap<Scope, usize>,
}

/// To those who wait for one job.
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

/// What a worker wants to hear of.
#[derive(Default)]
pub(crate) struct WorkerSignals {
    /// There may be something to claim: it was queued, or its time has come.
    pub(crate) work: Notify,
    /// Somebody claimed something, or something was put back.
    pub(crate) claims: Notify,
    /// The time of a lease may have run out.
    pub(crate) lapses: Notify,
    /// A job was cancelled.
    pub(crate) cancels: Notify,
    /// A held call is queued that another worker carried.
    pub(crate) orphans: Notify,
    /// A held call was made; its own process is about to take it.
    pub(crate) untaken: Notify,
    /// Held calls that this process should carry.
    pub(crate) held: Mutex<Vec<JobId>>,
    /// Rung with every entry in `held`.
    pub(crate) holds: Notify,
    /// Jobs that ended, for whoever still works on them.
    pub(crate) ended: Mutex<Vec<JobId>>,
    /// Rung with every entry in `ended`.
    pub(crate) endings: Notify,
    /// Rung as well: its retention has begun.
    pub(crate) forgettable: Notify,
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
            let here = waiting.lines.get(&id).map_or(0, |line| line.watchers);
            let own = waiting.by.get(scope).copied().unwrap_or(0);
            let PollLimits { in_all, per_job, sharing } = limits;
            if here >= per_job || !may_take(own, waiting.watchers, 1, in_all, sharing) {
                return None;
            }
            waiting.watchers += 1;
            waiting.by.insert(scope.clone(), own + 1);
            let line = waiting.lines.entry(id).or_default();
            line.watchers += 1;
            (line.sender.subscribe(), Arc::clone(&line.end))
        };
        self.interest.notify_one();
        Some(Watcher { hub: Arc::clone(self), scope: scope.clone(), id, receiver, end })
    }

    /// Opens a desk for a worker; it closes when dropped.
    pub(crate) fn open_desk(self: &Arc<Self>) -> OpenDesk {
        let desk = Arc::new(WorkerSignals::default());
        locked(&self.workers).push(Arc::clone(&desk));
        self.interest.notify_one();
        OpenDesk { hub: Arc::clone(self), desk }
    }

    /// How much anybody cares about changes just now.
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

    /// Passes changes on to whoever waits for them.
    pub(crate) fn publish(&self, changes: &Changes) {
        {
            let waiting = locked(&self.waiting);
            for change in &changes.jobs {
                if let Some(line) = waiting.lines.get(&change.id) {
                    line.sender.send_modify(|seen| {
                        seen.changes += 1;
                        seen.ended |= change.state.is_terminal();
                    });
                }
            }
        }
        for desk in locked(&self.workers).iter() {
            desk.hear(changes);
        }
    }

    /// Asks this process's worker to carry a held call.
    pub(crate) fn carry(&self, id: JobId) {
        for desk in locked(&self.workers).iter() {
            locked(&desk.held).push(id);
            desk.holds.notify_one();
        }
    }

    /// Tells workers that the clock has made something due.
    pub(crate) fn publish_due(&self) {
        for desk in locked(&self.workers).iter() {
            desk.work.notify_one();
            desk.lapses.notify_one();
            // A held call whose next try is due is not in the queue.
            desk.orphans.notify_one();
        }
    }
}

impl WorkerSignals {
    fn hear(&self, changes: &Changes) {
        for change in &changes.jobs {
            match change.state {
                StateKind::Queued => {
                    self.work.notify_one();
                    self.claims.notify_one();
                    match change.uncarried {
                        Uncarried::No => {}
                        Uncarried::NotYet => self.untaken.notify_one(),
                        Uncarried::NoMore => self.orphans.notify_one(),
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
        self.forgettable.notify_one();
    }
}

/// A worker's desk; nothing is put on it once the worker is gone, however it went.
pub(crate) struct OpenDesk {
    hub: Arc<Wakeups>,
    desk: Arc<WorkerSignals>,
}

impl Deref for OpenDesk {
    type Target = WorkerSignals;

    fn deref(&self) -> &WorkerSignals {
        &self.desk
    }
}

impl Drop for OpenDesk {
    fn drop(&mut self) {
        locked(&self.hub.workers).retain(|open| !Arc::ptr_eq(open, &self.desk));
    }
}

/// How much anybody cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    /// Nobody does: the follower rests.
    None,
    /// Idle workers would like to know.
    Working,
    /// A caller is waiting.
    Waiting,
}

/// One caller's wait for one job; ends its part when dropped.
pub(crate) struct Watcher {
    hub: Arc<Wakeups>,
    scope: Scope,
    id: JobId,
    receiver: watch::Receiver<Seen>,
    /// The job as it ended: read by whoever wakes first, for all who wait.
    pub(crate) end: Arc<OnceCell<Job>>,
}

impl Watcher {
    /// Waits until the job has ended. Cancel-safe.
    pub(crate) async fn ended(&mut self) {
        // The sender lives in the hub as long as this receiver does, so an error cannot come.
        drop(self.receiver.wait_for(|seen| seen.ended).await);
    }
}

impl Watcher {
    /// Waits for the next change of the job. Cancel-safe: what came while nobody waited ends the next wait at once.
    pub(crate) async fn changed(&mut self) {
        drop(self.receiver.changed().await);
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut waiting = locked(&self.hub.waiting);
        waiting.watchers -= 1;
        if let Entry::Occupied(mut own) = waiting.by.entry(self.scope.clone()) {
            *own.get_mut() -= 1;
            if *own.get() == 0 {
                own.remove();
            }
        }
        let Some(line) = waiting.lines.get_mut(&self.id) else { return };
        line.watchers -= 1;
        if line.watchers == 0 {
            waiting.lines.remove(&self.id);
        }
    }
}

/// A lock whose holder panicked guards nothing that could be half-written here.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use outlast_core::{Change, OwnerId, Rev};

    use super::*;

    const FREE: PollLimits =
        PollLimits { in_all: usize::MAX, per_job: usize::MAX, sharing: Sharing::OneOwner };

    /// E8: in all, and for each job; whoever leaves makes room.
    #[test]
    fn no_more_than_so_many_wait_at_a_time() {
        let hub = Arc::new(Wakeups::default());
        let limits = PollLimits { in_all: 3, per_job: 2, sharing: Sharing::OneOwner };
        let first = hub.watch(&ann(), job(1), limits);
        let second = hub.watch(&ann(), job(1), limits);
        assert!(first.is_some() && second.is_some());
        assert!(hub.watch(&ann(), job(1), limits).is_none(), "two wait for this job");
        let third = hub.watch(&ann(), job(2), limits);
        assert!(third.is_some());
        assert!(hub.watch(&ann(), job(3), limits).is_none(), "three wait in all");
        drop(first);
        assert!(hub.watch(&ann(), job(1), limits).is_some());
    }

    /// F10: one owner's polls leave room for another's.
    #[test]
    fn f10_an_owner_who_parks_all_they_can_leaves_room_for_others() {
        let hub = Arc::new(Wakeups::default());
        let limits = PollLimits { in_all: 8, per_job: 100, sharing: Sharing::SeveralOwners };
        let park = |owner: &str| {
            let scope = Scope::Owner(OwnerId::new(owner));
            std::iter::from_fn(|| hub.watch(&scope, job(1), limits)).collect::<Vec<_>>()
        };
        let anns = park("ann");
        let bobs = park("bob");
        assert_eq!((anns.len(), bobs.len(), park("carol").len()), (4, 2, 1));
        drop(anns);
        assert_eq!(park("bob").len(), 2, "four of eight");
        drop(bobs);
        assert!(locked(&hub.waiting).by.is_empty());
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
        let hub = Arc::new(Wakeups::default());
        let mut watcher = hub.watch(&ann(), job(1), FREE).unwrap();
        hub.publish(&ended(job(2)));
        let progress = Changes {
            jobs: vec![Change { id: job(1), state: StateKind::Running, uncarried: Uncarried::No }],
            ..ended(job(1))
        };
        hub.publish(&progress);
        assert!(!watcher.receiver.borrow().ended);
        hub.publish(&ended(job(1)));
        watcher.ended().await;
    }

    #[test]
    fn nothing_is_kept_of_watchers_that_left() {
        let hub = Arc::new(Wakeups::default());
        let (first, second) = (hub.watch(&ann(), job(1), FREE), hub.watch(&ann(), job(1), FREE));
        assert_eq!(hub.interest(), Interest::Waiting);
        drop(first);
        assert_eq!(locked(&hub.waiting).lines.len(), 1);
        drop(second);
        assert_eq!(locked(&hub.waiting).lines.len(), 0);
        assert_eq!(hub.interest(), Interest::None);
    }

    /// Two that leave at the same moment: one of them must see that it is the last.
    #[test]
    fn nothing_is_kept_of_watchers_that_left_together() {
        let hub = Arc::new(Wakeups::default());
        for _ in 0..20 {
            let crowd = || {
                (0..5_000).map(|number| hub.watch(&ann(), job(number), FREE)).collect::<Vec<_>>()
            };
            let (first, second) = (crowd(), crowd());
            std::thread::scope(|scope| {
                scope.spawn(|| drop(first));
                scope.spawn(|| drop(second));
            });
            assert_eq!(locked(&hub.waiting).lines.len(), 0);
        }
    }

    #[tokio::test]
    async fn a_desk_closes_with_its_worker() {
        let hub = Arc::new(Wakeups::default());
        let desk = hub.open_desk();
        hub.publish(&ended(job(1)));
        assert_eq!(*locked(&desk.ended), [job(1)]);
        drop(desk);
        assert_eq!(hub.interest(), Interest::None);
    }
}
