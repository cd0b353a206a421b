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

/// Whether the key still stands for its job.
pub fn key_holds(key: &KeyRecord, job: &Job, now: Timestamp) -> bool {
    match (&job.state, key.holds) {
        (JobState::Queued { .. } | JobState::Running { .. }, _) => true,
        (_, Holds::For(window)) => now < key.made_at.after(window),
        (JobState::Cancelled { .. }, Holds::UntilAnswered { .. }) => false,
        (
            JobState::Succeeded { at, .. } | JobState::Failed { at },
            Holds::UntilAnswered { after_end },
        ) => now < at.after(after_end),
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
}
