//! The first decision of a worker about a job that it has just claimed: whether a request may be sent, perhaps a
//! second time. It depends on the progress of the last worker and on the recovery semantics that the provider states
//! ([`Nature`]).

use super::failures;
use super::send_key::new_send_key;
use crate::{
    Again, Checkpoint, Code, Failure, Job, Nature, ProviderError, RemoteRun, Timestamp, Trouble,
};

/// The next step for a claimed job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approach {
    /// Sends the request under this key.
    Begin {
        /// The key of this attempt, or the key of an earlier send whose outcome is unknown.
        key: String,
    },
    /// Resumes the provider's run.
    Resume(RemoteRun),
    /// Does nothing more, because the request may have been paid for already.
    GiveUp(Failure),
}

/// Decides between beginning, resuming and giving up.
pub fn approach(job: &Job, nature: Nature, now: Timestamp) -> Approach {
    match &job.checkpoint {
        checkpoint if must_give_up(checkpoint, nature) => {
            let sentence = "the server stopped while the request was on its way";
            let failure = failures::plain(Code::SubmitUnknown, sentence, now);
            Approach::GiveUp(failures::submit_unknown(job, nature, failure))
        }
        Checkpoint::NotBegun => Approach::Begin { key: new_send_key(job) },
        Checkpoint::Beginning { key } => Approach::Begin { key: key.clone() },
        Checkpoint::Running(run) if nature.resumes.takes_up(run) => Approach::Resume(run.clone()),
        Checkpoint::Running(run) => Approach::Begin { key: run.id.clone() },
    }
}

/// Returns whether a run that the provider no longer knows is replaced by a new one at once. This is so only if
/// running it twice does no harm. As after any crash, no attempt is spent on it.
pub fn may_begin_again(nature: Nature, error: &ProviderError) -> bool {
    error.trouble == Trouble::RunLost && nature.again == Again::Safe
}

/// Returns whether no attempt can follow one that ended at this checkpoint: the request may have been paid for, and
/// can neither be resumed nor sent a second time.
pub(super) fn must_give_up(checkpoint: &Checkpoint, nature: Nature) -> bool {
    match checkpoint {
        Checkpoint::NotBegun => false,
        Checkpoint::Beginning { .. } => nature.again == Again::Never,
        Checkpoint::Running(run) => !nature.resumes.takes_up(run) && nature.again != Again::Safe,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Resumes;
    use crate::Resumes::{Always, WithCursor};
    use crate::rules::tests::{NOW, remote, running};

    const fn nature(again: Again, resumes: Resumes) -> Nature {
        Nature { again, resumes, stops: true }
    }

    /// B9a: the table "What a kill -9 leaves" of ARCHITECTURE.md.
    #[test]
    fn nothing_that_may_have_been_paid_for_is_begun_again() {
        let beginning = Checkpoint::Beginning { key: "k".to_owned() };
        let under_way = Checkpoint::Running(remote());
        let task = RemoteRun { cursor: Some("task".to_owned()), ..remote() };
        let again = |key: &str| Some(Approach::Begin { key: key.to_owned() });
        let first = "00000000000000000000000000000007-0";
        let cases = [
            (Checkpoint::NotBegun, nature(Again::Never, Always), again(first)),
            (beginning.clone(), nature(Again::Safe, Always), again("k")),
            (beginning.clone(), nature(Again::WithKey, Always), again("k")),
            (beginning, nature(Again::Never, Always), None),
            (under_way.clone(), nature(Again::Never, Always), Some(Approach::Resume(remote()))),
            (under_way.clone(), nature(Again::Safe, Resumes::Never), again("resp_1")),
            (under_way.clone(), nature(Again::WithKey, Resumes::Never), None),
            (under_way.clone(), nature(Again::Never, Resumes::Never), None),
            (under_way.clone(), nature(Again::Never, WithCursor), None),
            (under_way, nature(Again::Safe, WithCursor), again("resp_1")),
            (
                Checkpoint::Running(task.clone()),
                nature(Again::Never, WithCursor),
                Some(Approach::Resume(task)),
            ),
        ];
        for (checkpoint, nature, expected) in cases {
            let job = running(checkpoint).0.job;
            let got = approach(&job, nature, NOW);
            match expected {
                Some(expected) => assert_eq!(got, expected, "{:?} {nature:?}", job.checkpoint),
                None => {
                    let Approach::GiveUp(failure) = got else { panic!("{nature:?}: {got:?}") };
                    assert_eq!(failure.code, Code::SubmitUnknown);
                    assert!(failure.message.starts_with("the server stopped"), "{failure:?}");
                }
            }
        }
    }

    /// E6: a run that may run twice is begun again, whichever provider lost it.
    #[test]
    fn a_lost_run_is_begun_again_only_if_that_does_no_harm() {
        let error = |trouble| ProviderError::new(trouble, "");
        let cases = [
            (Again::Safe, Trouble::RunLost, true),
            (Again::Never, Trouble::RunLost, false),
            (Again::WithKey, Trouble::RunLost, false),
            (Again::Safe, Trouble::Unreachable, false),
        ];
        for (again, problem, expected) in cases {
            let got = may_begin_again(nature(again, WithCursor), &error(problem.clone()));
            assert_eq!(got, expected, "{again:?} {problem:?}");
        }
    }
}
