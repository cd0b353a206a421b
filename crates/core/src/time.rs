//! Moments and clocks. The core never reads a clock: rules take the time as an argument.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, NaiveDate, NaiveTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

/// A moment: milliseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Returns the moment this many milliseconds after the epoch.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Returns the milliseconds since the epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Returns this moment plus `duration`, or the end of time.
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Returns this moment minus `duration`, or the beginning of time.
    pub fn before(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Returns its UTC day.
    pub const fn day(self) -> Day {
        Day(self.0.div_euclid(Day::MILLIS))
    }

    /// Returns the time since `earlier`; zero if `earlier` is in the future, as after a clock was set back.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

/// RFC 3339 in UTC with milliseconds, as in `2026-11-15T02:21:00.000Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment =
            DateTime::<Utc>::from_timestamp_millis(self.0).unwrap_or(DateTime::<Utc>::MAX_UTC);
        f.write_str(&moment.to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A UTC day: days since 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(pub i64);

impl Day {
    const MILLIS: i64 = 86_400_000;

    /// Returns its first moment.
    pub const fn begins(self) -> Timestamp {
        Timestamp(self.0.saturating_mul(Self::MILLIS))
    }

    /// Returns the next day.
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// Parses `YYYY-MM-DD`.
    pub fn parse(text: &str) -> Option<Self> {
        let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
        Some(Timestamp(date.and_time(NaiveTime::MIN).and_utc().timestamp_millis()).day())
    }
}

/// `YYYY-MM-DD`.
impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = DateTime::<Utc>::from_timestamp_millis(self.begins().0);
        write!(f, "{}", moment.unwrap_or(DateTime::<Utc>::MAX_UTC).format("%Y-%m-%d"))
    }
}

/// A clock. Each store has one, and everything that is stored is dated by it.
pub trait Clock: Send + Sync {
    /// Returns the present time.
    fn now(&self) -> Timestamp;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_read_as_rfc_3339_with_milliseconds() {
        assert_eq!(Timestamp::from_millis(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(
            Timestamp::from_millis(1_794_709_260_007).to_string(),
            "2026-11-15T02:21:00.007Z"
        );
    }

    #[test]
    fn a_day_begins_at_midnight_in_utc() {
        let day = Day::parse("2026-11-15").unwrap();
        assert_eq!(day.begins().to_string(), "2026-11-15T00:00:00.000Z");
        let last = Timestamp::from_millis(day.next().begins().as_millis() - 1);
        assert_eq!((last.day(), last.day().to_string().as_str()), (day, "2026-11-15"));
        assert_eq!(Timestamp::from_millis(-1).day(), Day(-1));
        assert_eq!(["", "today", "2026-02-30", "15.11.2026"].map(Day::parse), [None; 4]);
    }

    #[test]
    fn a_clock_set_back_never_gives_a_negative_duration() {
        let (early, late) = (Timestamp::from_millis(10), Timestamp::from_millis(25));
        assert_eq!(late.since(early), Duration::from_millis(15));
        assert_eq!(early.since(late), Duration::ZERO);
    }
}
