//! A job: one durable request, from its start to its one terminal state.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    ConversationId, Cost, Failure, Fence, JobId, Output, OwnerId, Profile, Progress, Questions,
    RemoteRun, RemoteStop, Request, Rev, RunAllowance, Timestamp, Visibility,
};

/// A request that an interface asks the engine to make durable.
#[derive(Clone, Debug, PartialEq)]
pub struct NewJob {
    /// The owner, who may see it.
    pub owner: OwnerId,
    /// The conversation that it is a turn of, if any. A conversation has at most one unfinished job.
    pub conversation: Option<ConversationId>,
    /// The job that it is about, if any: the report that it checks. It is removed together with that job.
    /// [`crate::Key::for_subject`] keeps it the only unfinished one.
    pub subject: Option<JobId>,
    /// The capabilities that a worker needs to run it.
    pub profile: Profile,
    /// The kind of work, as shown in lists: [`NewJob::DEEP_RESEARCH`], or a configured workflow.
    pub workflow: String,
    /// One line for lists: the start of the question.
    pub title: String,
    /// The request itself, in the form that its provider reads.
    pub request: Request,
    /// The priority; a higher one runs first.
    pub priority: i16,
    /// The way in which a worker gets the job, and whether the caller has its id.
    pub visibility: Visibility,
    /// The number of failures that another attempt may follow: N means N + 1 attempts.
    pub max_failures: u32,
    /// The time limit of one attempt.
    pub attempt_timeout: Duration,
    /// The time limit of the whole job, over all attempts.
    pub life: Option<Duration>,
    /// The retention of a finished job, counted from its end; `None` means for ever.
    pub keep: Option<Duration>,
}

impl NewJob {
    /// The workflow of every research job.
    pub const DEEP_RESEARCH: &str = "deep_research";
    /// The workflow of every check of citations.
    pub const CHECK_CITATIONS: &str = "check_citations";

    /// Returns its conversation, for the log.
    pub fn conversation_id(&self) -> Option<&str> {
        self.conversation.as_ref().map(ConversationId::as_str)
    }
}

/// A job as readers see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    pub id: JobId,
    /// The request.
    pub new: NewJob,
    /// The position in its conversation, from 1; also 1 for a job without a conversation.
    pub turn: u32,
    pub state: JobState,
    /// The failures of earlier attempts, oldest first. Their number is the number of failed attempts.
    pub failures: Vec<Failure>,
    /// The recorded progress that lets another worker continue.
    pub checkpoint: Checkpoint,
    /// The limits on the cost of its paid runs; `None` for a job that is free, and for one that an older version
    /// inserted.
    pub allowance: Option<RunAllowance>,
    /// The progress of the running attempt.
    pub progress: Option<Progress>,
    /// The beginning of the text that the running attempt is writing (G8), as far as it is known; see
    /// [`crate::Partial`]. It is removed when the attempt ends, and it is never the report.
    pub partial: Option<Arc<str>>,
    /// The questions that its runs have asked its owner (M4).
    pub questions: Questions,
    /// The number of its claims.
    pub fence: Fence,
    /// The time when it was accepted.
    pub created_at: Timestamp,
    /// The time of its last change.
    pub updated_at: Timestamp,
    /// The store's change number at that moment.
    pub rev: Rev,
}

impl Job {
    /// Returns the time when it reached its terminal state, if it has.
    pub fn ended_at(&self) -> Option<Timestamp> {
        match &self.state {
            JobState::Queued { .. } | JobState::Running { .. } => None,
            JobState::Succeeded { at, .. }
            | JobState::Failed { at }
            | JobState::Cancelled { at, .. } => Some(*at),
        }
    }

    /// Returns its result, if it has succeeded.
    pub fn output(&self) -> Option<&Output> {
        let JobState::Succeeded { output, .. } = &self.state else { return None };
        Some(output)
    }

    /// Returns whether any worker has ever claimed it.
    pub fn was_claimed(&self) -> bool {
        self.fence > Fence::NONE
    }
}

/// The state of a job.
#[derive(Clone, Debug, PartialEq)]
pub enum JobState {
    /// It waits for a worker: in the queue, or, if it is a held call, for its own process.
    Queued {
        /// No worker claims it before this moment.
        run_at: Timestamp,
    },
    /// A worker holds it.
    Running {
        /// The time of the worker's claim.
        since: Timestamp,
    },
    /// It ended with a result. Terminal.
    Succeeded {
        /// The time of its end.
        at: Timestamp,
        /// Its result; shared, because it may be megabytes and has many readers.
        output: Arc<Output>,
    },
    /// It ended without a result; the last of [`Job::failures`] gives the reason. Terminal.
    Failed {
        /// The time of its end.
        at: Timestamp,
    },
    /// Its owner stopped it. Terminal.
    Cancelled {
        /// The time of its end.
        at: Timestamp,
        /// The known state of the provider's run.
        remote: RemoteStop,
        /// The cost of that run, as far as the provider states it.
        cost: Cost,
    },
}

/// The recorded progress that lets another worker continue where this one stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "at", rename_all = "snake_case")]
pub enum Checkpoint {
    /// Nothing was sent.
    NotBegun,
    /// The request is about to be sent, or was sent. After a crash it cannot be known which.
    Beginning {
        /// The send key, for providers that honour one.
        key: String,
    },
    /// The provider works on it under this id.
    Running(RemoteRun),
}
