//! Who may write to a job. Every write after a claim presents a [`Lease`]; a stale one is refused.

use crate::{EndNotices, Fence, Job, JobId, JobState, Timestamp, WorkerId};

/// The timed sole right of one worker to one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The job.
    pub job: JobId,
    /// The worker that claimed it.
    pub worker: WorkerId,
    /// The number of that claim.
    pub fence: Fence,
}

/// A job together with the right to work on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Claimed {
    /// The job, as it was when claimed.
    pub job: Job,
    /// The right to it.
    pub lease: Lease,
}

/// A job as a store keeps it: what readers see, and who holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// What readers see.
    pub job: Job,
    /// Who holds it; exactly while it is running.
    pub holder: Option<Holder>,
    /// How much of its owner's room it takes: [`crate::rules::ask_bytes`], and what its end left behind.
    pub bytes: u64,
    /// Whether a notice of its end is wanted, as its insert recorded.
    pub notice: EndNotices,
}

impl Record {
    /// Moves the job to another state: what a try has shown ends with it, and no worker holds it.
    pub(crate) fn enter(&mut self, state: JobState, now: Timestamp) {
        self.job.state = state;
        self.job.progress = None;
        self.job.partial = None;
        self.job.updated_at = now;
        self.holder = None;
    }
}

/// The worker that holds a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Which worker.
    pub worker: WorkerId,
    /// When its right runs out unless renewed.
    pub until: Timestamp,
}
