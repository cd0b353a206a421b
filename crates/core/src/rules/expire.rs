//! Two ends that come by the clock: a finished job is forgotten, an unfinished one runs out of life.

use crate::{Job, Timestamp};

/// When a finished job is forgotten; never while it is unfinished or kept for ever.
pub fn expires_at(job: &Job) -> Option<Timestamp> {
    Some(job.ended_at()?.after(job.new.keep?))
}

/// Whether readers should no longer see the job.
pub fn expired(job: &Job, now: Timestamp) -> bool {
    expires_at(job).is_some_and(|end| end <= now)
}

/// When an unfinished job must be given up, whatever its tries.
pub fn life_ends_at(job: &Job) -> Option<Timestamp> {
    Some(job.created_at.after(job.new.life?))
}
