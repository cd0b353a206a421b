//! The ways in which a worker gets a job, and whether its caller has its id.

use serde::{Deserialize, Serialize};

/// The visibility of a job: whether the caller has its id, and how a worker gets the job. A worker claims it from the
/// queue, in its turn, or by id, at once and past the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// The caller has the id and will come back for it. Any worker with the profile claims the job from the queue.
    Promised,
    /// A held call that was answered with a task: the caller has the id. The process that accepted the call runs the
    /// job, as for any held call.
    Task,
    /// A held call: the caller waits for its answer and has no id. Conversation tools hide the job until it succeeds.
    /// The process that accepted the call runs the job.
    Unpromised,
}

impl Visibility {
    /// Returns whether the job waits in the queue, where owners share slots, instead of being claimed by id.
    pub fn goes_through_queue(self) -> bool {
        match self {
            Self::Promised => true,
            Self::Task | Self::Unpromised => false,
        }
    }

    /// Returns whether the caller has the id.
    pub fn caller_has_id(self) -> bool {
        match self {
            Self::Promised | Self::Task => true,
            Self::Unpromised => false,
        }
    }
}
