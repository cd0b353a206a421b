//! What lists are asked for and what they show.

use crate::{ConversationId, JobId, NanoUsd, OwnerId, Progress, StateKind, Timestamp, Visibility};

/// Which jobs to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobQuery {
    /// Only these states; all when empty.
    pub states: Vec<StateKind>,
    /// Only titles that contain this, in any case.
    pub search: Option<String>,
    /// Only jobs in whose question or report each of these words begins a word ([`crate::search`]).
    pub words: Option<String>,
    /// Only jobs of this provider ([`crate::Profile::provider`]).
    pub provider: Option<String>,
    /// Only ids that start with this.
    pub id_prefix: Option<String>,
    /// At most so many.
    pub limit: u32,
    /// Only what comes after the last page.
    pub after: Option<Cursor>,
}

/// Where a page ended. Opaque to callers; only the store that made it reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor(pub u64);

/// A page of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct JobPage {
    /// Newest first.
    pub jobs: Vec<Summary>,
    /// Where the next page starts, if there is one.
    pub next: Option<Cursor>,
}

/// A job as lists show it, without its request and result.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Its name.
    pub id: JobId,
    /// Whose it is.
    pub owner: OwnerId,
    /// The conversation it belongs to, if any.
    pub conversation: Option<ConversationId>,
    /// The kind of work.
    pub workflow: String,
    /// Who does it ([`crate::Profile::provider`]).
    pub provider: String,
    /// The model of its latest paid run, as far as is known.
    pub model: Option<String>,
    /// What its runs cost; `None` where none was paid for.
    pub charge: Option<SummaryCharge>,
    /// The start of the question.
    pub title: String,
    /// Whether its id was promised to the caller.
    pub visibility: Visibility,
    /// Where it stands.
    pub state: StateKind,
    /// Whether any worker has ever held it.
    pub was_claimed: bool,
    /// The session its ask names ([`crate::session_of`]), if any.
    pub session: Option<String>,
    /// How many tries have failed.
    pub failures: u32,
    /// How far the running try has come.
    pub progress: Option<Progress>,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When anything about it last changed.
    pub updated_at: Timestamp,
    /// When it ended, if it has.
    pub ended_at: Option<Timestamp>,
}

/// What the runs of a job cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummaryCharge {
    /// The cost where it is known, else what was set aside.
    pub amount: NanoUsd,
    /// Whether every run has ended and its cost is known.
    pub is_final: bool,
}

/// How many jobs are in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateCount {
    /// The state.
    pub state: StateKind,
    /// How many, as far as was counted.
    pub jobs: u32,
}

/// Which conversations to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversationQuery {
    /// Only those whose last turn is in one of these states; all when empty.
    pub states: Vec<StateKind>,
    /// At most so many.
    pub limit: u32,
    /// Only what comes after the last page.
    pub after: Option<Cursor>,
}

/// A page of a list of conversations.
#[derive(Clone, Debug, PartialEq)]
pub struct ConversationPage {
    /// Newest first.
    pub conversations: Vec<ConversationSummary>,
    /// Where the next page starts, if there is one.
    pub next: Option<Cursor>,
}

/// A conversation as lists show it.
#[derive(Clone, Debug, PartialEq)]
pub struct ConversationSummary {
    /// Its name.
    pub id: ConversationId,
    /// The start of its first question.
    pub title: String,
    /// Where its last turn stands.
    pub state: StateKind,
    /// How many turns it has.
    pub turns: u32,
    /// How many of them have a report.
    pub reports: u32,
    /// When it began.
    pub created_at: Timestamp,
    /// When anything about its last turn changed.
    pub updated_at: Timestamp,
}
