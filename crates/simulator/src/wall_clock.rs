//! The wall clock, only for timestamps in responses. Runs use `tokio::time`.

use std::time::SystemTime;

use chrono::{DateTime, SecondsFormat};

/// Seconds since 1970, as in `created_at` and `x-ratelimit-reset`.
#[expect(
    clippy::disallowed_methods,
    reason = "clients compare these fields with their own wall clock; no decision here depends on it"
)]
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Formats the time as RFC 3339 in UTC, to the second.
pub(crate) fn rfc3339(unix_seconds: u64) -> String {
    let moment = i64::try_from(unix_seconds).ok().and_then(|at| DateTime::from_timestamp(at, 0));
    moment.unwrap_or_default().to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_as_people_write_it() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_798_761_599, "2026-12-31T23:59:59Z"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(rfc3339(seconds), expected);
        }
    }
}
