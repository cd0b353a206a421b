//! The faults a scenario may ask for. What they do is decided where they strike.

mod read;

use crate::clause::Times;

/// An error in place of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HttpFault {
    pub(crate) status: u16,
    pub(crate) times: Times,
    pub(crate) on: Call,
    pub(crate) retry_after: Option<u64>,
    pub(crate) body: FaultBody,
    pub(crate) secret: Option<String>,
    /// Replaces the type and message that usually come with the status.
    pub(crate) out_of_credits: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Call {
    Submit,
    Poll,
    Attach,
    Cancel,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum FaultBody {
    Json,
    Html,
    Empty,
}

/// A complete answer whose content is wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Malformed {
    pub(crate) kind: Malformation,
    pub(crate) times: Times,
    /// `None` strikes every answer that can carry a report.
    pub(crate) on: Option<Channel>,
    /// The size of a huge answer.
    pub(crate) bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Malformation {
    Truncated,
    NotJson,
    WrongType,
    BadUtf8,
    Huge,
    NullFields,
    UnknownItem,
    UnknownStatus,
}

/// How an answer travels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Channel {
    /// The receipt of a job.
    Submit,
    Poll,
    Stream,
    /// The one answer of a call that is waited for.
    Whole,
}

/// An answer that drips.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Slow {
    pub(crate) first_byte_ms: u64,
    pub(crate) chunk_ms: u64,
    pub(crate) chunk_bytes: usize,
}

/// Where the first answers of a run break off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cut {
    pub(crate) after: CutAfter,
    pub(crate) times: u64,
    /// Resets the connection in place of closing it.
    pub(crate) rst: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum CutAfter {
    /// Events of a stream; other answers arrive.
    Events(usize),
    Bytes(usize),
}

/// Oddities of a stream that a client has to bear with.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sse {
    pub(crate) crlf: bool,
    pub(crate) pings: bool,
    pub(crate) dup: bool,
    pub(crate) gap: bool,
    pub(crate) unknown: bool,
    /// Whether `[DONE]` ends the stream; unset, as the API has it.
    pub(crate) done: Option<bool>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum CancelMode {
    #[default]
    Works,
    Slow {
        ms: u64,
    },
    /// Answered as if the run had ended, which goes on.
    Terminal400,
    /// Answered as if the run had never been, and so are polls from then on.
    Unknown400,
    Ignored,
}

/// Polls that lag behind the end of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stale {
    pub(crate) polls: u64,
    /// One poll tells the truth before the others take it back.
    pub(crate) backwards: bool,
}

/// A rate limit that is enforced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rate {
    pub(crate) rpm: u64,
    pub(crate) burst: u64,
    /// Whether polls, attaches and cancels count too.
    pub(crate) everything: bool,
    pub(crate) says_when: bool,
}

/// What a finished run claims to have cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Cost {
    Total { nanos: u64 },
    Unsaid,
}
