//! The time for which an idempotency key names its job, and the result of a call that is repeated under it.

use crate::{Job, JobState, KeyLife, NewJob, RemoteRun, Timestamp};

/// A key as a store keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    /// The digest of the request that it was first used for.
    pub input_hash: [u8; 32],
    /// The time when it was first used.
    pub made_at: Timestamp,
    /// The time that it stays valid.
    pub life: KeyLife,
    /// The time when a call was first answered with the outcome of its job.
    pub answered_at: Option<Timestamp>,
}

/// The validity of a key in the present state of its job.
pub(super) enum Validity {
    /// As long as the job is unfinished.
    WhileUnfinished,
    /// Up to this moment.
    Until(Timestamp),
    /// No longer valid.
    Over,
}

pub(super) fn validity(key: &KeyRecord, job: &Job) -> Validity {
    let Some(ended_at) = job.ended_at() else { return Validity::WhileUnfinished };
    let was_answered = key.answered_at.is_some();
    match (key.life, &job.state) {
        (KeyLife::For(window), _) => Validity::Until(key.made_at.after(window)),
        (KeyLife::UntilAnswered { .. } | KeyLife::Replays { .. }, JobState::Cancelled { .. }) => {
            Validity::Over
        }
        (KeyLife::UntilAnswered { .. }, _) if was_answered => Validity::Over,
        (KeyLife::UntilAnswered { after_end }, _) => Validity::Until(ended_at.after(after_end)),
        (KeyLife::Replays { answered, .. }, JobState::Succeeded { .. }) if was_answered => {
            Validity::Until(ended_at.after(answered))
        }
        (KeyLife::Replays { .. }, _) if was_answered && !job.needs_consent() => Validity::Over,
        (KeyLife::Replays { unanswered, .. }, _) => Validity::Until(ended_at.after(unanswered)),
    }
}

/// Returns whether the key still names its job.
pub(super) fn key_is_valid(key: &KeyRecord, job: &Job, now: Timestamp) -> bool {
    match validity(key, job) {
        Validity::WhileUnfinished => true,
        Validity::Until(end) => now < end,
        Validity::Over => false,
    }
}

/// Returns the key after a call was answered with the outcome of its job; `None` if that changes nothing.
///
/// Nothing changes while the job is unfinished: its outcome is not known, and a second call would buy it again.
pub fn record_answer(key: &KeyRecord, job: &Job, now: Timestamp) -> Option<KeyRecord> {
    let first = key.answered_at.is_none() && job.state.kind().is_terminal();
    first.then_some(KeyRecord { answered_at: Some(now), ..*key })
}

/// An outcome that a repeated call is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replay {
    pub ended_at: Timestamp,
    /// The time from which the same call is a new one.
    pub until: Timestamp,
}

/// Returns what makes an answer a replay; `None` if no call was answered with the outcome before.
pub fn replay(key: &KeyRecord, job: &Job) -> Option<Replay> {
    match validity(key, job) {
        Validity::Until(until) if key.answered_at.is_some() => {
            Some(Replay { ended_at: job.ended_at()?, until })
        }
        Validity::Until(_) | Validity::WhileUnfinished | Validity::Over => None,
    }
}

/// Returns the run that a research call resumes when its key no longer names `job`, so that a run which was paid for
/// and may still deliver is not bought again. This is so only if the call goes to the same provider with the same
/// settings.
pub(super) fn run_to_resume(key: &KeyRecord, job: &Job, new: &NewJob) -> Option<RemoteRun> {
    match key.life {
        KeyLife::Replays { .. } if job.new.profile == new.profile => {
            job.run_left().or_else(|| job.journaled_run()).cloned()
        }
        KeyLife::Replays { .. } | KeyLife::UntilAnswered { .. } | KeyLife::For(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::rules::tests::{NOW, failure, output, queued, remote, running};
    use crate::{Checkpoint, Code, Failure, Profile, RemoteStop};

    const HOUR: Duration = Duration::from_secs(3600);
    const MINUTE: Duration = Duration::from_secs(60);
    const OWN: KeyLife = KeyLife::For(HOUR);
    const HELD: KeyLife = KeyLife::UntilAnswered { after_end: HOUR };
    const RESEARCH: KeyLife = KeyLife::Replays { unanswered: HOUR, answered: MINUTE };
    /// Long after `NOW`, when the keys are created.
    const ENDED: Timestamp = Timestamp::from_millis(NOW.as_millis() + 24 * 3_600_000);

    fn record(life: KeyLife, answered: bool) -> KeyRecord {
        let answered_at = answered.then_some(ENDED);
        KeyRecord { input_hash: [0; 32], made_at: NOW, life, answered_at }
    }

    fn succeeded() -> Job {
        let mut job = queued().job;
        job.state = JobState::Succeeded { at: ENDED, output: output() };
        job
    }

    fn failed(code: Code) -> Job {
        let mut job = queued().job;
        job.failures = vec![Failure { code, ..failure() }];
        job.state = JobState::Failed { at: ENDED };
        job
    }

    fn cancelled() -> Job {
        let mut job = queued().job;
        job.state = JobState::Cancelled {
            at: ENDED,
            remote: RemoteStop::NotNeeded,
            cost: crate::Cost::Unknown,
        };
        job
    }

    /// E9, promise 2: each kind of key in each state of its job, before and after a call was answered.
    #[test]
    fn a_key_holds_while_its_job_is_unfinished_and_a_while_longer() {
        let own = Some(NOW.after(HOUR));
        let (hour, minute) = (Some(ENDED.after(HOUR)), Some(ENDED.after(MINUTE)));
        // The key, its job, and the end of its validity before and after an answer.
        let cases = [
            (OWN, succeeded(), [own, own]),
            (OWN, failed(Code::RateLimited), [own, own]),
            (OWN, cancelled(), [own, own]),
            (HELD, succeeded(), [hour, None]),
            (HELD, failed(Code::RateLimited), [hour, None]),
            (HELD, failed(Code::SubmitUnknown), [hour, None]),
            (HELD, cancelled(), [None, None]),
            (RESEARCH, succeeded(), [hour, minute]),
            (RESEARCH, failed(Code::RateLimited), [hour, None]),
            (RESEARCH, failed(Code::Timeout), [hour, None]),
            (RESEARCH, failed(Code::SubmitUnknown), [hour, hour]),
            (RESEARCH, failed(Code::RunLost), [hour, hour]),
            (RESEARCH, cancelled(), [None, None]),
        ];
        for (life, job, ends) in cases {
            for (answered, end) in [false, true].into_iter().zip(ends) {
                let (key, shown) = (record(life, answered), format!("{life:?} {job:?} {answered}"));
                let Some(end) = end else {
                    assert!(!key_is_valid(&key, &job, ENDED), "{shown}");
                    assert_eq!(replay(&key, &job), None, "{shown}");
                    continue;
                };
                let before = Timestamp::from_millis(end.as_millis() - 1);
                assert!(
                    key_is_valid(&key, &job, before) && !key_is_valid(&key, &job, end),
                    "{shown}"
                );
                let repeated = answered.then_some(Replay { ended_at: ENDED, until: end });
                assert_eq!(replay(&key, &job), repeated, "{shown}");
            }
            for unfinished in [queued().job, running(Checkpoint::NotBegun).0.job] {
                let key = record(life, false);
                assert!(key_is_valid(&key, &unfinished, ENDED.after(HOUR * 24)));
                assert_eq!(replay(&key, &unfinished), None);
            }
        }
    }

    #[test]
    fn only_the_first_answer_with_an_outcome_counts() {
        for life in [OWN, HELD, RESEARCH] {
            let later = ENDED.after(MINUTE);
            let shown = record_answer(&record(life, false), &succeeded(), ENDED);
            assert_eq!(shown, Some(record(life, true)), "{life:?}");
            assert_eq!(record_answer(&record(life, true), &succeeded(), later), None, "{life:?}");
            assert_eq!(record_answer(&record(life, false), &queued().job, later), None, "{life:?}");
        }
    }

    /// Promise 2: a research call resumes the run that its failure left, and no other call does.
    #[test]
    fn a_research_call_resumes_the_run_that_its_failure_left() {
        let mut left = failed(Code::Timeout);
        left.checkpoint = Checkpoint::Running(remote());
        left.failures[0].run_goes_on = true;
        let over = failed(Code::Timeout);
        let new = left.new.clone();
        let other = NewJob { profile: Profile::new("another"), ..new.clone() };
        let cases = [
            (RESEARCH, &left, &new, true),
            (RESEARCH, &left, &other, false),
            (RESEARCH, &over, &new, false),
            (HELD, &left, &new, false),
            (OWN, &left, &new, false),
        ];
        for (life, job, new, taken) in cases {
            let found = run_to_resume(&record(life, true), job, new);
            assert_eq!(found, taken.then(remote), "{life:?} {job:?}");
        }
    }
}
