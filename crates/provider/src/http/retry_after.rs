//! The wait that a provider asks for, in each form it may use.

use std::time::Duration;

use chrono::DateTime;
use outlast_core::Timestamp;
use reqwest::header::HeaderMap;

/// No provider means a longer wait than this; a number gone wrong may.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// The wait asked for: `retry-after-ms`, `retry-after` in seconds or as a date, else `x-ratelimit-reset` when
/// nothing is left.
pub(crate) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    read_delay(headers, now).map(|wait| wait.min(LONGEST))
}

fn read_delay(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let number = |name: &str| text(name).and_then(|text| text.parse::<u64>().ok());
    if let Some(millis) = number("retry-after-ms") {
        return Some(Duration::from_millis(millis));
    }
    if let Some(seconds) = number("retry-after") {
        return Some(Duration::from_secs(seconds));
    }
    let fraction = text("retry-after").and_then(|text| text.parse::<f64>().ok());
    if let Some(seconds) = fraction.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) {
        return Some(seconds);
    }
    if let Some(date) = text("retry-after").and_then(|text| DateTime::parse_from_rfc2822(text).ok())
    {
        return Some(Timestamp::from_millis(date.timestamp_millis()).since(now));
    }
    // Sent with every answer; it asks for a wait only when nothing is left.
    if number("x-ratelimit-remaining").is_some_and(|remaining| remaining > 0) {
        return None;
    }
    let reset = number("x-ratelimit-reset")?;
    let reset = Timestamp::from_millis(i64::try_from(reset).ok()?.saturating_mul(1000));
    Some(reset.since(now))
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    type Headers = &'static [(&'static str, &'static str)];

    #[test]
    fn every_way_of_asking_for_a_wait_is_understood() {
        let now = Timestamp::from_millis(784_111_777_000); // Sun, 06 Nov 1994 08:49:37 GMT
        let seconds = Duration::from_secs;
        let cases: [(Headers, Option<Duration>); 13] = [
            (&[], None),
            (&[("retry-after", "7")], Some(seconds(7))),
            (
                &[("retry-after-ms", "1500"), ("retry-after", "7")],
                Some(Duration::from_millis(1500)),
            ),
            (&[("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")], Some(seconds(30))),
            (&[("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT")], Some(seconds(0))),
            (&[("x-ratelimit-reset", "784111787")], Some(seconds(10))),
            (
                &[("x-ratelimit-reset", "784111787"), ("x-ratelimit-remaining", "0")],
                Some(seconds(10)),
            ),
            (&[("x-ratelimit-reset", "784111787"), ("x-ratelimit-remaining", "9")], None),
            (&[("retry-after", "1.5")], Some(Duration::from_millis(1500))),
            (&[("retry-after", "99999999999999999")], Some(LONGEST)),
            (&[("retry-after-ms", "99999999999999999")], Some(LONGEST)),
            (&[("retry-after", "soon")], None),
            (&[("retry-after", "-3")], None),
        ];
        for (given, expected) in cases {
            let mut headers = HeaderMap::new();
            for (name, value) in given {
                headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            assert_eq!(retry_after(&headers, now), expected, "{given:?}");
        }
    }
}
