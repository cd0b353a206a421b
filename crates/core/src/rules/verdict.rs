//! How a try ends: the one table of what is retried, resumed, failed or given back.

use std::sync::Arc;
use std::time::Duration;

use crate::rules::approach::{must_give_up, run_lost, submit_unknown};
use crate::rules::life_ends_at;
use crate::{
    Again, BeginError, Checkpoint, Code, Failure, Job, Nature, Output, ProviderError, RequestWords,
    Settlement, Timestamp, Trouble,
};

/// What happened to a try.
#[derive(Debug)]
pub enum End {
    /// The provider delivered.
    Done {
        /// The result.
        output: Box<Output>,
        /// The provider's last word as it came.
        raw: Option<Vec<u8>>,
    },
    /// The request did not become a run.
    NotBegun(BeginError),
    /// The run, or taking it up, ended in trouble.
    Broken(ProviderError),
    /// The try took longer than it may.
    AttemptTimedOut,
    /// The job took longer than it may.
    LifeEnded,
    /// The worker is leaving.
    Interrupted,
    /// The worker's own code failed.
    Panicked,
}

/// How waits between tries grow.
#[derive(Clone, Copy, Debug)]
pub struct Retrying {
    /// The wait after the first failure.
    pub base: Duration,
    /// From 0 to 1: spreads the waits of jobs that failed together.
    pub jitter: f64,
}

impl Retrying {
    /// No wait grows beyond this, whatever the provider asks for.
    const LONGEST: Duration = Duration::from_secs(300);

    /// The wait after this many earlier failures: doubled each time, plus up to half of that.
    fn wait(self, failures: usize, asked_for: Option<Duration>) -> Duration {
        let doublings = u32::try_from(failures).unwrap_or(u32::MAX).min(16);
        let grown = self.base.saturating_mul(1 << doublings).min(Self::LONGEST);
        let spread = grown.mul_f64(1.0 + self.jitter.clamp(0.0, 1.0) / 2.0);
        spread.max(asked_for.unwrap_or(Duration::ZERO)).min(Self::LONGEST)
    }
}

/// Decides how a try of `job` is settled. `job.checkpoint` is the latest one recorded.
///
/// Here also the words of the request leave what upstream said about it: the adapter that heard it may have been
/// given no more than the name of a run, and what is settled goes to the log and to the store.
pub fn verdict(
    job: &Job,
    nature: Nature,
    end: End,
    retrying: Retrying,
    now: Timestamp,
) -> Settlement {
    // Whether this very try leaves a send of unknown fate behind.
    let mut unknown = false;
    let (failure, asked_for, checkpoint) = match end {
        End::Done { output, raw } => {
            return Settlement::Succeed { output: output.into(), raw: raw.map(Arc::new) };
        }
        End::Interrupted => return Settlement::Release,
        End::NotBegun(BeginError::NotSent(error)) | End::NotBegun(BeginError::Refused(error)) => {
            let failure = failure(job, &error, now);
            if error.trouble.is_permanent() {
                return fail_for_good(job, nature, failure, now);
            }
            let checkpoint = match nature.again {
                // An earlier send under this key may have been accepted: only the same key cannot buy it twice.
                Again::WithKey => job.checkpoint.clone(),
                Again::Safe | Again::Never => Checkpoint::NotBegun,
            };
            (failure, error.trouble.retry_after(), checkpoint)
        }
        End::NotBegun(BeginError::Unknown(error)) => {
            let permanent = error.trouble.is_permanent();
            match nature.again {
                Again::Safe if permanent => {
                    return Settlement::Fail { failure: failure(job, &error, now), raw: None };
                }
                Again::Safe => {}
                Again::WithKey if !permanent => unknown = true,
                Again::WithKey | Again::Never => {
                    let failure = submit_unknown(job, &error.sentence, said(job, &error), now);
                    return Settlement::Fail { failure, raw: None };
                }
            }
            (failure(job, &error, now), error.trouble.retry_after(), job.checkpoint.clone())
        }
        End::Broken(error) => {
            let mut failure = failure(job, &error, now);
            // Whatever a check met, a proxy's refusal too: what was not heard to end may still be had.
            if !error.trouble.ends_the_run() && error.trouble != Trouble::RunLost {
                failure = beside_its_run(job, nature, failure);
            }
            if error.trouble.is_permanent() {
                return Settlement::Fail { failure, raw: None };
            }
            let lost = error.trouble == Trouble::RunLost;
            if lost && nature.again != Again::Safe {
                let failure = run_lost(job, &error.sentence, said(job, &error), now);
                return Settlement::Fail { failure, raw: None };
            }
            let checkpoint = if lost || error.trouble.ends_the_run() {
                Checkpoint::NotBegun
            } else {
                job.checkpoint.clone()
            };
            (failure, error.trouble.retry_after(), checkpoint)
        }
        End::AttemptTimedOut => {
            let message = format!("no result within {} s", job.new.attempt_timeout.as_secs());
            let failure = beside_its_run(job, nature, plain(Code::Timeout, message, now));
            (failure, None, job.checkpoint.clone())
        }
        End::LifeEnded => {
            let message = format!(
                "no result within the {} s a job of this kind may take; ask for less, or raise the limit",
                job.new.life.unwrap_or_default().as_secs()
            );
            let failure = beside_its_run(job, nature, plain(Code::Timeout, message, now));
            return fail_for_good(job, nature, failure, now);
        }
        End::Panicked => {
            let message = "the worker failed; the log of the server has the details".to_owned();
            let failure = beside_its_run(job, nature, plain(Code::InternalError, message, now));
            let sending = matches!(job.checkpoint, Checkpoint::Beginning { .. });
            if sending && nature.again != Again::Safe {
                let failure = submit_unknown(job, &failure.message, None, now);
                return Settlement::Fail { failure, raw: None };
            }
            return Settlement::Fail { failure, raw: None };
        }
    };
    if must_give_up(&checkpoint, nature) {
        // Another try could only give up, after a wait and without knowing what went wrong.
        let failure = submit_unknown(job, &failure.message, failure.detail, now);
        return Settlement::Fail { failure, raw: None };
    }
    let wait = retrying.wait(job.failures.len(), asked_for);
    let tries_left = u32::try_from(job.failures.len()).unwrap_or(u32::MAX) < job.new.max_failures;
    let time_left = life_ends_at(job).is_none_or(|end| now.after(wait) < end);
    match (tries_left && time_left, unknown) {
        (true, false) => Settlement::Retry { failure, wait, checkpoint },
        (true, true) => {
            Settlement::Retry { failure: sent_under_its_key(failure), wait, checkpoint }
        }
        (false, false) => fail_for_good(job, nature, failure, now),
        (false, true) => {
            let failure = submit_unknown(job, &failure.message, failure.detail, now);
            Settlement::Fail { failure, raw: None }
        }
    }
}

/// A failure that no other try follows. Where an earlier send under the job's key may have been accepted, that is what
/// counts, whatever the last try met (P6).
fn fail_for_good(job: &Job, nature: Nature, failure: Failure, now: Timestamp) -> Settlement {
    let unknown = |earlier: &Failure| earlier.code == Code::SubmitUnknown;
    // A job that was never refused and stands at Beginning was sent by a process that died.
    let in_doubt = job.failures.iter().any(unknown)
        || (job.failures.is_empty() && failure.code == Code::Timeout);
    let sent = matches!(job.checkpoint, Checkpoint::Beginning { .. });
    let failure = match nature.again {
        Again::WithKey if sent && in_doubt => {
            submit_unknown(job, &failure.message, failure.detail, now)
        }
        Again::WithKey | Again::Never | Again::Safe => failure,
    };
    Settlement::Fail { failure, raw: None }
}

/// The failure of a send of unknown fate that is followed by another under the same key.
fn sent_under_its_key(failure: Failure) -> Failure {
    let message = format!(
        "{}; it may have been accepted, so it is sent again under the same key, for which the provider begins one run",
        failure.message
    );
    Failure { code: Code::SubmitUnknown, message, ..failure }
}

/// A failure beside a run that was not heard to end: it says whether that can be taken up.
fn beside_its_run(job: &Job, nature: Nature, failure: Failure) -> Failure {
    let goes_on =
        matches!(&job.checkpoint, Checkpoint::Running(run) if nature.resumes.takes_up(run));
    Failure { run_goes_on: goes_on, ..failure }
}

fn failure(job: &Job, error: &ProviderError, now: Timestamp) -> Failure {
    Failure {
        code: error.trouble.code(),
        message: error.sentence.clone(),
        detail: said(job, error),
        at: now,
        run_goes_on: false,
    }
}

/// What upstream said, without what was asked.
fn said(job: &Job, error: &ProviderError) -> Option<String> {
    let said = error.detail.as_deref()?;
    Some(RequestWords::of(&job.new.ask).kept_out_of(said))
}

fn plain(code: Code, message: String, now: Timestamp) -> Failure {
    Failure { code, message, detail: None, at: now, run_goes_on: false }
}

#[cfg(test)]
mod tests;
