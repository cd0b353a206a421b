//! What a worker does with a job it has just claimed, judged by how far the last worker came.

use crate::{Again, Checkpoint, Code, Failure, Job, Nature, RemoteRun, Timestamp};

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
        Checkpoint::NotBegun => {
            Approach::Begin { key: format!("{}-{}", job.id, job.failures.len()) }
        }
        Checkpoint::Beginning { key } => match nature.again {
            Again::Safe | Again::WithKey => Approach::Begin { key: key.clone() },
            Again::Never => Approach::GiveUp(submit_unknown(now)),
        },
        Checkpoint::Running(run) if nature.resumes => Approach::Resume(run.clone()),
        Checkpoint::Running(run) => match nature.again {
            Again::Safe => Approach::Begin { key: run.id.clone() },
            Again::WithKey | Again::Never => Approach::GiveUp(submit_unknown(now)),
        },
    }
}

/// The failure of a job whose request may or may not have been accepted.
fn submit_unknown(now: Timestamp) -> Failure {
    Failure {
        code: Code::SubmitUnknown,
        message: "the server stopped while the request was on its way, so it may have been accepted and paid \
                  for; start the research again if you accept that risk"
            .to_owned(),
        detail: None,
        at: now,
    }
}
