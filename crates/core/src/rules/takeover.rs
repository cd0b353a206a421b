//! The takeover of a run: a new job continues the run of an ended one from its journal, so that it buys no step twice
//! (K3). A command begins again, and finds the steps that it took (K12).

use crate::{
    Checkpoint, Fence, JobState, JournalStep, LedgerRow, NewJob, Record, RemoteStop, Resend,
    StepState, Timestamp,
};

/// The run of an ended job that a new job takes over.
#[derive(Clone, Debug, PartialEq)]
pub struct RunLeft {
    /// The checkpoint at which the new job begins.
    pub checkpoint: Checkpoint,
    /// The number of bytes of its steps and pages, which move to the new job.
    pub bytes: u64,
    /// The row of the ledger that the new job's row replaces.
    pub row: Option<LedgerRow>,
}

impl RunLeft {
    /// Returns the amount that its row counts for on this day. The new row counts instead.
    pub(super) fn counts_on(&self, now: Timestamp) -> u64 {
        self.row.as_ref().filter(|row| row.at.day() == now.day()).map_or(0, |row| row.counts().0)
    }
}

/// Releases the run of an ended job to a new one. Returns the checkpoint at which the new job begins; `None` if there is
/// nothing that the new job can continue: it belongs to another owner or other settings, or another job has taken it
/// over.
///
/// `bytes` is the number of bytes of the run's steps and pages.
pub fn release_run(record: &mut Record, new: &NewJob, bytes: u64) -> Option<Checkpoint> {
    let job = &mut record.job;
    if job.new.owner != new.owner || job.new.profile != new.profile {
        return None;
    }
    let Some(run) = job.journaled_run().cloned() else {
        if bytes == 0 || !job.may_leave_steps() {
            return None;
        }
        // The ended job keeps its run, which may still have to be stopped.
        record.bytes = record.bytes.saturating_sub(bytes);
        return Some(Checkpoint::NotBegun);
    };
    // Without a step there is nothing to continue, and the row of the ledger stays with the job: the journal may have
    // been removed by its age.
    if bytes == 0 {
        return None;
    }
    job.checkpoint = Checkpoint::NotBegun;
    if let Some(failure) = job.failures.last_mut() {
        failure.run_goes_on = false;
    }
    // The run was work of a process that has lost its lease: nothing of it is left to stop.
    if let JobState::Cancelled { remote, .. } = &mut job.state {
        *remote = RemoteStop::Ended;
    }
    record.bytes = record.bytes.saturating_sub(bytes);
    Some(Checkpoint::Running(run))
}

/// Changes a step as it moves to the job that takes its run over. With the owner's consent an open step loses its fence, and
/// is begun once more without a question.
pub fn take_over_step(step: &mut JournalStep, open_steps: Resend) {
    match (step.state, open_steps) {
        (StepState::Sending, Resend::Allow) => step.fence = Fence::NONE,
        (StepState::Sending, Resend::Refuse) | (StepState::Done | StepState::Failed, _) => {}
    }
}
