//! A job: one durable request, from its start to its one terminal state.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    ConversationId, Cost, Failure, Fence, JobId, Output, OwnerId, Profile, Progress, RemoteRun,
    RemoteStop, Rev, RunAllowance, Timestamp, Visibility,
};

/// What a face asks the engine to make durable.
#[derive(Clone, Debug, PartialEq)]
pub struct NewJob {
    /// Who may see it.
    pub owner: OwnerId,
    /// The conversation it is a turn of, if any; at most one unfinished job each.
    pub conversation: Option<ConversationId>,
    /// Which workers can run it.
    pub profile: Profile,
    /// The kind of work, as shown in lists: [`NewJob::DEEP_RESEARCH`], or a configured workflow.
    pub workflow: String,
    /// One line for lists; the start of the question.
    pub title: String,
    /// The request itself, in the shape its provider reads.
    pub ask: Value,
    /// Higher runs first.
    pub priority: i16,
    /// Whether the caller was given its id, and how a worker gets the job.
    pub visibility: Visibility,
    /// How many failures are forgiven: N means N + 1 tries.
    pub max_failures: u32,
    /// How long one try may take.
    pub attempt_timeout: Duration,
    /// How long the job may stay unfinished, over all tries.
    pub life: Option<Duration>,
    /// How long a finished job is kept, counted from its end; `None` is for ever.
    pub keep: Option<Duration>,
}

impl NewJob {
    /// The workflow of every research job.
    pub const DEEP_RESEARCH: &str = "deep_research";

    /// Its conversation, for the log.
    pub fn conversation_id(&self) -> Option<&str> {
        self.conversation.as_ref().map(ConversationId::as_str)
    }
}

/// A job as readers see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its name.
    pub id: JobId,
    /// What was asked for.
    pub new: NewJob,
    /// Its place in its conversation, from 1; 1 as well for a job without one.
    pub turn: u32,
    /// Where it stands.
    pub state: JobState,
    /// Why earlier tries failed, oldest first; their number is the number of failed attempts.
    pub failures: Vec<Failure>,
    /// What lets another worker go on.
    pub checkpoint: Checkpoint,
    /// What its paid runs may cost; `None` for a job that is free, and for one that an older version inserted.
    pub allowance: Option<RunAllowance>,
    /// How far the running try has come.
    pub progress: Option<Progress>,
    /// The beginning of the text that the running try is writing (G8), as far as it is known; see [`crate::Partial`]. Ends
    /// with the try and is no report.
    pub partial: Option<Arc<str>>,
    /// How often it has been claimed.
    pub fence: Fence,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When anything about it last changed.
    pub updated_at: Timestamp,
    /// The store's change number at that moment.
    pub rev: Rev,
}

impl Job {
    /// When it reached its terminal state, if it has.
    pub fn ended_at(&self) -> Option<Timestamp> {
        match &self.state {
            JobState::Queued { .. } | JobState::Running { .. } => None,
            JobState::Succeeded { at, .. }
            | JobState::Failed { at }
            | JobState::Cancelled { at, .. } => Some(*at),
        }
    }

    /// What came of it, if it has succeeded.
    pub fn output(&self) -> Option<&Output> {
        let JobState::Succeeded { output, .. } = &self.state else { return None };
        Some(output)
    }

    /// Whether any worker has ever held it.
    pub fn was_claimed(&self) -> bool {
        self.fence > Fence::NONE
    }
}

/// Where a job stands.
#[derive(Clone, Debug, PartialEq)]
pub enum JobState {
    /// Waits for a worker: in the queue, or, where it is a held call, for its own process.
    Queued {
        /// Not to be claimed before this moment.
        run_at: Timestamp,
    },
    /// A worker holds it.
    Running {
        /// When that worker claimed it.
        since: Timestamp,
    },
    /// Ended well. Terminal.
    Succeeded {
        /// When.
        at: Timestamp,
        /// What came of it; shared, for it may be megabytes and has many readers.
        output: Arc<Output>,
    },
    /// Ended badly; the last of [`Job::failures`] says why. Terminal.
    Failed {
        /// When.
        at: Timestamp,
    },
    /// Stopped by its owner. Terminal.
    Cancelled {
        /// When.
        at: Timestamp,
        /// What is known of the provider's own run.
        remote: RemoteStop,
        /// What that run cost, as far as the provider states it.
        cost: Cost,
    },
}

/// What lets another worker go on where this one stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "at", rename_all = "snake_case")]
pub enum Checkpoint {
    /// Nothing was sent.
    NotBegun,
    /// The request is about to be sent, or was sent: after a crash that cannot be known.
    Beginning {
        /// The key it is sent under, for providers that honour one.
        key: String,
    },
    /// The provider works on it under this name.
    Running(RemoteRun),
}
