//! How a worker gets a job, and whether its caller has its id.

use serde::{Deserialize, Serialize};

/// Whether the caller was given the job's id, and with it how a worker gets the job: from the queue, in its turn, or by
/// name, at once and beside the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Visibility {
    /// The caller has the id and will come back for it. Any worker with the profile claims the job from the queue.
    Promised,
    /// A held call that was answered with a task: the caller has the id. The process that took the call carries the job,
    /// like any held call.
    Task,
    /// A held call: the caller waits for its answer and has no id; conversation tools hide the job until it succeeds. The
    /// process that took the call carries the job.
    Unpromised,
}

impl Visibility {
    /// Whether the job waits in the queue, where owners share slots, rather than being taken by name.
    pub fn goes_through_queue(self) -> bool {
        match self {
            Self::Promised => true,
            Self::Task | Self::Unpromised => false,
        }
    }

    /// Whether the caller was given the id.
    pub fn caller_has_id(self) -> bool {
        match self {
            Self::Promised | Self::Task => true,
            Self::Unpromised => false,
        }
    }
}
