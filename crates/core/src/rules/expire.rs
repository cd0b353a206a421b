//! Two ends that the clock decides: a finished job is removed after its retention, and an unfinished one is given up
//! when its life is over.

use std::time::Duration;

use crate::{Job, Question, StateKind, Timestamp, Visibility};

/// Returns the end of a finished job's retention; `None` while it is unfinished or kept for ever.
///
/// A held call that succeeded has become a turn of its conversation. It is removed only when a person deletes the
/// conversation.
pub fn expires_at(job: &Job) -> Option<Timestamp> {
    if job.new.conversation.is_some()
        && job.new.visibility == Visibility::Unpromised
        && job.state.kind() == StateKind::Succeeded
    {
        return None;
    }
    Some(job.ended_at()?.after(job.new.keep?))
}

/// Returns whether the job is hidden from readers because its retention has ended.
pub fn is_expired(job: &Job, now: Timestamp) -> bool {
    expires_at(job).is_some_and(|end| end <= now)
}

/// Returns the time when an unfinished job must be given up, whatever attempts it has left. The time for which it waits
/// for answers without a worker does not count (M4).
pub fn life_ends_at(job: &Job) -> Option<Timestamp> {
    let waited = match &job.questions.current {
        Some(Question { parked_at: Some(parked_at), deadline, .. }) => deadline.since(*parked_at),
        Some(_) | None => Duration::ZERO,
    };
    let waited = waited.saturating_add(Duration::from_millis(job.questions.waited_ms));
    Some(job.created_at.after(job.new.life?.saturating_add(waited)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::tests::{NOW, output, queued};
    use crate::{ConversationId, JobState, RemoteStop};

    #[test]
    fn only_a_finished_job_is_ever_forgotten() {
        let keep = Duration::from_secs(1800);
        let much_later = NOW.after(keep * 1000);
        let mut job = queued().job;
        assert!(!is_expired(&job, much_later), "unfinished");
        job.state = JobState::Cancelled {
            at: NOW,
            remote: RemoteStop::NotNeeded,
            cost: crate::Cost::Unknown,
        };
        assert!(!is_expired(&job, NOW.after(keep - Duration::from_millis(1))));
        assert!(is_expired(&job, NOW.after(keep)));
        job.new.keep = None;
        assert!(!is_expired(&job, much_later), "kept for ever");
    }

    /// Only the answer of a held call is a turn that stays; a failed or promised job is removed after its retention.
    #[test]
    fn an_answered_held_call_stays_with_its_conversation() {
        let held = (true, Visibility::Unpromised);
        let ok = || JobState::Succeeded { at: NOW, output: output() };
        let cases = [
            (held, ok(), false),
            (held, JobState::Failed { at: NOW }, true),
            ((true, Visibility::Promised), ok(), true),
            ((false, Visibility::Unpromised), ok(), true),
        ];
        for ((has_conversation, visibility), state, goes) in cases {
            let mut job = queued().job;
            job.new.conversation = has_conversation.then(|| ConversationId::new("c"));
            job.new.visibility = visibility;
            job.state = state;
            assert_eq!(expires_at(&job).is_some(), goes, "{has_conversation} {visibility:?}");
        }
    }
}
