//! The end of an attempt: the one table of what is retried, resumed, failed or released.

use std::sync::Arc;
use std::time::Duration;

use super::approach::must_give_up;
use super::failures::{self, failure_with_run};
use super::retry::RetryPolicy;
use crate::{
    BeginError, Checkpoint, Code, Failure, Job, Output, ProviderError, ProviderErrorKind,
    RecoverySemantics, ResendPolicy, RunStatus, Settlement, Timestamp,
};

/// The event that ended an attempt.
#[derive(Debug)]
pub enum End {
    /// The provider delivered.
    Done {
        output: Box<Output>,
        /// The provider's final response, unchanged.
        raw: Option<Vec<u8>>,
    },
    /// The request did not become a run.
    NotBegun(BeginError),
    /// The run, or resuming it, ended with an error.
    Broken(ProviderError),
    /// The attempt exceeded its time limit.
    AttemptTimedOut,
    /// The job exceeded its time limit.
    LifeEnded,
    /// The worker is shutting down.
    Interrupted,
    /// The run waits for an answer of the job's owner.
    Waiting,
    /// The worker's own code failed.
    Panicked,
}

/// Decides how an attempt at `job` is settled. `job.checkpoint` is the latest recorded one.
pub fn verdict(
    job: &Job,
    semantics: RecoverySemantics,
    end: End,
    retrying: RetryPolicy,
    now: Timestamp,
) -> Settlement {
    let judged = FailedTry { job, semantics, retrying, now };
    match end {
        End::Done { output, raw } => {
            Settlement::Succeed { output: output.into(), raw: raw.map(Arc::new) }
        }
        End::Interrupted => Settlement::Release,
        End::Waiting => Settlement::Wait,
        End::NotBegun(BeginError::NotSent(error) | BeginError::Refused(error)) => {
            judged.settle_not_accepted(&error)
        }
        End::NotBegun(BeginError::Unknown(error)) => judged.maybe_accepted(&error),
        End::Broken(error) => judged.run_broken(&error),
        End::AttemptTimedOut => {
            let failure = failure_with_run(job, semantics, failures::attempt_timed_out(job, now));
            judged.retry(failure, None, job.checkpoint.clone())
        }
        End::LifeEnded => {
            judged.fail_for_good(failure_with_run(job, semantics, failures::life_ended(job, now)))
        }
        End::Panicked => judged.settle_panic(),
    }
}

/// A failed attempt, and the facts that its settlement depends on.
struct FailedTry<'a> {
    job: &'a Job,
    semantics: RecoverySemantics,
    retrying: RetryPolicy,
    now: Timestamp,
}

impl FailedTry<'_> {
    /// Settles a request that the provider has certainly not accepted.
    fn settle_not_accepted(&self, error: &ProviderError) -> Settlement {
        let failure = failures::provider_failure(self.job, error, self.now);
        if error.kind.is_permanent() {
            return self.fail_for_good(failure);
        }
        let checkpoint = match self.semantics.resend {
            // An earlier send under this key may have been accepted: only the same key cannot buy it twice.
            ResendPolicy::WithKey => self.job.checkpoint.clone(),
            ResendPolicy::Idempotent | ResendPolicy::Never => Checkpoint::NotBegun,
        };
        self.retry(failure, error.kind.retry_after(), checkpoint)
    }

    /// Settles a sent request of which it is not known whether the provider accepted it.
    fn maybe_accepted(&self, error: &ProviderError) -> Settlement {
        let failure = failures::provider_failure(self.job, error, self.now);
        let failure = match (self.semantics.resend, error.kind.is_permanent()) {
            (ResendPolicy::Idempotent, true) => return fail(failure),
            (ResendPolicy::Idempotent, false) => failure,
            (ResendPolicy::WithKey, false) => failures::mark_sent_under_its_key(failure),
            (ResendPolicy::WithKey, true) | (ResendPolicy::Never, _) => {
                return self.submit_unknown(failure);
            }
        };
        self.retry(failure, error.kind.retry_after(), self.job.checkpoint.clone())
    }

    /// Settles a run that ended with an error, or whose check did.
    fn run_broken(&self, error: &ProviderError) -> Settlement {
        let failure = failures::provider_failure(self.job, error, self.now);
        let kind = &error.kind;
        if *kind == ProviderErrorKind::StepUnknown {
            return self.submit_unknown(failure);
        }
        let is_lost = *kind == ProviderErrorKind::RunLost;
        let is_free = error.run == RunStatus::NotCharged;
        if is_lost && self.semantics.resend != ResendPolicy::Idempotent && !is_free {
            return fail(failures::run_lost(self.job, failure));
        }
        // Not if another check may find a report: that is worth more than a new run.
        let has_ended = kind.ends_the_run()
            || (matches!(error.run, RunStatus::Ended(_)) && kind.is_permanent());
        let (failure, checkpoint) = if is_lost || has_ended {
            (failure, Checkpoint::NotBegun)
        } else if is_free {
            // Nothing was begun that could finish. The next attempt uses what exists at the provider.
            (failure, self.job.checkpoint.clone())
        } else {
            // The check failed, perhaps at a proxy. The provider did not report that the run has ended, so its result
            // may still arrive.
            (failure_with_run(self.job, self.semantics, failure), self.job.checkpoint.clone())
        };
        if kind.is_permanent() {
            return fail(failure);
        }
        self.retry(failure, kind.retry_after(), checkpoint)
    }

    fn settle_panic(&self) -> Settlement {
        let failure = failures::worker_panicked(self.now);
        if self.is_sending() && self.semantics.resend != ResendPolicy::Idempotent {
            return self.submit_unknown(failure);
        }
        fail(failure_with_run(self.job, self.semantics, failure))
    }

    /// Settles with another attempt at `checkpoint`, if one is left.
    fn retry(
        &self,
        failure: Failure,
        asked_for: Option<Duration>,
        checkpoint: Checkpoint,
    ) -> Settlement {
        if must_give_up(&checkpoint, self.semantics) {
            // Another attempt could only give up, after a wait and without knowing the error.
            return self.submit_unknown(failure);
        }
        match self.retrying.next_wait(self.job, asked_for, self.now) {
            Some(wait) => Settlement::Retry { failure, wait, checkpoint },
            None => self.fail_for_good(failure),
        }
    }

    /// Settles without another attempt. If a send under the job's key may have been accepted, the job fails with
    /// SUBMIT_UNKNOWN, whatever the error of this attempt (P6).
    fn fail_for_good(&self, failure: Failure) -> Settlement {
        let earlier = &self.job.failures;
        let is_unknown = |failure: &Failure| failure.code == Code::SubmitUnknown;
        // The job's time ended before this attempt sent anything. With no failed attempt on record, Beginning was
        // recorded by a process that crashed while it sent.
        let sender_died = earlier.is_empty() && failure.code == Code::Timeout;
        let maybe_accepted = sender_died || is_unknown(&failure) || earlier.iter().any(is_unknown);
        if self.is_sending() && maybe_accepted && self.semantics.resend == ResendPolicy::WithKey {
            return self.submit_unknown(failure);
        }
        fail(failure)
    }

    fn is_sending(&self) -> bool {
        matches!(self.job.checkpoint, Checkpoint::Beginning { .. })
    }

    fn submit_unknown(&self, failure: Failure) -> Settlement {
        fail(failures::submit_unknown(self.job, self.semantics, failure))
    }
}

fn fail(failure: Failure) -> Settlement {
    Settlement::Fail { failure, raw: None }
}

#[cfg(test)]
mod tests;
