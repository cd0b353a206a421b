//! The faults a scenario may contain. Their effects are implemented where they occur; their defaults are in
//! `scenario`.

use std::num::NonZeroU64;

use serde::Deserialize;

/// One cent in nano-dollars.
pub(crate) const CENT_NANOS: u64 = 10_000_000;

/// An error response.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct HttpFault {
    pub(crate) status: u16,
    /// The number of affected requests; unset means all.
    pub(crate) times: Option<u64>,
    pub(crate) on: Call,
    pub(crate) retry_after: Option<u64>,
    pub(crate) body: FaultBody,
    pub(crate) secret: Option<String>,
    /// Reports that there are no credits left, with any status.
    pub(crate) quota: bool,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Call {
    /// Creating a session.
    Create,
    /// A GET of a session that has no message yet.
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

/// A complete response with wrong content.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Malformed {
    pub(crate) kind: Malformation,
    pub(crate) times: Option<u64>,
    /// `None` affects every response that can contain a report.
    pub(crate) on: Option<Channel>,
    /// The size of a huge response.
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

/// The way a response is delivered.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Channel {
    /// The receipt of a job.
    Submit,
    Poll,
    Stream,
    /// The whole response of a blocking call.
    Whole,
}

impl Malformed {
    /// Returns true if the fault affects responses of this kind.
    pub(crate) fn affects(&self, channel: Channel) -> bool {
        match (self.on, channel) {
            (None, channel) => channel != Channel::Submit,
            (Some(Channel::Submit), Channel::Whole) => true,
            (Some(on), channel) => on == channel,
        }
    }
}

/// A response that is sent slowly in small pieces.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Slow {
    pub(crate) first_byte_ms: u64,
    pub(crate) chunk_ms: u64,
    pub(crate) chunk_bytes: usize,
}

/// The point at which the first responses of a run are cut off.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cut {
    /// The number of events after which a stream is cut; other responses are complete.
    pub(crate) after_events: Option<usize>,
    pub(crate) after_bytes: Option<usize>,
    pub(crate) times: u64,
    /// Resets the connection instead of closing it.
    pub(crate) rst: bool,
}

/// Oddities of a stream that a client must tolerate.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Sse {
    pub(crate) crlf: bool,
    pub(crate) pings: bool,
    pub(crate) dup: bool,
    pub(crate) gap: bool,
    pub(crate) unknown: bool,
    pub(crate) no_terminal: bool,
    /// True if `[DONE]` ends the stream; unset means the default of the API.
    pub(crate) done: Option<bool>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelFault {
    pub(crate) mode: CancelMode,
    /// The duration of a slow cancel.
    pub(crate) ms: u64,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CancelMode {
    Ok,
    Slow,
    /// The response says that the run has ended, but it continues.
    Terminal400,
    /// The response says that the run is unknown, and so do later polls.
    Unknown400,
    Ignored,
}

/// Polls that lag behind the end of a run.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stale {
    pub(crate) polls: u64,
    /// One poll reports the end before the others hide it again.
    pub(crate) backwards: bool,
}

impl Stale {
    /// Returns true if the `nth` poll of a finished run, counted from 1, hides its end.
    pub(crate) fn hides(&self, nth: u64) -> bool {
        let truthful = u64::from(self.backwards);
        nth > truthful && nth <= truthful + self.polls
    }
}

/// An enforced rate limit.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rate {
    pub(crate) rpm: NonZeroU64,
    /// Unset means the same as `rpm`.
    pub(crate) burst: Option<NonZeroU64>,
    pub(crate) on: RateScope,
    /// True if a refusal says when to retry.
    pub(crate) retry_after: bool,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RateScope {
    Submit,
    /// Polls, attaches and cancels count too.
    Any,
}

/// The cost that a finished run reports: an amount in dollars, which may be absurd, or nothing at all.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cost {
    pub(crate) total: Option<f64>,
    pub(crate) none: bool,
}

impl Cost {
    pub(crate) fn nanos(&self) -> Option<u64> {
        // An absurd claim does not change the bill.
        let claimed = self.total.filter(|dollars| (0.0..=1e6).contains(dollars));
        claimed.map(|dollars| (dollars * 1e9).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_end_is_hidden_for_the_given_number_of_polls() {
        let hidden = |stale: Stale| (1..6).filter(|nth| stale.hides(*nth)).collect::<Vec<_>>();
        assert_eq!(hidden(Stale { polls: 2, backwards: false }), [1, 2]);
        assert_eq!(hidden(Stale { polls: 2, backwards: true }), [2, 3]);
    }

    #[test]
    fn a_fault_without_a_channel_spares_the_receipt() {
        let malformed =
            |on| Malformed { kind: Malformation::NotJson, times: None, on, bytes: 1_000 };
        let all = [Channel::Submit, Channel::Poll, Channel::Stream, Channel::Whole];
        let struck = |on| all.map(|channel| malformed(on).affects(channel));
        assert_eq!(struck(None), [false, true, true, true]);
        assert_eq!(struck(Some(Channel::Submit)), [true, false, false, true]);
        assert_eq!(struck(Some(Channel::Poll)), [false, true, false, false]);
    }
}
