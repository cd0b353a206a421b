//! The faults a scenario may ask for. What they do is decided where they strike; their defaults are in `scenario`.

use std::num::NonZeroU64;

use serde::Deserialize;

/// What a cent is.
pub(crate) const CENT_NANOS: u64 = 10_000_000;

/// An error in place of an answer.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct HttpFault {
    pub(crate) status: u16,
    /// How many requests meet it; unset, all.
    pub(crate) times: Option<u64>,
    pub(crate) on: Call,
    pub(crate) retry_after: Option<u64>,
    pub(crate) body: FaultBody,
    pub(crate) secret: Option<String>,
    /// Says that there are no credits left, whatever the status.
    pub(crate) quota: bool,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Call {
    /// Making a session.
    Create,
    /// A look at a session that nothing was sent into.
    Look,
    Submit,
    Poll,
    Attach,
    Cancel,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FaultBody {
    Json,
    Html,
    Empty,
}

/// A complete answer whose content is wrong.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Malformed {
    pub(crate) kind: Malformation,
    pub(crate) times: Option<u64>,
    /// `None` strikes every answer that can carry a report.
    pub(crate) on: Option<Channel>,
    /// The size of a huge answer.
    pub(crate) bytes: usize,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
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
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Channel {
    /// The receipt of a job.
    Submit,
    Poll,
    Stream,
    /// The one answer of a call that is waited for.
    Whole,
}

impl Malformed {
    /// Whether it strikes an answer that travels so.
    pub(crate) fn strikes(&self, channel: Channel) -> bool {
        match (self.on, channel) {
            (None, channel) => channel != Channel::Submit,
            (Some(Channel::Submit), Channel::Whole) => true,
            (Some(on), channel) => on == channel,
        }
    }
}

/// An answer that drips.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Slow {
    pub(crate) first_byte_ms: u64,
    pub(crate) chunk_ms: u64,
    pub(crate) chunk_bytes: usize,
}

/// Where the first answers of a run break off.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cut {
    /// Events of a stream; other answers arrive.
    pub(crate) after_events: Option<usize>,
    pub(crate) after_bytes: Option<usize>,
    pub(crate) times: u64,
    /// Resets the connection in place of closing it.
    pub(crate) rst: bool,
}

/// Oddities of a stream that a client has to bear with.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Sse {
    pub(crate) crlf: bool,
    pub(crate) pings: bool,
    pub(crate) dup: bool,
    pub(crate) gap: bool,
    pub(crate) unknown: bool,
    pub(crate) no_terminal: bool,
    /// Whether `[DONE]` ends the stream; unset, as the API has it.
    pub(crate) done: Option<bool>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelFault {
    pub(crate) mode: CancelMode,
    /// How long a slow cancel takes.
    pub(crate) ms: u64,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CancelMode {
    Ok,
    Slow,
    /// Answered as if the run had ended, which goes on.
    Terminal400,
    /// Answered as if the run had never been, and so are polls from then on.
    Unknown400,
    Ignored,
}

/// Polls that lag behind the end of a run.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stale {
    pub(crate) polls: u64,
    /// One poll tells the truth before the others take it back.
    pub(crate) backwards: bool,
}

impl Stale {
    /// Whether the `nth` poll of a finished run, counted from 1, hides its end.
    pub(crate) fn hides(&self, nth: u64) -> bool {
        let truthful = u64::from(self.backwards);
        nth > truthful && nth <= truthful + self.polls
    }
}

/// A rate limit that is enforced.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rate {
    pub(crate) rpm: NonZeroU64,
    /// Unset, the same as `rpm`.
    pub(crate) burst: Option<NonZeroU64>,
    pub(crate) on: RateScope,
    /// Whether a refusal says when to come back.
    pub(crate) retry_after: bool,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RateScope {
    Submit,
    /// Polls, attaches and cancels count too.
    Any,
}

/// What a finished run claims to have cost: an amount in dollars, which may be absurd, or nothing at all.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cost {
    pub(crate) total: Option<f64>,
    pub(crate) none: bool,
}

impl Cost {
    pub(crate) fn nanos(&self) -> Option<u64> {
        // What is billed does not follow an absurd claim.
        let claimed = self.total.filter(|dollars| (0.0..=1e6).contains(dollars));
        claimed.map(|dollars| (dollars * 1e9).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_end_is_hidden_for_so_many_polls() {
        let hidden = |stale: Stale| (1..6).filter(|nth| stale.hides(*nth)).collect::<Vec<_>>();
        assert_eq!(hidden(Stale { polls: 2, backwards: false }), [1, 2]);
        assert_eq!(hidden(Stale { polls: 2, backwards: true }), [2, 3]);
    }

    #[test]
    fn what_strikes_everywhere_spares_the_receipt() {
        let malformed =
            |on| Malformed { kind: Malformation::NotJson, times: None, on, bytes: 1_000 };
        let all = [Channel::Submit, Channel::Poll, Channel::Stream, Channel::Whole];
        let struck = |on| all.map(|channel| malformed(on).strikes(channel));
        assert_eq!(struck(None), [false, true, true, true]);
        assert_eq!(struck(Some(Channel::Submit)), [true, false, false, true]);
        assert_eq!(struck(Some(Channel::Poll)), [false, true, false, false]);
    }
}
