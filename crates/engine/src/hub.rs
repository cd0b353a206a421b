//! Wake-ups inside one process: who waits for which job, and whether there is work. Tells that something changed,
//! never what it is: whoever is woken reads the store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outlast_core::{Changes, JobId, StateKind, Timestamp};
use tokio::sync::{Notify, watch};

/// The switchboard.
#[derive(Default)]
pub(crate) struct Hub {
    waiting: Mutex<HashMap<JobId, watch::Sender<Seen>>>,
    /// Rung when somebody starts to care, so that the follower looks harder or at all.
    interest: Notify,
    workers: Mutex<Vec<Arc<Desk>>>,
}

/// What a waiter has been told.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    changes: u64,
    ended: bool,
}

/// What a worker wants to hear of.
#[derive(Default)]
pub(crate) struct Desk {
    /// There may be something to claim.
    pub(crate) work: Notify,
    /// Somebody claimed something, or something was put back.
    pub(crate) claims: Notify,
    /// A job was cancelled.
    pub(crate) cancels: Notify,
    /// Jobs that ended, for whoever still works on them.
    pub(crate) ended: Mutex<Vec<JobId>>,
    /// Rung with every entry in `ended`.
    pub(crate) endings: Notify,
    /// When the clock alone will make something due.
    pub(crate) next_due: watch::Sender<Option<Timestamp>>,
}

impl Hub {
    /// Starts to wait for a job. Read the store after this, or an end in between is missed.
    pub(crate) fn watch(self: &Arc<Self>, id: JobId) -> Watcher {
        let receiver = locked(&self.waiting)
            .entry(id)
            .or_insert_with(|| watch::Sender::new(Seen::default()))
            .subscribe();
        self.interest.notify_one();
        Watcher { hub: Arc::clone(self), id, receiver }
    }

    /// Opens a desk for a worker.
    pub(crate) fn open_desk(&self) -> Arc<Desk> {
        let desk = Arc::new(Desk::default());
        locked(&self.workers).push(Arc::clone(&desk));
        self.interest.notify_one();
        desk
    }

    /// Closes it.
    pub(crate) fn close_desk(&self, desk: &Arc<Desk>) {
        locked(&self.workers).retain(|open| !Arc::ptr_eq(open, desk));
    }

    /// How much anybody cares about changes just now.
    pub(crate) fn interest(&self) -> Interest {
        if !locked(&self.waiting).is_empty() {
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
                if let Some(sender) = waiting.get(&change.id) {
                    sender.send_modify(|seen| {
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
}

impl Desk {
    fn hear(&self, changes: &Changes) {
        for change in &changes.jobs {
            match change.state {
                StateKind::Queued => {
                    self.work.notify_one();
                    self.claims.notify_one();
                }
                StateKind::Running => self.claims.notify_one(),
                StateKind::Succeeded | StateKind::Failed => self.ended(change.id),
                StateKind::Cancelled => {
                    self.ended(change.id);
                    self.cancels.notify_one();
                }
            }
        }
        self.next_due.send_replace(changes.next_due);
    }

    fn ended(&self, id: JobId) {
        locked(&self.ended).push(id);
        self.endings.notify_one();
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
    hub: Arc<Hub>,
    id: JobId,
    receiver: watch::Receiver<Seen>,
}

impl Watcher {
    /// Waits until the job has ended. Cancel-safe.
    pub(crate) async fn ended(&mut self) {
        // The sender lives in the hub as long as this receiver does, so an error cannot come.
        drop(self.receiver.wait_for(|seen| seen.ended).await);
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut waiting = locked(&self.hub.waiting);
        // This receiver is still counted: one left means that nobody else waits.
        if waiting.get(&self.id).is_some_and(|sender| sender.receiver_count() <= 1) {
            waiting.remove(&self.id);
        }
    }
}

/// A lock whose holder panicked guards nothing that could be half-written here.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use outlast_core::{Change, Rev};

    use super::*;

    fn job(number: u128) -> JobId {
        JobId::new(uuid::Uuid::from_u128(number))
    }

    fn ended(id: JobId) -> Changes {
        Changes {
            rev: Rev(1),
            jobs: vec![Change { id, state: StateKind::Succeeded }],
            next_due: None,
        }
    }

    #[tokio::test]
    async fn only_the_end_of_the_watched_job_wakes_its_watcher() {
        let hub = Arc::new(Hub::default());
        let mut watcher = hub.watch(job(1));
        hub.publish(&ended(job(2)));
        let progress = Changes {
            jobs: vec![Change { id: job(1), state: StateKind::Running }],
            ..ended(job(1))
        };
        hub.publish(&progress);
        assert!(!watcher.receiver.borrow().ended);
        hub.publish(&ended(job(1)));
        watcher.ended().await;
    }

    #[test]
    fn nothing_is_kept_of_watchers_that_left() {
        let hub = Arc::new(Hub::default());
        let (first, second) = (hub.watch(job(1)), hub.watch(job(1)));
        assert_eq!(hub.interest(), Interest::Waiting);
        drop(first);
        assert_eq!(locked(&hub.waiting).len(), 1);
        drop(second);
        assert_eq!(locked(&hub.waiting).len(), 0);
        assert_eq!(hub.interest(), Interest::None);
    }
}
