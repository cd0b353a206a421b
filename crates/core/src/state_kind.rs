//! The five states of a job by name, without their fields.

use crate::JobState;

/// The five states by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StateKind {
    /// See [`JobState::Queued`].
    Queued,
    /// See [`JobState::Running`].
    Running,
    /// See [`JobState::Succeeded`].
    Succeeded,
    /// See [`JobState::Failed`].
    Failed,
    /// See [`JobState::Cancelled`].
    Cancelled,
}

impl StateKind {
    /// All states, in the order of a job's life.
    pub const ALL: [Self; 5] =
        [Self::Queued, Self::Running, Self::Succeeded, Self::Failed, Self::Cancelled];

    /// Returns the word for it in SQL, JSON, logs and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
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
            Self::Queued | Self::Running => false,
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
