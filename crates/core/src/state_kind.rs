//! The states of a job by name, without their fields.

use crate::JobState;

/// The states by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StateKind {
    /// See [`JobState::Queued`].
    Queued,
    /// See [`JobState::Running`].
    Running,
    /// It has an open question ([`crate::Job::kind`]), whether or not a worker holds it.
    Waiting,
    /// See [`JobState::Succeeded`].
    Succeeded,
    /// See [`JobState::Failed`].
    Failed,
    /// See [`JobState::Cancelled`].
    Cancelled,
}

impl StateKind {
    /// The states of jobs that have not ended.
    pub const UNFINISHED: [Self; 3] = [Self::Queued, Self::Running, Self::Waiting];

    /// All states, in the order of a job's life.
    pub const ALL: [Self; 6] = [
        Self::Queued,
        Self::Running,
        Self::Waiting,
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
    ];

    /// Returns the word for it in SQL, JSON, logs and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Parses the word for a state.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// Returns whether a job in this state will never change again.
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Queued | Self::Running | Self::Waiting => false,
            Self::Succeeded | Self::Failed | Self::Cancelled => true,
        }
    }
}

impl JobState {
    /// Returns the state without its fields.
    pub fn kind(&self) -> StateKind {
        match self {
            Self::Queued { .. } => StateKind::Queued,
            Self::Running { .. } => StateKind::Running,
            Self::Succeeded { .. } => StateKind::Succeeded,
            Self::Failed { .. } => StateKind::Failed,
            Self::Cancelled { .. } => StateKind::Cancelled,
        }
    }
}
