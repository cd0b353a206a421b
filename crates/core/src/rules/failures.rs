//! The failures that an attempt can end with, in words for clients. [`verdict`](fn@super::verdict) decides what they
//! mean for the job.

use crate::reason::reason;
use crate::{
    Checkpoint, Code, Failure, Job, ProviderError, RecoverySemantics, RequestWords, ResendPolicy,
    RunStatus, Timestamp,
};

/// Returns a failure without a run and without words of an upstream.
pub(super) fn plain(code: Code, message: impl Into<String>, now: Timestamp) -> Failure {
    Failure {
        code,
        message: message.into(),
        detail: None,
        at: now,
        run_goes_on: false,
        run: RunStatus::Unknown,
    }
}

/// Returns the failure for a provider's error. The words of the request are removed from what upstream returned: the
/// adapter may know no more than the id of a run, and a failure goes to the log and to the store.
pub(super) fn provider_failure(job: &Job, error: &ProviderError, now: Timestamp) -> Failure {
    let request = RequestWords::collect(job.new.request.json());
    let detail = error.detail.as_deref().map(|said| request.redact(said));
    let message = match error.reason.as_deref().and_then(|said| reason(said, &request)) {
        Some(reason) => format!("{}; the provider says: \"{reason}\"", error.sentence),
        None => error.sentence.clone(),
    };
    Failure { detail, run: error.run, ..plain(error.kind.code(), message, now) }
}

pub(super) fn attempt_timed_out(job: &Job, now: Timestamp) -> Failure {
    let seconds = job.new.attempt_timeout.as_secs();
    plain(Code::Timeout, format!("no result within {seconds} s"), now)
}

pub(super) fn life_ended(job: &Job, now: Timestamp) -> Failure {
    let seconds = job.new.life.unwrap_or_default().as_secs();
    let message = format!(
        "no result within the {seconds} s a job of this kind may take; ask for less, or raise the limit"
    );
    plain(Code::Timeout, message, now)
}

pub(super) fn worker_panicked(now: Timestamp) -> Failure {
    let message = "the worker failed; the log of the server has the details";
    plain(Code::InternalError, message, now)
}

/// Returns the failure of an attempt whose run may still finish. It states whether another job can resume that run.
pub(super) fn failure_with_run(
    job: &Job,
    semantics: RecoverySemantics,
    failure: Failure,
) -> Failure {
    let run_goes_on =
        matches!(&job.checkpoint, Checkpoint::Running(run) if semantics.resume.can_resume(run));
    Failure { run_goes_on, ..failure }
}

/// Returns the failure of a send whose outcome is unknown and that a second send under the same key follows.
pub(super) fn mark_sent_under_its_key(failure: Failure) -> Failure {
    let message = format!(
        "{}; it may have been accepted, so it is sent again under the same key, for which the provider begins one run",
        failure.message
    );
    Failure { code: Code::SubmitUnknown, message, ..failure }
}

/// Returns the failure of a job whose request may have been accepted and cannot be found again. `failure` states what
/// happened to it.
pub(super) fn submit_unknown(job: &Job, semantics: RecoverySemantics, failure: Failure) -> Failure {
    // The advice after the semicolon is for a request that was certainly not accepted.
    let sentence = failure.message.split("; ").next().unwrap_or_default().to_owned();
    let known = match (sends_under_key(job, semantics), job.may_be_charged()) {
        (Some(sends), true) => format!(
            "it was sent up to {sends} times under one key, for which the provider begins one run, and that may have \
             been accepted and paid for; it is not sent again"
        ),
        (_, true) => "it may have been accepted and paid for, so it was not sent again".to_owned(),
        (_, false) => "it may have been done, or half of it, so it was not done again".to_owned(),
    };
    in_doubt(job, Code::SubmitUnknown, &format!("{sentence}; {known}"), failure)
}

/// Returns the maximum number of times that the request can have been sent under its key, if that is more than one.
/// Each claim sends it once.
fn sends_under_key(job: &Job, semantics: RecoverySemantics) -> Option<u64> {
    let is_sent = matches!(job.checkpoint, Checkpoint::Beginning { .. });
    let sends = job.fence.0.max(job.failures.len() as u64 + 1);
    (is_sent && semantics.resend == ResendPolicy::WithKey && sends > 1).then_some(sends)
}

/// Returns the failure of a job whose run the provider no longer knows.
pub(super) fn run_lost(job: &Job, failure: Failure) -> Failure {
    let known = if job.may_be_charged() {
        "it may have been paid for, so no other was begun"
    } else {
        "it may have done its work, so no other was begun"
    };
    in_doubt(job, Code::RunLost, &format!("{}; {known}", failure.message), failure)
}

/// Returns a failure after which only the owner's consent begins a new run.
fn in_doubt(job: &Job, code: Code, known: &str, failure: Failure) -> Failure {
    let next = if job.may_be_charged() {
        "begins a new run, which may be paid for a second time"
    } else {
        "runs it again"
    };
    let message = format!("{known}: `outlast jobs retry {} --again` {next}", job.id);
    Failure { code, message, ..failure }
}
