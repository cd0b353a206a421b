//! The end of an attempt: its settlement, which the rules decide, and its log line.

use std::any::Any;

use outlast_core::rules::{self, End, RetryPolicy};
use outlast_core::{
    Cost, Failure, Job, JobState, Output, RecoverySemantics, ResendPolicy, ResumePolicy, Settlement,
};

use super::Attempt;
use crate::report_check::ReportCheck;

impl Attempt<'_> {
    /// Settles after a panic in the adapter's code. If it panicked before it stated its recovery semantics, none are
    /// assumed.
    pub(super) fn settle_panic(&self, panic: &(dyn Any + Send)) -> Settlement {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        tracing::error!(job.id = %self.job.id, panic = text, "the provider panicked");
        let none = RecoverySemantics {
            resend: ResendPolicy::Never,
            resume: ResumePolicy::Never,
            can_stop: false,
        };
        self.verdict(self.semantics.unwrap_or(none), End::Panicked)
    }

    pub(super) fn verdict(&self, semantics: RecoverySemantics, end: End) -> Settlement {
        let retrying =
            RetryPolicy { base: self.shared.options.retry_base, jitter: fastrand::f64() };
        rules::verdict(&self.job, semantics, end, retrying, self.shared.store.now())
    }
}

pub(super) fn log_settled(job: &Job, settlement: &Settlement) {
    let retries = job.failures.len();
    match settlement {
        Settlement::Succeed { output, raw: _ } => {
            // Not if the job is free or its cost is not known.
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
            if let (Cost::Unknown, Some(allowance)) = (output.cost, &job.allowance) {
                let counted = rules::reserved_amount(allowance).map(|amount| amount.to_string());
                tracing::warn!(
                    job.id = %job.id, conversation.id = job.new.conversation_id(), counted,
                    "the provider reported no usable cost for this run: it counts as may have been spent"
                );
            }
            warn_of_short_report(job, output);
        }
        // No limit had enough left for another run.
        Settlement::Retry { failure, .. } if job.state.kind().is_terminal() => {
            log_failure(job, job.failures.last().unwrap_or(failure));
        }
        Settlement::Retry { failure, wait, checkpoint: _ } => {
            let wait_ms = wait.as_millis();
            log_failure(job, failure);
            tracing::info!(job.id = %job.id, retries, wait_ms, "Job will be retried");
        }
        Settlement::Fail { failure, raw: _ } => log_failure(job, failure),
        Settlement::Release => tracing::info!(job.id = %job.id, "Job given back"),
        Settlement::Wait => tracing::info!(job.id = %job.id, "Job waits for an answer"),
    }
}

fn log_failure(job: &Job, failure: &Failure) {
    let outcome = if matches!(job.state, JobState::Failed { .. }) { "permanent" } else { "retry" };
    tracing::warn!(
        job.id = %job.id, conversation.id = job.new.conversation_id(), tool = job.new.tool(), code = %failure.code, error = failure.message, detail = failure.detail, outcome,
        "Job failed"
    );
}

/// C4: for conversations only, because only they ask for a length.
fn warn_of_short_report(job: &Job, output: &Output) {
    if job.new.conversation.is_none() {
        return;
    }
    let Some(ask) = job.new.request.research() else { return };
    let check = ReportCheck::check(ask, output).filter(ReportCheck::is_short);
    if let Some(ReportCheck { words, min_words, .. }) = check {
        tracing::warn!(job.id = %job.id, words, min_words, "the report is shorter than was asked for");
    }
}
