//! How long a key stands for its job, and what a call made again under it is given.

use crate::{Job, JobState, KeyLife, NewJob, RemoteRun, Timestamp};

/// A key as a store keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    /// Of the request it was first used for.
    pub input_hash: [u8; 32],
    /// When it was first used.
    pub made_at: Timestamp,
    /// How long it holds.
    pub holds: KeyLife,
    /// When a call was first answered with the outcome of its job.
    pub answered_at: Option<Timestamp>,
}

/// How long a key stands, seen from where its job stands.
pub(super) enum Hold {
    /// As long as the job is unfinished.
    Unfinished,
    /// Up to this moment.
    Until(Timestamp),
    /// No more.
    Over,
}

pub(super) fn hold(key: &KeyRecord, job: &Job) -> Hold {
    let Some(ended_at) = job.ended_at() else { return Hold::Unfinished };
    let was_answered = key.answered_at.is_some();
    match (key.holds, &job.state) {
        (KeyLife::For(window), _) => Hold::Until(key.made_at.after(window)),
        (KeyLife::UntilAnswered { .. } | KeyLife::Repeats { .. }, JobState::Cancelled { .. }) => {
            Hold::Over
        }
        (KeyLife::UntilAnswered { .. }, _) if was_answered => Hold::Over,
        (KeyLife::UntilAnswered { after_end }, _) => Hold::Until(ended_at.after(after_end)),
        (KeyLife::Repeats { answered, .. }, JobState::Succeeded { .. }) if was_answered => {
            Hold::Until(ended_at.after(answered))
        }
        (KeyLife::Repeats { .. }, _) if was_answered && !job.needs_consent() => Hold::Over,
        (KeyLife::Repeats { unanswered, .. }, _) => Hold::Until(ended_at.after(unanswered)),
    }
}

/// Whether the key still stands for its job.
pub fn key_holds(key: &KeyRecord, job: &Job, now: Timestamp) -> bool {
    match hold(key, job) {
        Hold::Unfinished => true,
        Hold::Until(end) => now < end,
        Hold::Over => false,
    }
}

/// The key once a call was answered with what there is of its job; `None` when that changes nothing.
///
/// Nothing changes while the job is unfinished: its outcome is not known, and a second call would buy it again.
pub fn answered(key: &KeyRecord, job: &Job, now: Timestamp) -> Option<KeyRecord> {
    let first = key.answered_at.is_none() && job.state.kind().is_terminal();
    first.then_some(KeyRecord { answered_at: Some(now), ..*key })
}

/// What there is to say of an outcome that is told again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// When the job ended.
    pub ended_at: Timestamp,
    /// From when on the same call is a new one.
    pub until: Timestamp,
}

/// Whether the outcome of the job that a key names was told before; `None` when it is told for the first time.
pub fn repeat(key: &KeyRecord, job: &Job) -> Option<Repeat> {
    match hold(key, job) {
        Hold::Until(until) if key.answered_at.is_some() => {
            Some(Repeat { ended_at: job.ended_at()?, until })
        }
        Hold::Until(_) | Hold::Unfinished | Hold::Over => None,
    }
}

/// The run that a research call takes up whose key no longer holds for `job`: what was paid for and may still be had is
/// not bought again. Only where the call goes to the same provider with the same settings.
pub fn run_taken_up(key: &KeyRecord, job: &Job, new: &NewJob) -> Option<RemoteRun> {
    match key.holds {
        KeyLife::Repeats { .. } if job.new.profile == new.profile => job.run_left().cloned(),
        KeyLife::Repeats { .. } | KeyLife::UntilAnswered { .. } | KeyLife::For(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::rules::sample::{NOW, failure, output, queued, remote, running};
    use crate::{Checkpoint, Code, Failure, Profile, RemoteStop};

    const HOUR: Duration = Duration::from_secs(3600);
    const MINUTE: Duration = Duration::from_secs(60);
    const OWN: KeyLife = KeyLife::For(HOUR);
    const HELD: KeyLife = KeyLife::UntilAnswered { after_end: HOUR };
    const RESEARCH: KeyLife = KeyLife::Repeats { unanswered: HOUR, answered: MINUTE };
    /// Long after `NOW`, when keys are made.
    const ENDED: Timestamp = Timestamp::from_millis(NOW.as_millis() + 24 * 3_600_000);

    fn record(holds: KeyLife, answered: bool) -> KeyRecord {
        let answered_at = answered.then_some(ENDED);
        KeyRecord { input_hash: [0; 32], made_at: NOW, holds, answered_at }
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
        job.state = JobState::Cancelled { at: ENDED, remote: RemoteStop::NotNeeded };
        job
    }

    /// E9, promise 2: each kind of key at each state of its job, before and after a call was answered.
    #[test]
    fn a_key_holds_while_its_job_is_unfinished_and_a_while_longer() {
        let own = Some(NOW.after(HOUR));
        let (hour, minute) = (Some(ENDED.after(HOUR)), Some(ENDED.after(MINUTE)));
        // Which key of which job, and when it stops to hold before and after an answer.
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
        for (holds, job, ends) in cases {
            for (answered, end) in [false, true].into_iter().zip(ends) {
                let (key, told) =
                    (record(holds, answered), format!("{holds:?} {job:?} {answered}"));
                let Some(end) = end else {
                    assert!(!key_holds(&key, &job, ENDED), "{told}");
                    assert_eq!(repeat(&key, &job), None, "{told}");
                    continue;
                };
                let before = Timestamp::from_millis(end.as_millis() - 1);
                assert!(key_holds(&key, &job, before) && !key_holds(&key, &job, end), "{told}");
                let repeated = answered.then_some(Repeat { ended_at: ENDED, until: end });
                assert_eq!(repeat(&key, &job), repeated, "{told}");
            }
            for unfinished in [queued().job, running(Checkpoint::NotBegun).0.job] {
                let key = record(holds, false);
                assert!(key_holds(&key, &unfinished, ENDED.after(HOUR * 24)));
                assert_eq!(repeat(&key, &unfinished), None);
            }
        }
    }

    #[test]
    fn only_the_first_answer_with_an_outcome_counts() {
        for holds in [OWN, HELD, RESEARCH] {
            let later = ENDED.after(MINUTE);
            let told = answered(&record(holds, false), &succeeded(), ENDED);
            assert_eq!(told, Some(record(holds, true)), "{holds:?}");
            assert_eq!(answered(&record(holds, true), &succeeded(), later), None, "{holds:?}");
            assert_eq!(answered(&record(holds, false), &queued().job, later), None, "{holds:?}");
        }
    }

    /// Promise 2: a research call takes up the run its failure left, and no other call does.
    #[test]
    fn a_research_call_takes_up_what_its_failure_left() {
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
        for (holds, job, new, taken) in cases {
            let found = run_taken_up(&record(holds, true), job, new);
            assert_eq!(found, taken.then(remote), "{holds:?} {job:?}");
        }
    }
}
