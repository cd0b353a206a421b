//! What [`crate::Store::changes`] is asked and what it tells.

use std::time::Duration;

use crate::{Job, JobId, Rev, StateKind, Timestamp, Visibility};

/// How [`crate::Store::changes`] waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeWait {
    /// The wait ends after this long without a change.
    pub at_most: Duration,
    /// How often a store looks for the changes of other processes, where it is not told of them.
    pub look_every: Duration,
}

/// What changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Where to go on.
    pub rev: Rev,
    /// The jobs, each once, in order of change; empty when the wait ended first.
    pub jobs: Vec<Change>,
    /// When the clock alone will make something due: a queued job's time, or a lease's end.
    pub next_due: Option<Timestamp>,
}

/// One changed job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which.
    pub id: JobId,
    /// Where it stands now.
    pub state: StateKind,
    /// Whether it is a held call that no worker carries.
    pub uncarried: Uncarried,
    /// Whether it is a turn of a conversation.
    pub in_conversation: bool,
}

impl Change {
    /// Of a job as it stands.
    pub fn of(job: &Job) -> Self {
        let state = job.state.kind();
        let uncarried = Uncarried::of(state, job.new.visibility, job.was_claimed());
        Self { id: job.id, state, uncarried, in_conversation: job.new.conversation.is_some() }
    }
}

/// Whether a job is a held call that no worker carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uncarried {
    /// It is not.
    No,
    /// None has carried it: the process that made it is about to, unless that process died.
    NotYet,
    /// One has: its process died or left.
    NoMore,
}

impl Uncarried {
    /// Of a job in this state.
    pub fn of(state: StateKind, visibility: Visibility, was_claimed: bool) -> Self {
        match (state, visibility) {
            (StateKind::Queued, Visibility::Unpromised | Visibility::Task) if was_claimed => {
                Self::NoMore
            }
            (StateKind::Queued, Visibility::Unpromised | Visibility::Task) => Self::NotYet,
            (StateKind::Queued, Visibility::Promised)
            | (StateKind::Running, _)
            | (StateKind::Succeeded | StateKind::Failed | StateKind::Cancelled, _) => Self::No,
        }
    }
}
