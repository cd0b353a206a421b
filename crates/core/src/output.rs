//! The result of a job, a report or a tool's result, and its cost.

use std::fmt;
use std::iter::Sum;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The result of a job that succeeded, with its cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Output {
    pub body: Body,
    /// The model that did the work, as the provider resolved it.
    pub model: Option<String>,
    pub usage: Usage,
    pub cost: Cost,
}

/// The result itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Body {
    /// The result of research.
    Report {
        /// Markdown with `[n]` citations.
        text: String,
        /// The sources that the citations refer to.
        sources: Vec<Source>,
        /// The model's thinking, if the provider shows it; never part of the text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        thinking: Option<String>,
        /// Questions that a reader may have next, if they were asked for.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        related: Vec<String>,
    },
    /// The result of a tool or a command.
    Tool {
        /// MCP content blocks, unchanged.
        content: Vec<Value>,
        /// The structured form, if there is one.
        structured: Option<Value>,
        /// True if the tool marked its own result as an error.
        is_error: bool,
    },
}

impl Body {
    /// Creates a report without thinking or further questions.
    pub fn report(text: impl Into<String>, sources: Vec<Source>) -> Self {
        Self::Report { text: text.into(), sources, thinking: None, related: Vec::new() }
    }
}

/// A source that a report cites.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The `n` of `[n]`.
    pub number: u32,
    pub url: String,
    #[serde(default)]
    pub title: Option<String>,
    /// The publication date, as the provider states it.
    #[serde(default)]
    pub date: Option<String>,
    /// The relevant words of it, if the provider returns them and they are shown nowhere else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snippet: Option<String>,
    /// The SHA-256 of a local file as the report's writer read it, in hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// The consumption of a job; counts that a provider does not report are zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written. They include reasoning, unless the model has a separate price for it, as Sonar's deep research
    /// has: then only `reasoning_tokens` counts it.
    pub output_tokens: u64,
    /// The sum of the two above, or the total that the provider reports.
    pub total_tokens: u64,
    /// Tokens spent on reasoning, wherever they are billed.
    pub reasoning_tokens: u64,
    /// Tokens of sources read.
    pub citation_tokens: u64,
    pub searches: u64,
}

/// An amount of money in billionths of a US dollar, so that sums are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NanoUsd(pub u64);

impl NanoUsd {
    /// The largest budget in dollars: up to it, an `f64` distinguishes every billionth of a dollar.
    pub const MAX_BUDGET_USD: u32 = 1_000_000;

    /// No run costs a billion dollars.
    const BILLION_USD: u64 = 1_000_000_000_000_000_000;

    /// The largest sum. Larger ones are cut to it, as in every store.
    pub const MAX_SUM: Self = Self(i64::MAX.unsigned_abs());

    /// Converts a budget in decimal dollars; `None` if it is not an amount, zero or too large.
    pub fn budget(usd: f64) -> Option<Self> {
        let within = usd <= f64::from(Self::MAX_BUDGET_USD);
        Self::from_usd(usd).filter(|budget| within && budget.0 > 0)
    }

    /// Converts a provider's decimal dollars, rounded to the nearest billionth; `None` if it is not an amount.
    pub fn from_usd(usd: f64) -> Option<Self> {
        let nanos = (usd * 1e9).round();
        (nanos.is_finite() && (0.0..1e18).contains(&nanos)).then_some(Self(nanos as u64))
    }

    /// Reads dollars as a person writes them, such as `2` or `0.25`: exact, at most nine decimals, under a billion.
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let are_digits =
            |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !are_digits(whole) || !are_digits(decimals) || whole.len() > 9 || decimals.len() > 9 {
            return None;
        }
        Some(Self(format!("{whole}{decimals:0<9}").parse().ok()?))
    }

    /// Returns dollars for JSON. Under a million dollars, every billionth survives a round trip.
    pub fn as_usd(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

/// Saturates at [`NanoUsd::MAX_SUM`].
impl Sum for NanoUsd {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        let sum = amounts.fold(0, |sum: u64, amount| sum.saturating_add(amount.0));
        Self(sum).min(Self::MAX_SUM)
    }
}

/// Dollars with as many decimals as matter: two from a dollar on, four below. If four decimals would show zero, all
/// decimals are shown.
impl fmt::Display for NanoUsd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usd = self.as_usd();
        match self.0 {
            1..50_000 => write!(f, "${}", format!("{usd:.9}").trim_end_matches('0')),
            0..1_000_000_000 => write!(f, "${usd:.4}"),
            _ => write!(f, "${usd:.2}"),
        }
    }
}

/// The cost of a job, and how certain it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "nano_usd", rename_all = "snake_case")]
pub enum Cost {
    /// The provider reported it.
    Reported(NanoUsd),
    /// Computed from usage and a dated price table.
    Computed(NanoUsd),
    /// A guess for an unknown model.
    Estimate(NanoUsd),
    Unknown,
}

impl Cost {
    /// The amount above which a cost is worth a warning: one dollar (C10, P7).
    const WARN_FROM: NanoUsd = NanoUsd(1_000_000_000);

    /// Returns the amount, however certain it is.
    pub fn amount(self) -> Option<NanoUsd> {
        match self {
            Self::Reported(cost) | Self::Computed(cost) | Self::Estimate(cost) => Some(cost),
            Self::Unknown => None,
        }
    }

    /// Returns the same cost, or unknown if no run can cost that much.
    pub fn plausible(self) -> Self {
        match self.amount() {
            Some(amount) if amount.0 >= NanoUsd::BILLION_USD => Self::Unknown,
            Some(_) | None => self,
        }
    }

    /// Returns whether the amount is the provider's own figure, or computed from the usage that it states.
    pub fn is_known(self) -> bool {
        match self {
            Self::Reported(_) | Self::Computed(_) => true,
            Self::Estimate(_) | Self::Unknown => false,
        }
    }

    /// Returns the same cost as an estimate, because the computed amount is only a part of it.
    pub fn as_estimate(self) -> Self {
        match self {
            Self::Computed(cost) => Self::Estimate(cost),
            cost => cost,
        }
    }

    /// Returns the certainty of the cost, in one word.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Reported(_) => "reported",
            Self::Computed(_) => "computed",
            Self::Estimate(_) => "estimate",
            Self::Unknown => "unknown",
        }
    }

    /// Returns the amount, if it is over one dollar.
    pub fn over_a_dollar(self) -> Option<NanoUsd> {
        self.amount().filter(|cost| *cost > Self::WARN_FROM)
    }

    /// Returns a warning about a run that has ended and cost over one dollar, according to the provider or the price
    /// table (P7). A guess is not worth a warning.
    pub fn warning(self) -> Option<String> {
        let sure = match self {
            Self::Reported(_) => "as the provider reports",
            Self::Computed(_) => "by the price table",
            Self::Estimate(_) | Self::Unknown => return None,
        };
        self.over_a_dollar().map(|cost| format!("This run cost {cost} ({sure}), which is over $1."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P7: over a dollar, and known.
    #[test]
    fn p7_a_run_over_a_dollar_is_worth_a_warning() {
        let (much, enough) = (NanoUsd(1_250_000_000), NanoUsd(1_000_000_000));
        let reported = "This run cost $1.25 (as the provider reports), which is over $1.";
        let computed = "This run cost $1.25 (by the price table), which is over $1.";
        let cases = [
            (Cost::Reported(much), Some(reported)),
            (Cost::Computed(much), Some(computed)),
            (Cost::Estimate(much), None),
            (Cost::Reported(enough), None),
            (Cost::Unknown, None),
        ];
        for (cost, expected) in cases {
            assert_eq!(cost.warning().as_deref(), expected, "{cost:?}");
        }
    }

    /// G2: a budget is exact to the billionth of a dollar, however it was written.
    #[test]
    fn g2_a_budget_is_an_exact_amount_above_nothing() {
        let exact = [
            (0.1, 100_000_000),
            (2.5, 2_500_000_000),
            (0.000_000_001, 1),
            (123_456.789_012_345, 123_456_789_012_345),
            (999_999.999_999_999, 999_999_999_999_999),
            (1_000_000.0, 1_000_000_000_000_000),
        ];
        for (usd, nanos) in exact {
            assert_eq!(NanoUsd::budget(usd), Some(NanoUsd(nanos)), "{usd}");
        }
        for usd in [0.0, -1.0, 0.000_000_000_1, 1_000_000.1, f64::NAN, f64::INFINITY] {
            assert_eq!(NanoUsd::budget(usd), None, "{usd}");
        }
    }

    /// G6: an amount that a person allows is read without a rounding error.
    #[test]
    fn g6_written_dollars_are_exact_or_refused() {
        let good = [
            ("0", 0),
            ("0.1", 100_000_000),
            ("2", 2_000_000_000),
            ("0.000000001", 1),
            ("999999999.999999999", 999_999_999_999_999_999),
            ("1.10", 1_100_000_000),
        ];
        for (text, nanos) in good {
            assert_eq!(NanoUsd::parse(text), Some(NanoUsd(nanos)), "{text}");
        }
        for text in
            ["", ".5", "1.", "-1", "+1", "1e3", "1,5", "$1", "NaN", "0.0000000001", "1000000000"]
        {
            assert_eq!(NanoUsd::parse(text), None, "{text}");
        }
    }

    #[test]
    fn g6_an_amount_above_zero_is_never_shown_as_zero() {
        let cases = [
            (0, "$0.0000"),
            (1, "$0.000000001"),
            (1_000, "$0.000001"),
            (49_999, "$0.000049999"),
            (50_000, "$0.0001"),
            (120_000_000, "$0.1200"),
            (1_000_000_000, "$1.00"),
            (15_004_000_000, "$15.00"),
        ];
        for (nanos, shown) in cases {
            assert_eq!(NanoUsd(nanos).to_string(), shown, "{nanos}");
        }
    }

    #[test]
    fn dollars_become_exact_billionths() {
        let cases = [
            (0.00105, Some(1_050_000)),
            (0.795, Some(795_000_000)),
            (0.0, Some(0)),
            (-0.1, None),
            (f64::NAN, None),
            (f64::INFINITY, None),
        ];
        for (usd, nanos) in cases {
            assert_eq!(NanoUsd::from_usd(usd), nanos.map(NanoUsd), "{usd}");
        }
    }
}
