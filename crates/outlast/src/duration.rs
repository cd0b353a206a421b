//! Durations as people write them: `500ms`, `90s`, `5m`, `2h`, `7d`.

use std::time::Duration;

/// Reads one.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let millis: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(HINT.to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| HINT.to_owned())?;
    number.checked_mul(millis).map(Duration::from_millis).ok_or_else(|| HINT.to_owned())
}

/// Reads one that is to be waited for: no time at all is no limit.
pub(crate) fn limit(text: &str) -> Result<Duration, String> {
    match parse(text)? {
        Duration::ZERO => {
            Err("must be longer than nothing; leave it out to wait for ever".to_owned())
        }
        limit => Ok(limit),
    }
}

const HINT: &str = "write a whole number and a unit: 500ms, 90s, 5m, 2h or 7d";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_number_and_a_unit() {
        let good = [
            ("0s", 0),
            ("500ms", 500),
            ("90s", 90_000),
            ("5m", 300_000),
            ("2h", 7_200_000),
            ("7d", 604_800_000),
        ];
        for (text, millis) in good {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in [
            "",
            "5",
            "s",
            "-1s",
            "1.5h",
            "5 m",
            "5M",
            "1h30m",
            "99999999999999999999d",
            "18446744073709551615d",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
