//! The beginning of a job: queued, due at once, never claimed.

use crate::{Checkpoint, Fence, Job, JobId, JobState, NewJob, RemoteRun, Rev, Timestamp};

/// Creates a job from a request. The store assigns its rev when it saves it.
pub fn accept(
    new: NewJob,
    takes_up: Option<RemoteRun>,
    id: JobId,
    turn: u32,
    now: Timestamp,
) -> Job {
    Job {
        id,
        new,
        turn,
        state: JobState::Queued { run_at: now },
        failures: Vec::new(),
        checkpoint: takes_up.map_or(Checkpoint::NotBegun, Checkpoint::Running),
        allowance: None,
        progress: None,
        partial: None,
        fence: Fence::NONE,
        created_at: now,
        updated_at: now,
        rev: Rev::default(),
    }
}
