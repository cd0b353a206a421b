//! The queries and the pages of lists.

use crate::{
    Code, ConversationId, JobId, NanoUsd, OwnerId, Progress, StateKind, Timestamp, Visibility,
};

/// The jobs to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobQuery {
    /// Only these states; all if empty.
    pub states: Vec<StateKind>,
    /// Only titles that contain this text, in any case.
    pub search: Option<String>,
    /// Only jobs in whose question or report each of these words begins a word ([`crate::search`]).
    pub words: Option<String>,
    /// Only jobs of this provider ([`crate::Profile::provider`]).
    pub provider: Option<String>,
    /// Only jobs whose last failed attempt has this code.
    pub code: Option<Code>,
    /// Only ids that start with this text.
    pub id_prefix: Option<String>,
    /// The maximum number of jobs in the page.
    pub limit: u32,
    /// Only what comes after the last page.
    pub after: Option<Cursor>,
}

/// The end of a page. Opaque to callers; only the store that created it reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor(pub u64);

/// A page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct JobPage {
    pub jobs: Vec<Summary>,
    /// The start of the next page, if there is one.
    pub next: Option<Cursor>,
}

/// A job as lists show it, without its request and result.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    pub id: JobId,
    pub owner: OwnerId,
    /// The conversation that it belongs to, if any.
    pub conversation: Option<ConversationId>,
    /// The kind of work.
    pub workflow: String,
    /// The provider that does it ([`crate::Profile::provider`]).
    pub provider: String,
    /// The model of its latest paid run, as far as it is known.
    pub model: Option<String>,
    /// The cost of its runs; `None` if no run was paid for.
    pub charge: Option<SummaryCharge>,
    /// The start of the question.
    pub title: String,
    /// The visibility of the job: whether its caller has the id.
    pub visibility: Visibility,
    pub state: StateKind,
    /// True if any worker has ever claimed it.
    pub was_claimed: bool,
    /// The session that its ask names ([`crate::RequestNote::SessionId`]), if any.
    pub session: Option<String>,
    /// The number of failed attempts.
    pub failures: u32,
    /// The code of the last failed attempt; `None` also for a code of a later version.
    pub code: Option<Code>,
    /// The progress of the running attempt.
    pub progress: Option<Progress>,
    /// The time when it was accepted.
    pub created_at: Timestamp,
    /// The time of its last change.
    pub updated_at: Timestamp,
    /// The time when it ended, if it has.
    pub ended_at: Option<Timestamp>,
}

/// The cost of a job's runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummaryCharge {
    /// The cost if it is known, otherwise the reserved amount.
    pub amount: NanoUsd,
    /// True if every run has ended and its cost is known.
    pub is_final: bool,
}

/// The number of jobs in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateCount {
    pub state: StateKind,
    /// The number, as far as jobs were counted.
    pub jobs: u32,
}

/// The conversations to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversationQuery {
    /// Only those whose last turn is in one of these states; all if empty.
    pub states: Vec<StateKind>,
    /// The maximum number of conversations in the page.
    pub limit: u32,
    /// Only what comes after the last page.
    pub after: Option<Cursor>,
}

/// A page of a list of conversations.
#[derive(Clone, Debug, PartialEq)]
pub struct ConversationPage {
    pub conversations: Vec<ConversationSummary>,
    /// The start of the next page, if there is one.
    pub next: Option<Cursor>,
}

/// A conversation as lists show it.
#[derive(Clone, Debug, PartialEq)]
pub struct ConversationSummary {
    pub id: ConversationId,
    /// The start of its first question.
    pub title: String,
    /// The state of its last turn.
    pub state: StateKind,
    /// The number of its turns.
    pub turns: u32,
    /// The number of turns that have a report.
    pub reports: u32,
    /// The time when it began.
    pub created_at: Timestamp,
    /// The time of the last change of its last turn.
    pub updated_at: Timestamp,
}
