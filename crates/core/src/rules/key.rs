//! How long a key stands for its job.

use crate::{Holds, Job, JobState, Timestamp};

/// A key as a store keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    /// Of the request it was first used for.
    pub input_hash: [u8; 32],
    /// When it was first used.
    pub made_at: Timestamp,
    /// How long it holds.
    pub holds: Holds,
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
    match (&job.state, key.holds) {
        (JobState::Queued { .. } | JobState::Running { .. }, _) => Hold::Unfinished,
        (_, Holds::For(window)) => Hold::Until(key.made_at.after(window)),
        (JobState::Cancelled { .. }, Holds::UntilAnswered { .. }) => Hold::Over,
        (
            JobState::Succeeded { at, .. } | JobState::Failed { at },
            Holds::UntilAnswered { after_end },
        ) => Hold::Until(at.after(after_end)),
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

/// Whether the key is free once a caller has received what there is of its job.
///
/// Not while the job is unfinished: nobody can have received its outcome, and a second call would buy it again.
pub fn answer_frees(key: &KeyRecord, job: &Job) -> bool {
    match key.holds {
        Holds::For(_) => false,
        Holds::UntilAnswered { .. } => job.state.kind().is_terminal(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::rules::sample::{NOW, output, queued, running};
    use crate::{Checkpoint, RemoteStop};

    /// E9, promise 2: each kind of key at each state of its job.
    #[test]
    fn a_key_holds_while_its_job_is_unfinished_and_a_while_longer() {
        let hour = Duration::from_secs(3600);
        let own = Holds::For(hour);
        let held = Holds::UntilAnswered { after_end: hour };
        let late = NOW.after(hour * 24);
        let ended = late;
        let succeeded = JobState::Succeeded { at: ended, output: output() };
        let failed = JobState::Failed { at: ended };
        let cancelled = JobState::Cancelled { at: ended, remote: RemoteStop::NotNeeded };
        let before = |moment: Timestamp| Timestamp::from_millis(moment.as_millis() - 1);
        let cases = [
            (queued().job.state, own, late, true),
            (running(Checkpoint::NotBegun).0.job.state, held, late, true),
            (succeeded.clone(), own, before(NOW.after(hour)), true),
            (succeeded.clone(), own, NOW.after(hour), false),
            (cancelled.clone(), own, before(NOW.after(hour)), true),
            (succeeded.clone(), held, before(ended.after(hour)), true),
            (succeeded, held, ended.after(hour), false),
            (failed, held, before(ended.after(hour)), true),
            (cancelled, held, ended, false),
        ];
        for (state, holds, now, expected) in cases {
            let mut job = queued().job;
            job.state = state.clone();
            let key = KeyRecord { input_hash: [0; 32], made_at: NOW, holds };
            assert_eq!(key_holds(&key, &job, now), expected, "{state:?} {holds:?} {now}");
        }
    }
    #[test]
    fn an_answer_frees_the_key_of_a_finished_held_call_only() {
        let hour = Duration::from_secs(3600);
        let failed = JobState::Failed { at: NOW };
        let cases = [
            (failed.clone(), Holds::UntilAnswered { after_end: hour }, true),
            (failed, Holds::For(hour), false),
            (queued().job.state, Holds::UntilAnswered { after_end: hour }, false),
        ];
        for (state, holds, expected) in cases {
            let mut job = queued().job;
            job.state = state;
            let key = KeyRecord { input_hash: [0; 32], made_at: NOW, holds };
            assert_eq!(answer_frees(&key, &job), expected, "{:?} {holds:?}", job.state);
        }
    }
}
