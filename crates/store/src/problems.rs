//! Finds inconsistencies in a stored job: its columns must match the values that the rules compute.

use outlast_core::rules::{self, KeyRecord};
use outlast_core::{Body, Checkpoint, Job, JobState, Record, RemoteStop, Timestamp};

/// The maximum number of reported problems; any more are usually the same damage.
pub(crate) const MAX_PROBLEMS: usize = 100;

/// Returns one line for each inconsistency of the job. `expires_at` and `removable_at` are its columns.
pub(crate) fn of_job(
    Record { job, holder, .. }: &Record,
    key: Option<&KeyRecord>,
    [expires_at, removable_at]: [Option<Timestamp>; 2],
) -> Vec<String> {
    let is_owed = matches!(job.state, JobState::Cancelled { remote: RemoteStop::Owed, .. });
    let has_run = matches!(job.checkpoint, Checkpoint::Running(_));
    let problems = [
        (rules::expires_at(job) != expires_at, "has a wrong expires_at"),
        (rules::removable_at(job, key) != removable_at, "has a wrong removable_at"),
        (is_owed && !has_run, "has a pending stop and no remote run"),
        (holder.is_some() && !job.was_claimed(), "is held and was never claimed"),
        (lacks_result(job), "is a citation check without a result"),
    ];
    let found = problems.into_iter().filter(|(is_wrong, _)| *is_wrong);
    found.map(|(_, what)| format!("job {} {what}", job.id)).collect()
}

/// Returns true for a citation check that has succeeded, and whose result is not the data of one.
fn lacks_result(job: &Job) -> bool {
    let is_result = |body: &Body| matches!(body, Body::Tool { structured: Some(_), .. });
    job.new.request.is_citation_check()
        && job.output().is_some_and(|output| !is_result(&output.body))
}
