//! The log lines of a try's end.

use outlast_core::{Cost, Failure, Job, JobState, Settlement};

pub(super) fn log_settled(job: &Job, settlement: &Settlement) {
    let retries = job.failures.len();
    match settlement {
        Settlement::Succeed { output, raw: _ } => {
            let cost = match output.cost {
                Cost::Reported(cost) | Cost::Computed(cost) | Cost::Estimate(cost) => {
                    Some(cost.to_string())
                }
                Cost::Unknown => None,
            };
            let duration_ms = job.ended_at().map(|end| end.since(job.created_at).as_millis());
            tracing::info!(job.id = %job.id, duration_ms, tokens = output.usage.total_tokens, cost, retries, "Job completed");
        }
        Settlement::Retry { failure, wait, checkpoint: _ } => {
            let wait_ms = wait.as_millis();
            log_failure(job, failure);
            tracing::info!(job.id = %job.id, retries, wait_ms, "Job will be retried");
        }
        Settlement::Fail { failure, raw: _ } => log_failure(job, failure),
        Settlement::Release => tracing::info!(job.id = %job.id, "Job given back"),
    }
}

fn log_failure(job: &Job, failure: &Failure) {
    let outcome = if matches!(job.state, JobState::Failed { .. }) { "permanent" } else { "retry" };
    tracing::warn!(
        job.id = %job.id, code = %failure.code, error = failure.message, detail = failure.detail, outcome,
        "Job failed"
    );
}
