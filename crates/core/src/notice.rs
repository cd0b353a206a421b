//! Notices of the ends of jobs (G7), for a program or an address that the operator named.
//!
//! The store records a notice in the same write as the end, so that a crash before the delivery loses nothing.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use crate::{JobId, Timestamp};

/// The setting for notices: a store may record one for every end. Use this only if a process that uses the store
/// delivers notices; otherwise they pile up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum EndNotices {
    /// No notice is recorded.
    #[default]
    Off,
    /// One notice for each end, until it was delivered or given up.
    Kept,
}

/// The message about one end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub job: JobId,
    /// JSON, exactly as it is delivered.
    pub body: String,
}

/// A notice that one process has the right to deliver for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedNotice {
    pub notice: Notice,
    /// The number of claims of it, including this one. It identifies the claim: the outcome of an older claim is
    /// ignored.
    pub tries: u32,
}

/// The result of [`crate::Store::claim_notice`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoticeClaim {
    /// The notice that has been due longest.
    Claimed(ClaimedNotice),
    /// No notice is due.
    NoneDue {
        /// The time when the next notice is due, if there is one.
        next: Option<Timestamp>,
    },
}

/// The outcome of a claimed notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoticeOutcome {
    /// It was delivered, or given up; nothing is kept of it.
    Over,
    /// It is due again after this wait.
    Again(Duration),
}

/// Delivers notices.
#[async_trait]
pub trait Notifier: fmt::Debug + Send + Sync {
    /// Delivers one notice within the notifier's own time limit. Cancel-safe, but a dropped call may have delivered
    /// it.
    async fn deliver(&self, notice: &Notice) -> Result<(), NotDelivered>;
}

/// The reason why a notice was not delivered, for the log. It contains no secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct NotDelivered {
    /// The error.
    pub why: String,
    /// The answer of the program or the server, cut.
    pub detail: Option<String>,
}
