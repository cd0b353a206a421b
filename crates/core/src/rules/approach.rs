//! What a worker does with a job it has just claimed, judged by how far the last worker came.

use crate::{Again, Checkpoint, Code, Failure, Job, JobId, Nature, RemoteRun, Timestamp};

/// What to do with a claimed job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approach {
    /// Send the request under this key.
    Begin {
        /// Of this try; the same again if the fate of an earlier send is unknown.
        key: String,
    },
    /// Take up the provider's run.
    Resume(RemoteRun),
    /// Do nothing more: it may have been paid for already.
    GiveUp(Failure),
}

/// Decides between beginning, resuming and giving up.
pub fn approach(job: &Job, nature: Nature, now: Timestamp) -> Approach {
    match &job.checkpoint {
        checkpoint if is_lost(checkpoint, nature) => {
            let sentence = "the server stopped while the request was on its way";
            Approach::GiveUp(submit_unknown(sentence, None, now))
        }
        Checkpoint::NotBegun => {
            Approach::Begin { key: format!("{}-{}", job.id, job.failures.len()) }
        }
        Checkpoint::Beginning { key } => Approach::Begin { key: key.clone() },
        Checkpoint::Running(run) if nature.resumes => Approach::Resume(run.clone()),
        Checkpoint::Running(run) => Approach::Begin { key: run.id.clone() },
    }
}

/// The job a key of [`Approach::Begin`] belongs to; also where a provider went on with the key in the id of its run.
pub fn job_of_key(key: &str) -> Option<JobId> {
    key.split('-').next()?.parse().ok()
}

/// Whether a try that ended here cannot be followed by another: what may have been paid for can neither be taken up
/// nor sent again.
pub(super) fn is_lost(checkpoint: &Checkpoint, nature: Nature) -> bool {
    match checkpoint {
        Checkpoint::NotBegun => false,
        Checkpoint::Beginning { .. } => nature.again == Again::Never,
        Checkpoint::Running(_) => !nature.resumes && nature.again != Again::Safe,
    }
}

/// The failure of a job whose request may have been accepted and cannot be found again; `sentence` says what happened
/// to it.
pub(super) fn submit_unknown(sentence: &str, detail: Option<String>, now: Timestamp) -> Failure {
    let message = format!(
        "{sentence}; it may have been accepted and paid for, so it was not sent again: ask again if you accept that \
         risk"
    );
    Failure { code: Code::SubmitUnknown, message, detail, at: now }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::sample::{NOW, remote, running};

    const fn nature(again: Again, resumes: bool) -> Nature {
        Nature { again, resumes, stops: true }
    }

    #[test]
    fn a_key_names_its_job() {
        let job = running(Checkpoint::NotBegun).0.job;
        let Approach::Begin { key } = approach(&job, nature(Again::Safe, false), NOW) else {
            panic!("a fresh job is begun")
        };
        assert_eq!(job_of_key(&key), Some(job.id));
        assert_eq!(job_of_key(&format!("{key}-and more")), Some(job.id));
        assert_eq!(job_of_key("resp_1"), None);
    }

    /// B9a, design.md "what a kill -9 leaves".
    #[test]
    fn nothing_that_may_have_been_paid_for_is_begun_again() {
        let beginning = Checkpoint::Beginning { key: "k".to_owned() };
        let under_way = Checkpoint::Running(remote());
        let again = |key: &str| Some(Approach::Begin { key: key.to_owned() });
        let first = "00000000000000000000000000000007-0";
        let cases = [
            (Checkpoint::NotBegun, nature(Again::Never, true), again(first)),
            (beginning.clone(), nature(Again::Safe, true), again("k")),
            (beginning.clone(), nature(Again::WithKey, true), again("k")),
            (beginning, nature(Again::Never, true), None),
            (under_way.clone(), nature(Again::Never, true), Some(Approach::Resume(remote()))),
            (under_way.clone(), nature(Again::Safe, false), again("resp_1")),
            (under_way.clone(), nature(Again::WithKey, false), None),
            (under_way, nature(Again::Never, false), None),
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
}
