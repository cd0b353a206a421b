//! What becomes of a dead worker's job: back to the queue, checkpoint and all; no attempt is spent.

use crate::{JobState, Record, Timestamp};

/// Puts a running job back. What its checkpoint means is for the next worker: see [`approach`](fn@super::approach).
pub fn rescue(record: &mut Record, now: Timestamp) {
    record.job.state = JobState::Queued { run_at: now };
    record.job.progress = None;
    record.job.updated_at = now;
    record.holder = None;
}
