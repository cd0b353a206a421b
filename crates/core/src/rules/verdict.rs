//! How a try ends: the one table of what is retried, resumed, failed or given back.

use std::sync::Arc;
use std::time::Duration;

use crate::rules::approach::{is_lost, submit_unknown};
use crate::rules::life_ends_at;
use crate::{
    Again, BeginError, Checkpoint, Code, Failure, Job, Nature, Output, ProviderError, Settlement,
    Timestamp, Trouble, Wording,
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
    let (failure, asked_for, checkpoint) = match end {
        End::Done { output, raw } => {
            return Settlement::Succeed { output: output.into(), raw: raw.map(Arc::new) };
        }
        End::Interrupted => return Settlement::Release,
        End::NotBegun(BeginError::NotSent(error)) | End::NotBegun(BeginError::Refused(error)) => {
            let failure = failure(job, &error, now);
            if error.trouble.is_permanent() {
                return Settlement::Fail { failure, raw: None };
            }
            let checkpoint = match nature.again {
                // An earlier send under this key may have been accepted: only the same key cannot buy it twice.
                Again::WithKey => job.checkpoint.clone(),
                Again::Safe | Again::Never => Checkpoint::NotBegun,
            };
            (failure, error.trouble.retry_after(), checkpoint)
        }
        End::NotBegun(BeginError::Unknown(error)) => match nature.again {
            Again::Never => {
                let failure = submit_unknown(&error.sentence, said(job, &error), now);
                return Settlement::Fail { failure, raw: None };
            }
            Again::Safe | Again::WithKey if error.trouble.is_permanent() => {
                return Settlement::Fail { failure: failure(job, &error, now), raw: None };
            }
            Again::Safe | Again::WithKey => {
                (failure(job, &error, now), error.trouble.retry_after(), job.checkpoint.clone())
            }
        },
        End::Broken(error) => {
            let failure = failure(job, &error, now);
            if error.trouble.is_permanent() {
                return Settlement::Fail { failure, raw: None };
            }
            let forgotten = error.trouble == Trouble::RunForgotten;
            if forgotten && nature.again != Again::Safe {
                let failure = submit_unknown(&error.sentence, said(job, &error), now);
                return Settlement::Fail { failure, raw: None };
            }
            let checkpoint = if forgotten || error.trouble.ends_the_run() {
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
    if is_lost(&checkpoint, nature) {
        // Another try could only give up, after a wait and without knowing what went wrong.
        let failure = submit_unknown(&failure.message, failure.detail, now);
        return Settlement::Fail { failure, raw: None };
    }
    let wait = retrying.wait(job.failures.len(), asked_for);
    let tries_left = u32::try_from(job.failures.len()).unwrap_or(u32::MAX) < job.new.max_failures;
    let time_left = life_ends_at(job).is_none_or(|end| now.after(wait) < end);
    if tries_left && time_left {
        Settlement::Retry { failure, wait, checkpoint }
    } else {
        Settlement::Fail { failure, raw: None }
    }
}

fn failure(job: &Job, error: &ProviderError, now: Timestamp) -> Failure {
    Failure {
        code: error.trouble.code(),
        message: error.sentence.clone(),
        detail: said(job, error),
        at: now,
    }
}

/// What upstream said, without what was asked.
fn said(job: &Job, error: &ProviderError) -> Option<String> {
    let said = error.detail.as_deref()?;
    Some(Wording::of(&job.new.ask).kept_out_of(said))
}

fn plain(code: Code, message: String, now: Timestamp) -> Failure {
    Failure { code, message, detail: None, at: now }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::sample::{NOW, failure as earlier, remote, running};
    use crate::{Resumes, StateKind};

    const PAID: Nature = Nature { again: Again::Never, resumes: Resumes::Always, stops: true };
    const KEYED: Nature = Nature { again: Again::WithKey, resumes: Resumes::Always, stops: false };
    /// As an answer that lives on its connection.
    const FLEETING: Nature = Nature { again: Again::Never, resumes: Resumes::Never, stops: false };
    /// As a search of one's own files.
    const FREE: Nature = Nature { again: Again::Safe, resumes: Resumes::Never, stops: false };
    const PLAIN: Retrying = Retrying { base: Duration::from_secs(2), jitter: 0.0 };

    fn error(trouble: Trouble) -> ProviderError {
        ProviderError {
            trouble,
            sentence: "it went wrong".to_owned(),
            detail: Some("secret".to_owned()),
        }
    }

    fn beginning() -> Checkpoint {
        Checkpoint::Beginning { key: "k".to_owned() }
    }

    fn under_way() -> Checkpoint {
        Checkpoint::Running(remote())
    }

    enum Expected {
        RetryAt(Checkpoint),
        Fail(Code),
    }
    use Expected::{Fail, RetryAt};

    /// B9 and B9a in one table.
    #[test]
    fn what_is_retried_where_and_what_is_not() {
        use BeginError::{NotSent, Refused, Unknown};
        let busy = || Trouble::Unavailable { retry_after: None };
        let slow = || Trouble::RateLimited { retry_after: None };
        let cases = [
            (
                beginning(),
                PAID,
                End::NotBegun(NotSent(error(Trouble::Unreachable))),
                RetryAt(Checkpoint::NotBegun),
            ),
            (
                beginning(),
                PAID,
                End::NotBegun(Refused(error(slow()))),
                RetryAt(Checkpoint::NotBegun),
            ),
            (
                beginning(),
                PAID,
                End::NotBegun(Refused(error(busy()))),
                RetryAt(Checkpoint::NotBegun),
            ),
            (
                beginning(),
                PAID,
                End::NotBegun(Refused(error(Trouble::Unauthorized))),
                Fail(Code::Unauthorized),
            ),
            (
                beginning(),
                PAID,
                End::NotBegun(Refused(error(Trouble::QuotaExhausted))),
                Fail(Code::QuotaExhausted),
            ),
            (
                beginning(),
                PAID,
                End::NotBegun(Refused(error(Trouble::Retired))),
                Fail(Code::EndpointRetired),
            ),
            (
                beginning(),
                PAID,
                End::NotBegun(Refused(error(Trouble::Rejected))),
                Fail(Code::ExecutionError),
            ),
            (beginning(), PAID, End::NotBegun(Unknown(error(busy()))), Fail(Code::SubmitUnknown)),
            (
                beginning(),
                PAID,
                End::NotBegun(Unknown(error(Trouble::Malformed))),
                Fail(Code::SubmitUnknown),
            ),
            (
                beginning(),
                KEYED,
                End::NotBegun(Unknown(error(Trouble::TimedOut))),
                RetryAt(beginning()),
            ),
            (
                beginning(),
                KEYED,
                End::NotBegun(Unknown(error(Trouble::Rejected))),
                Fail(Code::ExecutionError),
            ),
            (beginning(), KEYED, End::NotBegun(Refused(error(slow()))), RetryAt(beginning())),
            (
                beginning(),
                KEYED,
                End::NotBegun(NotSent(error(Trouble::Unreachable))),
                RetryAt(beginning()),
            ),
            (
                under_way(),
                KEYED,
                End::Broken(error(Trouble::RunFailed)),
                RetryAt(Checkpoint::NotBegun),
            ),
            (
                under_way(),
                PAID,
                End::Broken(error(Trouble::RunFailed)),
                RetryAt(Checkpoint::NotBegun),
            ),
            (
                under_way(),
                PAID,
                End::Broken(error(Trouble::RunGone)),
                RetryAt(Checkpoint::NotBegun),
            ),
            (
                under_way(),
                PAID,
                End::Broken(error(Trouble::RunForgotten)),
                Fail(Code::SubmitUnknown),
            ),
            (
                under_way(),
                FREE,
                End::Broken(error(Trouble::RunForgotten)),
                RetryAt(Checkpoint::NotBegun),
            ),
            (under_way(), PAID, End::Broken(error(busy())), RetryAt(under_way())),
            (under_way(), PAID, End::Broken(error(Trouble::Malformed)), RetryAt(under_way())),
            (
                under_way(),
                PAID,
                End::Broken(error(Trouble::Unauthorized)),
                Fail(Code::Unauthorized),
            ),
            (under_way(), PAID, End::AttemptTimedOut, RetryAt(under_way())),
            (beginning(), PAID, End::AttemptTimedOut, Fail(Code::SubmitUnknown)),
            (beginning(), KEYED, End::AttemptTimedOut, RetryAt(beginning())),
            (under_way(), FLEETING, End::Broken(error(busy())), Fail(Code::SubmitUnknown)),
            (
                under_way(),
                FLEETING,
                End::Broken(error(Trouble::Malformed)),
                Fail(Code::SubmitUnknown),
            ),
            (under_way(), FLEETING, End::AttemptTimedOut, Fail(Code::SubmitUnknown)),
            (
                under_way(),
                FLEETING,
                End::Broken(error(Trouble::RunTimedOut)),
                RetryAt(Checkpoint::NotBegun),
            ),
            (
                under_way(),
                FLEETING,
                End::Broken(error(Trouble::Unauthorized)),
                Fail(Code::Unauthorized),
            ),
            (
                under_way(),
                FLEETING,
                End::Broken(error(Trouble::RunFailed)),
                RetryAt(Checkpoint::NotBegun),
            ),
            (
                beginning(),
                FLEETING,
                End::NotBegun(Refused(error(slow()))),
                RetryAt(Checkpoint::NotBegun),
            ),
            (under_way(), FREE, End::Broken(error(busy())), RetryAt(under_way())),
            (under_way(), FREE, End::AttemptTimedOut, RetryAt(under_way())),
            (under_way(), PAID, End::LifeEnded, Fail(Code::Timeout)),
            (under_way(), PAID, End::Panicked, Fail(Code::InternalError)),
        ];
        for (at, nature, end, expected) in cases {
            let job = running(at).0.job;
            let name = format!("{end:?}");
            match (verdict(&job, nature, end, PLAIN, NOW), expected) {
                (Settlement::Retry { checkpoint, .. }, RetryAt(expected)) => {
                    assert_eq!(checkpoint, expected, "{name}");
                }
                (Settlement::Fail { failure, .. }, Fail(code)) => {
                    assert_eq!(failure.code, code, "{name}");
                    assert!(
                        !failure.message.contains("secret"),
                        "{name}: detail is for the operator"
                    );
                }
                (other, _) => panic!("{name}: {other:?}"),
            }
        }
    }

    /// B9a: says what happened, that it may have been paid for, and what to do.
    #[test]
    fn b9a_a_lost_answer_is_told_in_the_words_of_its_trouble() {
        let said = |end| match verdict(&running(under_way()).0.job, FLEETING, end, PLAIN, NOW) {
            Settlement::Fail { failure, .. } => (failure.message, failure.detail),
            other => panic!("{other:?}"),
        };
        let tail = "; it may have been accepted and paid for, so it was not sent again: ask again if you accept \
                    that risk";
        let broken = said(End::Broken(error(Trouble::Unreachable)));
        assert_eq!(broken, (format!("it went wrong{tail}"), Some("secret".to_owned())));
        let (message, _) = said(End::AttemptTimedOut);
        assert!(message.starts_with("no result within ") && message.ends_with(tail), "{message}");
    }

    /// E7: upstream's words are kept whole; those of the request are not among them, however the try ended.
    #[test]
    fn e7_what_upstream_said_is_kept_without_what_was_asked() {
        let mut job = running(under_way()).0.job;
        job.new.ask = serde_json::json!({"messages": [{"content": "Where is Ann's letter?"}]});
        let said = "HTTP 500: cannot read \\\"where is ann's letter\\\", try later";
        let error = |trouble| ProviderError { detail: Some(said.to_owned()), ..error(trouble) };
        let ends = [
            End::Broken(error(Trouble::RunFailed)),
            End::Broken(error(Trouble::Rejected)),
            End::Broken(error(Trouble::RunForgotten)),
            End::NotBegun(BeginError::NotSent(error(Trouble::Unreachable))),
            End::NotBegun(BeginError::Refused(error(Trouble::Rejected))),
            End::NotBegun(BeginError::Unknown(error(Trouble::TimedOut))),
        ];
        for end in ends {
            let name = format!("{end:?}");
            let (Settlement::Fail { failure, .. } | Settlement::Retry { failure, .. }) =
                verdict(&job, PAID, end, PLAIN, NOW)
            else {
                panic!("{name}")
            };
            let kept = "HTTP 500: cannot read \\\"[redacted]\\\", try later";
            assert_eq!(failure.detail.as_deref(), Some(kept), "{name}");
        }
    }

    #[test]
    fn leaving_spends_no_attempt() {
        let job = running(under_way()).0.job;
        assert_eq!(verdict(&job, PAID, End::Interrupted, PLAIN, NOW), Settlement::Release);
    }

    /// B9: N retries are N + 1 tries.
    #[test]
    fn the_last_try_fails_for_good() {
        let kinds = (0..4).map(|failures| {
            let mut job = running(under_way()).0.job;
            job.failures = vec![earlier(); failures];
            match verdict(&job, PAID, End::AttemptTimedOut, PLAIN, NOW) {
                Settlement::Retry { .. } => StateKind::Queued,
                Settlement::Fail { .. } => StateKind::Failed,
                other => panic!("{other:?}"),
            }
        });
        use StateKind::{Failed, Queued};
        assert_eq!(kinds.collect::<Vec<_>>(), [Queued, Queued, Failed, Failed]);
    }

    #[test]
    fn a_wait_beyond_the_jobs_life_fails_at_once() {
        let mut job = running(under_way()).0.job;
        job.new.life = Some(Duration::from_secs(1));
        let settlement = verdict(&job, PAID, End::AttemptTimedOut, PLAIN, NOW);
        assert!(matches!(settlement, Settlement::Fail { .. }), "{settlement:?}");
    }

    #[test]
    fn waits_double_spread_and_honour_the_provider() {
        let seconds = Duration::from_secs;
        let jittered = Retrying { jitter: 1.0, ..PLAIN };
        let cases = [
            (PLAIN, 0, None, seconds(2)),
            (PLAIN, 1, None, seconds(4)),
            (PLAIN, 2, None, seconds(8)),
            (PLAIN, 99, None, seconds(300)),
            (jittered, 0, None, seconds(3)),
            (PLAIN, 0, Some(seconds(30)), seconds(30)),
            (PLAIN, 2, Some(seconds(1)), seconds(8)),
            (PLAIN, 0, Some(seconds(86_400)), seconds(300)),
        ];
        for (retrying, failures, asked_for, expected) in cases {
            assert_eq!(retrying.wait(failures, asked_for), expected, "{failures} {asked_for:?}");
        }
    }
}
