//! The first decision of a worker about a job that it has just claimed: whether a request may be sent, perhaps a
//! second time. It depends on the progress of the last worker and on the recovery semantics that the provider states
//! ([`RecoverySemantics`]).

use super::failures;
use super::send_key::new_send_key;
use crate::{
    Checkpoint, Code, Failure, Job, ProviderError, ProviderErrorKind, RecoverySemantics, RemoteRun,
    ResendPolicy, Timestamp,
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
pub fn approach(job: &Job, semantics: RecoverySemantics, now: Timestamp) -> Approach {
    match &job.checkpoint {
        checkpoint if must_give_up(checkpoint, semantics) => {
            let sentence = "the server stopped while the request was on its way";
            let failure = failures::plain(Code::SubmitUnknown, sentence, now);
            Approach::GiveUp(failures::submit_unknown(job, semantics, failure))
        }
        Checkpoint::NotBegun => Approach::Begin { key: new_send_key(job) },
        Checkpoint::Beginning { key } => Approach::Begin { key: key.clone() },
        Checkpoint::Running(run) if semantics.resume.can_resume(run) => {
            Approach::Resume(run.clone())
        }
        Checkpoint::Running(run) => Approach::Begin { key: run.id.clone() },
    }
}

/// Returns whether a run that the provider no longer knows is replaced by a new one at once. This is so only if
/// running it twice does no harm. As after any crash, no attempt is spent on it.
pub fn may_begin_again(semantics: RecoverySemantics, error: &ProviderError) -> bool {
    error.kind == ProviderErrorKind::RunLost && semantics.resend == ResendPolicy::Idempotent
}

/// Returns whether no attempt can follow one that ended at this checkpoint: the request may have been paid for, and
/// can neither be resumed nor sent a second time.
pub(super) fn must_give_up(checkpoint: &Checkpoint, semantics: RecoverySemantics) -> bool {
    match checkpoint {
        Checkpoint::NotBegun => false,
        Checkpoint::Beginning { .. } => semantics.resend == ResendPolicy::Never,
        Checkpoint::Running(run) => {
            !semantics.resume.can_resume(run) && semantics.resend != ResendPolicy::Idempotent
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ResumePolicy;
    use crate::ResumePolicy::{Always, FromJournal, WithCursor};
    use crate::rules::tests::{NOW, remote, running};

    const fn semantics(again: ResendPolicy, resumes: ResumePolicy) -> RecoverySemantics {
        RecoverySemantics { resend: again, resume: resumes, can_stop: true }
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
            (Checkpoint::NotBegun, semantics(ResendPolicy::Never, Always), again(first)),
            (beginning.clone(), semantics(ResendPolicy::Idempotent, Always), again("k")),
            (beginning.clone(), semantics(ResendPolicy::WithKey, Always), again("k")),
            (beginning, semantics(ResendPolicy::Never, Always), None),
            (
                under_way.clone(),
                semantics(ResendPolicy::Never, Always),
                Some(Approach::Resume(remote())),
            ),
            (
                under_way.clone(),
                semantics(ResendPolicy::Idempotent, ResumePolicy::Never),
                again("resp_1"),
            ),
            (under_way.clone(), semantics(ResendPolicy::WithKey, ResumePolicy::Never), None),
            (under_way.clone(), semantics(ResendPolicy::Never, ResumePolicy::Never), None),
            (under_way.clone(), semantics(ResendPolicy::Never, WithCursor), None),
            (
                under_way.clone(),
                semantics(ResendPolicy::Idempotent, FromJournal),
                Some(Approach::Resume(remote())),
            ),
            (under_way, semantics(ResendPolicy::Idempotent, WithCursor), again("resp_1")),
            (
                Checkpoint::Running(task.clone()),
                semantics(ResendPolicy::Never, WithCursor),
                Some(Approach::Resume(task)),
            ),
        ];
        for (checkpoint, semantics, expected) in cases {
            let job = running(checkpoint).0.job;
            let got = approach(&job, semantics, NOW);
            match expected {
                Some(expected) => assert_eq!(got, expected, "{:?} {semantics:?}", job.checkpoint),
                None => {
                    let Approach::GiveUp(failure) = got else { panic!("{semantics:?}: {got:?}") };
                    assert_eq!(failure.code, Code::SubmitUnknown);
                    assert!(failure.message.starts_with("the server stopped"), "{failure:?}");
                }
            }
        }
    }

    /// E6: a run that may run twice is begun again, whichever provider lost it.
    #[test]
    fn a_lost_run_is_begun_again_only_if_that_does_no_harm() {
        let error = |kind| ProviderError::new(kind, "");
        let cases = [
            (ResendPolicy::Idempotent, ProviderErrorKind::RunLost, true),
            (ResendPolicy::Never, ProviderErrorKind::RunLost, false),
            (ResendPolicy::WithKey, ProviderErrorKind::RunLost, false),
            (ResendPolicy::Idempotent, ProviderErrorKind::Unreachable, false),
        ];
        for (again, problem, expected) in cases {
            let got = may_begin_again(semantics(again, WithCursor), &error(problem.clone()));
            assert_eq!(got, expected, "{again:?} {problem:?}");
        }
    }
}
