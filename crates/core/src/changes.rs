//! The arguments and the result of [`crate::Store::changes`].

use std::time::Duration;

use crate::{Job, JobId, Rev, StateKind, Timestamp, Visibility};

/// The time limits of one call of [`crate::Store::changes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeWait {
    /// The wait ends after this long without a change.
    pub at_most: Duration,
    /// The interval at which a store looks for changes of other processes if it is not notified of them.
    pub look_every: Duration,
}

/// The changes that a wait found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The change number to continue from.
    pub rev: Rev,
    /// The changed jobs, each once, in order of change; empty if the wait ended without a change.
    pub jobs: Vec<Change>,
    /// The next moment when something becomes due by the clock alone: a queued job's time, or the end of a lease.
    pub next_due: Option<Timestamp>,
}

/// One changed job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    pub id: JobId,
    /// The present state.
    pub state: StateKind,
    /// The reason why the job has no worker, if it is a held call without one.
    pub uncarried: HeldCallState,
    /// True if the job is a turn of a conversation.
    pub in_conversation: bool,
}

impl Change {
    /// Returns the change for the present state of a job.
    pub fn from_job(job: &Job) -> Self {
        let state = job.state.kind();
        let uncarried = HeldCallState::new(state, job.new.visibility, job.was_claimed());
        Self { id: job.id, state, uncarried, in_conversation: job.new.conversation.is_some() }
    }
}

/// The reason why a held call has no worker, if it has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldCallState {
    /// The job is not a held call without a worker.
    NotWaiting,
    /// No worker has owned it yet. The process that created it is about to run it, unless that process crashed.
    Unclaimed,
    /// A worker owned it, but its process exited or crashed.
    Abandoned,
}

impl HeldCallState {
    /// Returns the value for a job in this state.
    pub fn new(state: StateKind, visibility: Visibility, was_claimed: bool) -> Self {
        match (state, visibility) {
            (StateKind::Queued, Visibility::Unpromised | Visibility::Task) if was_claimed => {
                Self::Abandoned
            }
            (StateKind::Queued, Visibility::Unpromised | Visibility::Task) => Self::Unclaimed,
            (StateKind::Queued, Visibility::Promised)
            | (StateKind::Running | StateKind::Waiting, _)
            | (StateKind::Succeeded | StateKind::Failed | StateKind::Cancelled, _) => {
                Self::NotWaiting
            }
        }
    }
}
