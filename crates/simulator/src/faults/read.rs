//! Each fault from its clause. The keys and their defaults are in the table of scenarios.

use super::{
    Call, CancelMode, Channel, Cost, Cut, CutAfter, FaultBody, HttpFault, Malformation, Malformed,
    Rate, Slow, Sse, Stale,
};
use crate::clause::{Keys, Times};

const MAX_BYTES: usize = 1 << 30;
const HUGE_BYTES: usize = 64 << 20;
const SLOW_CANCEL_MS: u64 = 5_000;

impl HttpFault {
    pub(crate) fn read(keys: &mut Keys<'_>) -> Result<Self, String> {
        let calls = [
            ("submit", Call::Submit),
            ("poll", Call::Poll),
            ("attach", Call::Attach),
            ("cancel", Call::Cancel),
        ];
        let status = Self::status(keys, 500)?;
        Ok(Self {
            times: keys.times()?,
            on: keys.choice("on", calls)?.unwrap_or(Call::Submit),
            retry_after: keys.value("retry_after")?,
            body: FaultBody::read(keys)?,
            secret: keys.value("secret")?,
            ..Self::plain(status, Times::Always)
        })
    }

    /// The status of an answer that is no success.
    pub(crate) fn status(keys: &mut Keys<'_>, otherwise: u16) -> Result<u16, String> {
        let status = keys.value("status")?.unwrap_or(otherwise);
        if !(300..=599).contains(&status) {
            return Err(format!("simulator: `status` must be 300 to 599, not {status}"));
        }
        Ok(status)
    }

    /// An answer with this status, from the provider or a gateway.
    pub(crate) fn answered(status: u16, body: FaultBody) -> Self {
        Self { body, ..Self::plain(status, Times::Always) }
    }

    /// `quota`: the vendor describes it as a 401, others answer 402.
    pub(crate) fn quota(keys: &mut Keys<'_>) -> Result<Self, String> {
        let status = keys.choice("status", [("401", 401), ("402", 402)])?.unwrap_or(401);
        Ok(Self { out_of_credits: true, ..Self::plain(status, keys.times()?) })
    }

    /// The short form `503` or `503x2`.
    pub(crate) fn short(name: &str) -> Option<Self> {
        let (status, times) = match name.split_once('x') {
            None => (name, Times::Always),
            Some((status, times)) => (status, Times::First(times.parse().ok()?)),
        };
        let status = status.parse().ok().filter(|status| (300..=599).contains(status))?;
        Some(Self::plain(status, times))
    }

    fn plain(status: u16, times: Times) -> Self {
        Self {
            status,
            times,
            on: Call::Submit,
            retry_after: None,
            body: FaultBody::Json,
            secret: None,
            out_of_credits: false,
        }
    }
}

impl FaultBody {
    pub(crate) fn read(keys: &mut Keys<'_>) -> Result<Self, String> {
        let bodies = [("json", Self::Json), ("html", Self::Html), ("empty", Self::Empty)];
        Ok(keys.choice("body", bodies)?.unwrap_or(Self::Json))
    }
}

impl Malformed {
    pub(crate) fn read(keys: &mut Keys<'_>) -> Result<Self, String> {
        let kinds = [
            ("truncated", Malformation::Truncated),
            ("not_json", Malformation::NotJson),
            ("wrong_type", Malformation::WrongType),
            ("bad_utf8", Malformation::BadUtf8),
            ("huge", Malformation::Huge),
            ("null_fields", Malformation::NullFields),
            ("unknown_item", Malformation::UnknownItem),
            ("unknown_status", Malformation::UnknownStatus),
        ];
        let channels =
            [("submit", Channel::Submit), ("poll", Channel::Poll), ("stream", Channel::Stream)];
        Ok(Self {
            kind: keys.choice("kind", kinds)?.unwrap_or(Malformation::Truncated),
            times: keys.times()?,
            on: keys.choice("on", channels)?,
            bytes: keys.at_most("bytes", MAX_BYTES)?.unwrap_or(HUGE_BYTES),
        })
    }

    /// Whether it strikes an answer that travels so.
    pub(crate) fn strikes(&self, channel: Channel) -> bool {
        match (self.on, channel) {
            (None, channel) => channel != Channel::Submit,
            (Some(Channel::Submit), Channel::Whole) => true,
            (Some(on), channel) => on == channel,
        }
    }
}

impl Slow {
    pub(crate) fn read(keys: &mut Keys<'_>) -> Result<Self, String> {
        Ok(Self {
            first_byte_ms: keys.value("first_byte_ms")?.unwrap_or(0),
            chunk_ms: keys.value("chunk_ms")?.unwrap_or(1),
            chunk_bytes: keys.at_most("chunk_bytes", MAX_BYTES)?.unwrap_or(1).max(1),
        })
    }
}

impl Cut {
    pub(crate) fn read(keys: &mut Keys<'_>) -> Result<Self, String> {
        let (events, bytes) = (keys.value("after_events")?, keys.value("after_bytes")?);
        Ok(Self {
            after: match (events, bytes) {
                (Some(_), Some(_)) => {
                    return Err("simulator: `drop` is after events or after bytes".to_owned());
                }
                (None, Some(bytes)) => CutAfter::Bytes(bytes),
                (events, None) => CutAfter::Events(events.unwrap_or(1)),
            },
            times: keys.value("times")?.unwrap_or(1),
            rst: keys.value("rst")?.unwrap_or(false),
        })
    }
}

impl Sse {
    pub(crate) fn read(keys: &mut Keys<'_>) -> Result<Self, String> {
        Ok(Self {
            crlf: keys.value("crlf")?.unwrap_or(false),
            pings: keys.value("pings")?.unwrap_or(false),
            dup: keys.value("dup")?.unwrap_or(false),
            gap: keys.value("gap")?.unwrap_or(false),
            unknown: keys.value("unknown")?.unwrap_or(false),
            done: keys.value("done")?,
        })
    }
}

impl CancelMode {
    pub(crate) fn read(keys: &mut Keys<'_>) -> Result<Self, String> {
        let ms = keys.value("ms")?.unwrap_or(SLOW_CANCEL_MS);
        let modes = [
            ("ok", Self::Works),
            ("slow", Self::Slow { ms }),
            ("terminal400", Self::Terminal400),
            ("unknown400", Self::Unknown400),
            ("ignored", Self::Ignored),
        ];
        Ok(keys.choice("mode", modes)?.unwrap_or_default())
    }
}

impl Stale {
    pub(crate) fn read(keys: &mut Keys<'_>) -> Result<Self, String> {
        Ok(Self {
            polls: keys.value("polls")?.unwrap_or(1),
            backwards: keys.value("backwards")?.unwrap_or(false),
        })
    }

    /// Whether the `nth` poll of a finished run, counted from 1, hides its end.
    pub(crate) fn hides(&self, nth: u64) -> bool {
        let truthful = u64::from(self.backwards);
        nth > truthful && nth <= truthful + self.polls
    }
}

impl Rate {
    pub(crate) fn read(keys: &mut Keys<'_>) -> Result<Self, String> {
        let rpm = keys.value("rpm")?.unwrap_or(50).max(1);
        Ok(Self {
            rpm,
            burst: keys.value("burst")?.unwrap_or(rpm).max(1),
            everything: keys.choice("on", [("submit", false), ("any", true)])?.unwrap_or(false),
            says_when: keys.value("retry_after")?.unwrap_or(false),
        })
    }
}

impl Cost {
    pub(crate) fn read(keys: &mut Keys<'_>) -> Result<Self, String> {
        let unsaid = keys.value("none")?.unwrap_or(false);
        match keys.value::<f64>("total")? {
            None if unsaid => Ok(Self::Unsaid),
            Some(total) if !unsaid && (0.0..=1e6).contains(&total) => {
                Ok(Self::Total { nanos: (total * 1e9).round() as u64 })
            }
            _ => Err("simulator: `cost` is `total=` dollars or `none`".to_owned()),
        }
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
    fn the_short_form_of_an_error_has_a_status_and_a_count() {
        let fault = HttpFault::short("429x2").unwrap();
        assert_eq!((fault.status, fault.times), (429, Times::First(2)));
        assert_eq!(HttpFault::short("503").unwrap().times, Times::Always);
        for name in ["200", "42x", "x2", "429x", "4290"] {
            assert_eq!(HttpFault::short(name), None, "{name}");
        }
    }

    #[test]
    fn what_strikes_everywhere_spares_the_receipt() {
        let malformed = |on| Malformed {
            kind: Malformation::NotJson,
            times: Times::Always,
            on,
            bytes: HUGE_BYTES,
        };
        let all = [Channel::Submit, Channel::Poll, Channel::Stream, Channel::Whole];
        let struck = |on| all.map(|channel| malformed(on).strikes(channel));
        assert_eq!(struck(None), [false, true, true, true]);
        assert_eq!(struck(Some(Channel::Submit)), [true, false, false, true]);
        assert_eq!(struck(Some(Channel::Poll)), [false, true, false, false]);
    }
}
