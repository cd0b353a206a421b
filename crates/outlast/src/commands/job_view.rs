//! One job as it is shown: to people, to scripts, and to the shell when it has ended. Every command that shows a job does it
//! from here.

pub(super) mod show;
pub(super) mod json;
pub(super) mod markdown;
pub(super) mod outcome;

use outlast_core::{Job, JobId};

/// Where a request names the job it repeats.
pub(super) const RETRY_OF: &str = "retry_of";

/// The job this one repeats.
pub(super) fn retry_of(job: &Job) -> Option<JobId> {
    job.new.ask.get(RETRY_OF)?.as_str()?.parse().ok()
}
