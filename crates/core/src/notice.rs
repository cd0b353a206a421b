//! What is told when a job has ended (G7), to a program or an address that the operator named.
//!
//! The store keeps it in the same write as the end, so that a crash between the end and the telling loses nothing.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use crate::{JobId, Timestamp};

/// Whether a store keeps a notice of every end. Only where a process that uses the store tells them: they would pile up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndNotices {
    /// Nothing is kept.
    #[default]
    Off,
    /// One for each end, until it was delivered or given up.
    Kept,
}

/// What is told of one end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The job that ended.
    pub job: JobId,
    /// JSON, exactly as it is delivered.
    pub body: String,
}

/// A notice that one process has the right to deliver for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedNotice {
    /// What is to be delivered.
    pub notice: Notice,
    /// How often it was claimed, this time included. Names the claim: an older one records nothing.
    pub tries: u32,
}

/// What [`crate::Store::claim_notice`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoticeClaim {
    /// The notice that has been due longest.
    Claimed(ClaimedNotice),
    /// None is due.
    NoneDue {
        /// When the next one is, if there is one.
        next: Option<Timestamp>,
    },
}

/// What came of a claimed notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeOutcome {
    /// It was delivered, or given up: nothing is kept of it.
    Over,
    /// It is due again after this wait.
    Again(Duration),
}

/// Delivers notices.
#[async_trait]
pub trait Notifier: fmt::Debug + Send + Sync {
    /// Delivers one, within a limit of its own. Cancel-safe, but a dropped call may have delivered it.
    async fn deliver(&self, notice: &Notice) -> Result<(), NotDelivered>;
}

/// Why a notice was not delivered, for the log: no secret is in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct NotDelivered {
    /// What was wrong.
    pub why: String,
    /// What the program or the server said of it, cut.
    pub detail: Option<String>,
}
