//! Durations as people write them: `30` (seconds), `1.5s`, `500ms`, `5m`, `2h`, `7d`.

use std::time::Duration;

use serde::Deserialize;

/// Parses a duration.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    nanos(text)
        .and_then(|nanos| {
            let (seconds, rest) = (nanos / NANOS_PER_SECOND, nanos % NANOS_PER_SECOND);
            Some(Duration::new(u64::try_from(seconds).ok()?, u32::try_from(rest).ok()?))
        })
        // Longer than all clocks can count.
        .filter(|duration| u64::try_from(duration.as_millis()).is_ok())
        .ok_or_else(|| HINT.to_owned())
}

/// Parses a time limit: zero is refused, since it would not be a limit.
pub(crate) fn limit(text: &str) -> Result<Duration, String> {
    match parse(text)? {
        Duration::ZERO => {
            Err("must be longer than nothing; leave it out to wait for ever".to_owned())
        }
        limit => Ok(limit),
    }
}

/// A duration in a file: a text, or a number of seconds.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "a duration, such as \"90s\" or a number of seconds")]
pub(crate) enum DurationValue {
    Text(String),
    Seconds(u64),
    Fraction(f64),
}

impl DurationValue {
    /// Returns the duration as a text that [`parse`] reads.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Seconds(seconds) => seconds.to_string(),
            Self::Fraction(seconds) => seconds.to_string(),
        }
    }
}

const HINT: &str =
    "write a number of seconds, or a number and a unit: 30, 1.5s, 500ms, 5m, 2h or 7d";
const NANOS_PER_SECOND: u128 = 1_000_000_000;
/// The smallest fraction is a billionth.
const MAX_FRACTION_DIGITS: usize = 9;

/// Computes in whole numbers, so that every fraction is exact.
fn nanos(text: &str) -> Option<u128> {
    let is_of_number = |character: char| character.is_ascii_digit() || character == '.';
    let end = text.find(|character| !is_of_number(character)).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = match unit {
        "ms" => 1_000_000,
        "" | "s" => NANOS_PER_SECOND,
        "m" => 60 * NANOS_PER_SECOND,
        "h" => 3_600 * NANOS_PER_SECOND,
        "d" => 86_400 * NANOS_PER_SECOND,
        _ => return None,
    };
    let (whole, fraction) = match number.split_once('.') {
        Some((_, fraction)) if !(1..=MAX_FRACTION_DIGITS).contains(&fraction.len()) => return None,
        Some((whole, fraction)) => (whole, fraction),
        None => (number, "0"),
    };
    let tenths = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let (whole, fraction) = (whole.parse::<u64>().ok()?, fraction.parse::<u64>().ok()?);
    u128::from(whole).checked_mul(unit)?.checked_add(u128::from(fraction) * unit / tenths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_numbers_of_seconds_or_have_a_unit() {
        let good = [
            ("0s", 0),
            ("0", 0),
            ("30", 30_000),
            ("1.5", 1_500),
            ("1.5s", 1_500),
            ("0.25m", 15_000),
            ("500ms", 500),
            ("90s", 90_000),
            ("5m", 300_000),
            ("1.5h", 5_400_000),
            ("2h", 7_200_000),
            ("7d", 604_800_000),
        ];
        for (text, millis) in good {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        assert_eq!(parse("0.1ms"), Ok(Duration::from_micros(100)));
        for text in [
            "",
            ".",
            "s",
            ".5s",
            "5.s",
            "1.2.3s",
            "1.0000000001s",
            "-1s",
            "-1",
            "+1",
            "1e3",
            "nan",
            "5 m",
            "5M",
            "1h30m",
            "99999999999999999999d",
            "18446744073709551615d",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(limit("0.0").is_err());
    }
}
