//! The journal of a run: the steps that it has taken and the pages that it has read. A resumed run finds both, so that
//! it buys and reads nothing twice (K2). `rules/journal.rs` decides what a worker may record.

use crate::{Fence, JobId, NanoUsd, Timestamp};

/// A step that a run is about to take: one request to a model, a search service or a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewStep {
    /// The name of the step in its run, the same in every attempt: `search:2:0`, `read:<digest of the address>`.
    pub key: String,
    /// The kind of work, for lists: `search`, `read`.
    pub kind: String,
    /// The digest of the input: the same key with other input is another step.
    pub input_digest: [u8; 32],
    /// The maximum cost; zero for a free step.
    pub bound: NanoUsd,
    /// The treatment of a step that was sent and not answered.
    pub resend: Resend,
    /// The maximum number of bytes that the owner may have stored, as in [`crate::Insert::max_bytes`]; [`u64::MAX`]
    /// for a step that is recorded in any case.
    pub max_bytes: u64,
}

/// The treatment of a step that was sent and whose answer was not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resend {
    /// It is reported as [`StepStart::Open`].
    Refuse,
    /// It is begun again, and counted in [`JournalStep::resent`]: it is free, or may be paid for twice.
    Allow,
}

/// The answer to a worker that begins a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepStart {
    /// The step is recorded as sent: the worker may send the request.
    New,
    /// The step was taken before, with this output.
    Done(String),
    /// The step failed before, for this reason.
    Failed(String),
    /// The step was sent under this claim of the job, and no answer was recorded. It may have been paid for.
    Open { fence: Fence },
    /// The key names a step with other input.
    Changed,
}

/// The end of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepEnd {
    pub result: StepResult,
    /// The cost.
    pub spent: NanoUsd,
    /// The number of tokens in the model's input.
    pub tokens_in: u64,
    /// The number of tokens in the model's output.
    pub tokens_out: u64,
}

impl StepEnd {
    /// Creates the end of a free step without a model.
    pub fn free(result: StepResult) -> Self {
        Self { result, spent: NanoUsd(0), tokens_in: 0, tokens_out: 0 }
    }
}

/// The result of a step: text of at most [`crate::rules::MAX_STEP_OUTPUT`] bytes; a longer one is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepResult {
    Done(String),
    /// The reason. The failure is final for the run.
    Failed(String),
}

/// A recorded step, without its output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalStep {
    pub key: String,
    pub kind: String,
    pub input_digest: [u8; 32],
    pub state: StepState,
    /// The claim of the job under which it was last sent.
    pub fence: Fence,
    /// The maximum cost of sending it once.
    pub bound: NanoUsd,
    /// The known cost.
    pub spent: NanoUsd,
    pub tokens_in: u64,
    pub tokens_out: u64,
    /// The number of times that it was sent again.
    pub resent: u32,
    /// The time when it was last sent.
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
}

/// The recorded output of a step that has ended; the reason if it has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepOutput {
    pub key: String,
    pub kind: String,
    pub output: String,
}

/// The state of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepState {
    /// It is about to be sent, or was sent.
    Sending,
    Done,
    Failed,
}

impl StepState {
    /// Returns the word for it in stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sending => "sending",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }

    /// Parses the word for it in stores.
    pub fn parse(word: &str) -> Option<Self> {
        let all = [Self::Sending, Self::Done, Self::Failed];
        all.into_iter().find(|state| state.as_str() == word)
    }
}

/// The decision of a person about a step whose end is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepDecision {
    /// It was done. It has no output.
    Done,
    /// It is begun once more, without a question.
    Rerun,
}

/// The result of such a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResolveOutcome {
    Recorded,
    /// A worker runs the job, and may be running the step.
    JobRuns,
    /// The job has no step with this key, or its end is known.
    NotOpen,
}

/// The cost of a run, by its journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepCosts {
    /// The cost of the steps that have ended, and of every step that was sent again.
    pub spent: NanoUsd,
    /// The maximum cost of the open steps, which may have been paid for.
    pub open: NanoUsd,
}

impl StepCosts {
    /// Sums the costs of steps. A step that was sent again counts with its maximum cost for each time.
    pub fn sum<'a>(steps: impl IntoIterator<Item = &'a JournalStep>) -> Self {
        let mut costs = Self::default();
        for step in steps {
            let resent = step.bound.0.saturating_mul(u64::from(step.resent));
            costs.spent = [costs.spent, step.spent, NanoUsd(resent)].into_iter().sum();
            if step.state == StepState::Sending {
                costs.open = [costs.open, step.bound].into_iter().sum();
            }
        }
        costs
    }
}

/// The takeover of a run by a new job: its steps, its pages and its row of the ledger move to that job (K3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Takeover {
    /// The ended job that the run belongs to.
    pub job: JobId,
    /// The treatment of the run's open steps. [`Resend::Allow`] is the consent of the owner: each is begun once more
    /// without a question.
    pub open_steps: Resend,
}

/// A page that a run has read, as text. Each owner has their own copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The digest of its address and its text: a page that has changed since is another page.
    pub digest: [u8; 32],
    pub url: String,
    /// The address after all redirects.
    pub final_url: String,
    /// The HTTP status.
    pub status: u16,
    /// The media type that the site stated.
    pub media_type: Option<String>,
    pub fetched_at: Timestamp,
    /// True if the text is only the beginning.
    pub truncated: bool,
    /// At most [`crate::rules::MAX_PAGE_TEXT`] bytes; a longer text is cut.
    pub text: String,
}
