//! The right to write to a job. Every write after a claim presents a [`Lease`]; a stale one is refused.

use crate::{EndNotices, Fence, Job, JobId, JobState, Timestamp, WorkerId};

/// The temporary exclusive right of one worker to one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub job: JobId,
    /// The worker that claimed it.
    pub worker: WorkerId,
    /// The number of that claim.
    pub fence: Fence,
}

/// A job together with the right to work on it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimedJob {
    /// The job, as it was when claimed.
    pub job: Job,
    pub lease: Lease,
}

/// A job as a store keeps it: the part that readers see, and the worker that holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The part that readers see.
    pub job: Job,
    /// The worker that holds it; set exactly while the job is running.
    pub holder: Option<Holder>,
    /// The number of bytes that count toward its owner's limit: [`crate::rules::request_bytes`], and what its end left
    /// behind.
    pub bytes: u64,
    /// The setting for a notice of its end, as its insert recorded it.
    pub notice: EndNotices,
}

impl Record {
    /// Moves the job to another state. Its progress and partial text end with the old state, and no worker holds it.
    pub(crate) fn enter(&mut self, state: JobState, now: Timestamp) {
        if state.kind().is_terminal() {
            self.job.questions.current = None;
        }
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
    pub worker: WorkerId,
    /// The time when its right expires unless renewed.
    pub until: Timestamp,
}
