//! Dollars as the table gives them, and sums over them.

use outlast_core::NanoUsd;
use serde::{Deserialize, Deserializer, de};

/// Whole billionths of a dollar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usd(u64);

impl Usd {
    pub(super) fn nanos(self) -> u64 {
        self.0
    }

    /// From plain decimal digits, at most nine of them after the point.
    fn parse(text: &str) -> Option<Self> {
        let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |text: &str| {
            !text.is_empty() && text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !digits(whole) || !digits(part) {
            return None;
        }
        let whole: u64 = whole.parse().ok()?;
        let part: u64 = format!("{part:0<9}").parse().ok()?;
        Some(Self(whole.checked_mul(1_000_000_000)?.checked_add(part)?))
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| de::Error::custom(format!("`{text}` is no amount")))
    }
}

/// Tokens at a price per million, and pieces at a price each. Rounded once, at the end.
pub(super) fn sum(tokens: &[(u64, Usd)], pieces: &[(u64, Usd)]) -> NanoUsd {
    const MILLION: u128 = 1_000_000;
    let total = |items: &[(u64, Usd)]| -> u128 {
        items.iter().map(|(count, price)| u128::from(*count) * u128::from(price.0)).sum()
    };
    let millionths = total(tokens).saturating_add(total(pieces).saturating_mul(MILLION));
    let nanos = millionths.saturating_add(MILLION / 2) / MILLION;
    NanoUsd(u64::try_from(nanos).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_exactly_or_not_at_all() {
        let cases = [
            ("0", Some(0)),
            ("5", Some(5_000_000_000)),
            ("0.0025", Some(2_500_000)),
            ("0.000000001", Some(1)),
            ("1.30", Some(1_300_000_000)),
            ("0.0000000001", None),
            ("", None),
            (".5", None),
            ("5.", None),
            ("-1", None),
            ("1e3", None),
            ("1,5", None),
        ];
        for (text, nanos) in cases {
            assert_eq!(Usd::parse(text), nanos.map(Usd), "{text}");
        }
    }

    #[test]
    fn a_sum_is_rounded_once_and_never_overflows() {
        let third = Usd(333_333);
        assert_eq!(sum(&[(1, third), (1, third), (1, third)], &[]), NanoUsd(1));
        assert_eq!(sum(&[(u64::MAX, Usd(u64::MAX))], &[(u64::MAX, Usd(1))]), NanoUsd(u64::MAX));
    }
}
