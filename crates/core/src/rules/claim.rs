//! Who may take a job, and what taking it means.

use crate::{Claimed, Holder, JobState, Lease, Profile, Record, Timestamp, WorkerId};

/// Whether a worker with these profiles may take the job now.
pub fn claimable(record: &Record, profiles: &[Profile], now: Timestamp) -> bool {
    match &record.job.state {
        JobState::Queued { run_at } => *run_at <= now && profiles.contains(&record.job.new.profile),
        JobState::Running { .. }
        | JobState::Succeeded { .. }
        | JobState::Failed { .. }
        | JobState::Cancelled { .. } => false,
    }
}

/// Gives a claimable job to `worker` until `until`.
pub fn claim(record: &mut Record, worker: &WorkerId, until: Timestamp, now: Timestamp) -> Claimed {
    let job = &mut record.job;
    job.fence = job.fence.raised();
    job.state = JobState::Running { since: now };
    job.progress = None;
    job.updated_at = now;
    record.holder = Some(Holder { worker: worker.clone(), until });
    let lease = Lease { job: job.id, worker: worker.clone(), fence: job.fence };
    Claimed { job: job.clone(), lease }
}
