//! Which jobs may be removed.

use crate::rules::expired;
use crate::{Job, JobState, Prune, RemoteStop, Timestamp};

/// Whether `prune` covers the job and nothing forbids its removal.
pub fn prunable(job: &Job, prune: &Prune, now: Timestamp) -> bool {
    let done = match &job.state {
        JobState::Queued { .. } | JobState::Running { .. } => false,
        // The duty to stop a remote run is in the job, and would go with it.
        JobState::Cancelled { remote, .. } => *remote != RemoteStop::Owed,
        JobState::Succeeded { .. } | JobState::Failed { .. } => true,
    };
    done && match prune {
        Prune::Expired => expired(job, now),
        Prune::EndedBefore(moment) => {
            job.new.conversation.is_none() && job.ended_at().is_some_and(|end| end < *moment)
        }
        Prune::Conversation(conversation) => job.new.conversation.as_ref() == Some(conversation),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::ConversationId;
    use crate::rules::sample::{NOW, queued};

    /// A8: never an unfinished job, never a conversation by its age, never a duty.
    #[test]
    fn only_what_is_finished_and_owes_nothing_is_removed() {
        let conversation = ConversationId::new("c");
        let later = NOW.after(Duration::from_secs(86_400));
        let prunes =
            [Prune::Expired, Prune::EndedBefore(later), Prune::Conversation(conversation.clone())];
        let failed = || JobState::Failed { at: NOW };
        let cancelled = |remote| JobState::Cancelled { at: NOW, remote };
        let cases = [
            (queued().job.state, None, [false, false, false]),
            (JobState::Running { since: NOW }, Some(&conversation), [false, false, false]),
            (failed(), None, [true, true, false]),
            (failed(), Some(&conversation), [true, false, true]),
            (cancelled(RemoteStop::Owed), None, [false, false, false]),
            (cancelled(RemoteStop::Done), None, [true, true, false]),
        ];
        for (state, conversation, expected) in cases {
            let mut job = queued().job;
            job.state = state;
            job.new.conversation = conversation.cloned();
            let removed = prunes.each_ref().map(|prune| prunable(&job, prune, later));
            assert_eq!(removed, expected, "{:?} {:?}", job.state, job.new.conversation);
        }
        let mut kept = queued().job;
        kept.state = failed();
        kept.new.keep = None;
        assert!(!prunable(&kept, &Prune::Expired, later), "kept for ever");
    }
}
