//! The conditions for the removal of a job.

use super::key::{Validity, validity};
use crate::rules::{KeyRecord, expires_at};
use crate::{Job, JobState, Prune, RemoteStop, Timestamp};

/// Returns whether `prune` covers the job and nothing forbids its removal. `key` is the one that names the job, if
/// any. A job about another one ([`crate::NewJob::subject`]) is also removed with it, in any state.
pub fn is_prunable(job: &Job, key: Option<&KeyRecord>, prune: &Prune, now: Timestamp) -> bool {
    match prune {
        Prune::Expired => removable_at(job, key).is_some_and(|moment| moment <= now),
        Prune::EndedBefore(moment) => {
            is_done(job)
                && job.new.conversation.is_none()
                && job.new.subject.is_none()
                && job.ended_at().is_some_and(|end| end < *moment)
        }
        Prune::Conversation(conversation) => {
            is_done(job) && job.new.conversation.as_ref() == Some(conversation)
        }
    }
}

/// Returns the time from which its age alone allows the removal of the job; `None` as long as something forbids it at
/// any age.
///
/// A job whose key is still valid is kept beyond its retention: without it, the next call under that key would
/// create, and pay for, a second one.
pub fn removable_at(job: &Job, key: Option<&KeyRecord>) -> Option<Timestamp> {
    let end = expires_at(job).filter(|_| is_done(job))?;
    match key.map(|key| validity(key, job)) {
        Some(Validity::Until(free)) => Some(end.max(free)),
        Some(Validity::WhileUnfinished | Validity::Over) | None => Some(end),
    }
}

/// Returns whether the job has ended and no stop is pending.
fn is_done(job: &Job) -> bool {
    match &job.state {
        JobState::Queued { .. } | JobState::Running { .. } => false,
        // The pending stop of a remote run is part of the job, and would be removed with it.
        JobState::Cancelled { remote, .. } => *remote != RemoteStop::Owed,
        JobState::Succeeded { .. } | JobState::Failed { .. } => true,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::rules::tests::{NOW, queued};
    use crate::{ConversationId, KeyLife};

    /// A8: never an unfinished job, never a conversation by its age, never a pending stop.
    #[test]
    fn only_finished_jobs_without_a_pending_stop_are_removed() {
        let conversation = ConversationId::new("c");
        let later = NOW.after(Duration::from_secs(86_400));
        let prunes =
            [Prune::Expired, Prune::EndedBefore(later), Prune::Conversation(conversation.clone())];
        let failed = || JobState::Failed { at: NOW };
        let cancelled =
            |remote| JobState::Cancelled { at: NOW, remote, cost: crate::Cost::Unknown };
        let cases = [
            (queued().job.state, None, [false, false, false]),
            (JobState::Running { since: NOW }, Some(&conversation), [false, false, false]),
            (failed(), None, [true, true, false]),
            (failed(), Some(&conversation), [true, false, true]),
            (cancelled(RemoteStop::Owed), None, [false, false, false]),
            (cancelled(RemoteStop::Ended), None, [true, true, false]),
        ];
        for (state, conversation, expected) in cases {
            let mut job = queued().job;
            job.state = state;
            job.new.conversation = conversation.cloned();
            let removed = prunes.each_ref().map(|prune| is_prunable(&job, None, prune, later));
            assert_eq!(removed, expected, "{:?} {:?}", job.state, job.new.conversation);
        }
        let mut check = queued().job;
        (check.state, check.new.subject) = (failed(), Some(check.id));
        let removed = prunes.each_ref().map(|prune| is_prunable(&check, None, prune, later));
        assert_eq!(removed, [true, false, false], "J1: a check stays as long as its report");
        let mut kept = queued().job;
        kept.state = failed();
        assert!(
            !is_prunable(&kept, None, &Prune::EndedBefore(NOW), later),
            "at that moment, not before"
        );
        kept.new.keep = None;
        assert!(!is_prunable(&kept, None, &Prune::Expired, later), "kept for ever");
    }
    /// Promise 2: as long as a key names the job, age does not remove it; a person still can.
    #[test]
    fn a_key_that_holds_keeps_its_job_beyond_its_retention() {
        let minute = Duration::from_secs(60);
        let mut job = queued().job;
        job.new.keep = Some(minute);
        job.state = JobState::Failed { at: NOW };
        let cancelled =
            JobState::Cancelled { at: NOW, remote: RemoteStop::Ended, cost: crate::Cost::Unknown };
        let repeats = KeyLife::Replays { unanswered: minute * 4, answered: minute * 2 };
        let cases = [
            (job.state.clone(), None, minute),
            (job.state.clone(), Some(KeyLife::For(minute * 5)), minute * 5),
            (job.state.clone(), Some(KeyLife::For(minute / 2)), minute),
            (job.state.clone(), Some(KeyLife::UntilAnswered { after_end: minute * 3 }), minute * 3),
            (cancelled.clone(), Some(KeyLife::For(minute * 5)), minute * 5),
            (cancelled, Some(KeyLife::UntilAnswered { after_end: minute * 3 }), minute),
            (job.state.clone(), Some(repeats), minute * 4),
        ];
        for (state, life, expected) in cases {
            job.state = state;
            let key =
                |life| KeyRecord { input_hash: [0; 32], made_at: NOW, life, answered_at: None };
            let key = life.map(key);
            let moment = NOW.after(expected);
            assert_eq!(removable_at(&job, key.as_ref()), Some(moment), "{:?} {key:?}", job.state);
            let before = Timestamp::from_millis(moment.as_millis() - 1);
            assert!(!is_prunable(&job, key.as_ref(), &Prune::Expired, before));
            assert!(is_prunable(&job, key.as_ref(), &Prune::Expired, moment));
            assert!(is_prunable(&job, key.as_ref(), &Prune::EndedBefore(moment), NOW));
        }
    }
}
