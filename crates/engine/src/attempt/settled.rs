//! The log lines of a try's end.

use outlast_core::{Failure, Job, JobState, Output, ResearchAsk, Settlement};

use crate::report_check::ReportCheck;

pub(super) fn log_settled(job: &Job, settlement: &Settlement) {
    let retries = job.failures.len();
    match settlement {
        Settlement::Succeed { output, raw: _ } => {
            // Not of what is free, nor of what is not known.
            let cost = output.cost.amount().filter(|cost| cost.0 > 0).map(|cost| cost.to_string());
            let duration_ms = job.ended_at().map(|end| end.since(job.created_at).as_millis());
            tracing::info!(
                job.id = %job.id, conversation.id = job.new.conversation_id(), tool = job.new.tool(), duration_ms,
                tokens = output.usage.total_tokens, cost, retries,
                "Job completed"
            );
            if let Some(warning) = output.cost.warning() {
                tracing::warn!(
                    job.id = %job.id, conversation.id = job.new.conversation_id(), tool = job.new.tool(), cost,
                    "{warning}"
                );
            }
            warn_of_short_report(job, output);
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
        job.id = %job.id, conversation.id = job.new.conversation_id(), tool = job.new.tool(), code = %failure.code, error = failure.message, detail = failure.detail, outcome,
        "Job failed"
    );
}

/// C4: of conversations alone; only there a length is asked for.
fn warn_of_short_report(job: &Job, output: &Output) {
    if job.new.conversation.is_none() {
        return;
    }
    let Ok(ask) = serde_json::from_value::<ResearchAsk>(job.new.ask.clone()) else { return };
    let check = ReportCheck::of(&ask, output).filter(ReportCheck::is_short);
    if let Some(ReportCheck { words, min_words, .. }) = check {
        tracing::warn!(job.id = %job.id, words, min_words, "the report is shorter than was asked for");
    }
}
