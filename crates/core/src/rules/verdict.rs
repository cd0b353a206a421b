//! How a try ends: the one table of what is retried, resumed, failed or given back.

use std::time::Duration;

use crate::rules::life_ends_at;
use crate::{
    Again, BeginError, Checkpoint, Code, Failure, Job, Nature, Output, ProviderError, Settlement,
    Timestamp,
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
pub fn verdict(
    job: &Job,
    nature: Nature,
    end: End,
    retrying: Retrying,
    now: Timestamp,
) -> Settlement {
    let (failure, asked_for, checkpoint) = match end {
        End::Done { output, raw } => return Settlement::Succeed { output, raw },
        End::Interrupted => return Settlement::Release,
        End::NotBegun(BeginError::NotSent(error)) | End::NotBegun(BeginError::Refused(error)) => {
            let failure = failure(&error, now);
            if error.trouble.is_permanent() {
                return Settlement::Fail { failure, raw: None };
            }
            (failure, error.trouble.retry_after(), Checkpoint::NotBegun)
        }
        End::NotBegun(BeginError::Unknown(error)) => match nature.again {
            Again::Never => {
                let failure = Failure {
                    code: Code::SubmitUnknown,
                    message: format!(
                        "{}; the request may have been accepted and paid for, so it was not sent again: start \
                         the research again if you accept that risk",
                        error.sentence
                    ),
                    detail: error.detail,
                    at: now,
                };
                return Settlement::Fail { failure, raw: None };
            }
            Again::Safe | Again::WithKey => {
                (failure(&error, now), error.trouble.retry_after(), job.checkpoint.clone())
            }
        },
        End::Broken(error) => {
            let failure = failure(&error, now);
            if error.trouble.is_permanent() {
                return Settlement::Fail { failure, raw: None };
            }
            let checkpoint = if error.trouble.ends_the_run() {
                Checkpoint::NotBegun
            } else {
                job.checkpoint.clone()
            };
            (failure, error.trouble.retry_after(), checkpoint)
        }
        End::AttemptTimedOut => {
            let message = format!("no result within {} s", job.new.attempt_timeout.as_secs());
            (plain(Code::Timeout, message, now), None, job.checkpoint.clone())
        }
        End::LifeEnded => {
            let message = format!(
                "no result within the {} s a job of this kind may take; ask for less, or raise the limit",
                job.new.life.unwrap_or_default().as_secs()
            );
            return Settlement::Fail { failure: plain(Code::Timeout, message, now), raw: None };
        }
        End::Panicked => {
            let message = "the worker failed; the log of the server has the details".to_owned();
            return Settlement::Fail {
                failure: plain(Code::InternalError, message, now),
                raw: None,
            };
        }
    };
    let wait = retrying.wait(job.failures.len(), asked_for);
    let tries_left = u32::try_from(job.failures.len()).unwrap_or(u32::MAX) < job.new.max_failures;
    let time_left = life_ends_at(job).is_none_or(|end| now.after(wait) < end);
    if tries_left && time_left {
        Settlement::Retry { failure, wait, checkpoint }
    } else {
        Settlement::Fail { failure, raw: None }
    }
}

fn failure(error: &ProviderError, now: Timestamp) -> Failure {
    Failure {
        code: error.trouble.code(),
        message: error.sentence.clone(),
        detail: error.detail.clone(),
        at: now,
    }
}

fn plain(code: Code, message: String, now: Timestamp) -> Failure {
    Failure { code, message, detail: None, at: now }
}
