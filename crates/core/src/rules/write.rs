//! Writes of the worker that holds a job. All of them present its lease.

use crate::{Checkpoint, JobState, Lease, Progress, Record, Settlement, StoreError, Timestamp};

/// Refuses a lease that is not the present one.
pub fn holds(record: &Record, lease: &Lease) -> Result<(), StoreError> {
    let mine = record.job.fence == lease.fence
        && record.holder.as_ref().is_some_and(|holder| holder.worker == lease.worker);
    if mine { Ok(()) } else { Err(StoreError::LeaseLost) }
}

/// Records how far the work has come.
pub fn checkpoint(
    record: &mut Record,
    lease: &Lease,
    checkpoint: &Checkpoint,
    now: Timestamp,
) -> Result<(), StoreError> {
    holds(record, lease)?;
    record.job.checkpoint = checkpoint.clone();
    record.job.updated_at = now;
    Ok(())
}

/// Shows progress, which never goes down within a try.
pub fn note(
    record: &mut Record,
    lease: &Lease,
    progress: &Progress,
    now: Timestamp,
) -> Result<(), StoreError> {
    holds(record, lease)?;
    let shown = record.job.progress.as_ref().and_then(|progress| progress.percent);
    record.job.progress =
        Some(Progress { percent: progress.percent.max(shown), message: progress.message.clone() });
    record.job.updated_at = now;
    Ok(())
}

/// Ends a try.
pub fn settle(
    record: &mut Record,
    lease: &Lease,
    settlement: &Settlement,
    now: Timestamp,
) -> Result<(), StoreError> {
    holds(record, lease)?;
    let job = &mut record.job;
    job.state = match settlement {
        Settlement::Succeed { output, raw: _ } => {
            JobState::Succeeded { at: now, output: output.clone() }
        }
        Settlement::Retry { failure, wait, checkpoint } => {
            job.failures.push(failure.clone());
            job.checkpoint = checkpoint.clone();
            JobState::Queued { run_at: now.after(*wait) }
        }
        Settlement::Fail { failure, raw: _ } => {
            job.failures.push(failure.clone());
            JobState::Failed { at: now }
        }
        Settlement::Release => JobState::Queued { run_at: now },
    };
    job.progress = None;
    job.updated_at = now;
    record.holder = None;
    Ok(())
}
