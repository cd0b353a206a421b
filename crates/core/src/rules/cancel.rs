//! An owner's cancel: terminal at once; what is left to do at the provider is a recorded duty.

use crate::{
    Cancelled, Checkpoint, JobState, Record, RemoteRun, RemoteStop, StoreError, Timestamp,
};

/// Ends an unfinished job; a finished one keeps its end.
pub fn cancel(record: &mut Record, now: Timestamp) -> Cancelled {
    let job = &mut record.job;
    if job.state.kind().is_terminal() {
        return Cancelled::Already(job.clone());
    }
    let remote = match &job.checkpoint {
        // While the request is on its way there is no run to name; its worker will call `owe`.
        Checkpoint::NotBegun | Checkpoint::Beginning { .. } => RemoteStop::NotNeeded,
        Checkpoint::Running(_) => RemoteStop::Owed,
    };
    job.state = JobState::Cancelled { at: now, remote };
    job.progress = None;
    job.updated_at = now;
    record.holder = None;
    Cancelled::Now(job.clone())
}

/// Records a run that turned up after its job was cancelled.
pub fn owe(record: &mut Record, run: &RemoteRun, now: Timestamp) -> Result<(), StoreError> {
    let JobState::Cancelled { remote, .. } = &mut record.job.state else {
        return Err(StoreError::NotFound);
    };
    *remote = RemoteStop::Owed;
    record.job.checkpoint = Checkpoint::Running(run.clone());
    record.job.updated_at = now;
    Ok(())
}

/// Records what came of an owed stop.
pub fn stopped(record: &mut Record, outcome: RemoteStop, now: Timestamp) -> Result<(), StoreError> {
    let JobState::Cancelled { remote, .. } = &mut record.job.state else {
        return Err(StoreError::NotFound);
    };
    *remote = outcome;
    record.job.updated_at = now;
    Ok(())
}
