//! The limits of a run, and the amount that it can cost within them.

use outlast_core::{Effort, NanoUsd, Request, ResearchKind};

use serde::{Deserialize, Serialize};

use crate::settings::{Prices, Settings};

/// One cent.
pub(crate) const CENT: u64 = 10_000_000;

/// The limits of a run (K4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Limits {
    pub(crate) questions: usize,
    /// The rounds of searching and reading.
    pub(crate) rounds: usize,
    pub(crate) searches: usize,
    pub(crate) pages: usize,
    /// Tokens read and written.
    pub(crate) tokens: u64,
}

impl Limits {
    const BRIEF: Self = Self { questions: 1, rounds: 1, searches: 2, pages: 5, tokens: 40_000 };
    /// One search, without a model.
    const RESULTS: Self = Self { questions: 0, rounds: 0, searches: 1, pages: 0, tokens: 0 };
    const LOW: Self = Self { questions: 3, rounds: 1, searches: 9, pages: 12, tokens: 200_000 };
    const MEDIUM: Self = Self { questions: 5, rounds: 2, searches: 25, pages: 30, tokens: 600_000 };
    const HIGH: Self = Self { questions: 8, rounds: 3, searches: 56, pages: 80, tokens: 2_000_000 };

    /// Returns the limits of a request.
    pub(crate) fn of(request: &Request, settings: &Settings) -> Self {
        let effort = request.research().and_then(|ask| ask.effort);
        let preset = match (request.kind(), effort) {
            (ResearchKind::Research, Some(Effort::Minimal | Effort::Low)) => Self::LOW,
            (ResearchKind::Research, Some(Effort::Medium) | None) => Self::MEDIUM,
            (ResearchKind::Research, Some(Effort::High)) => Self::HIGH,
            (ResearchKind::Search | ResearchKind::Ask | ResearchKind::Reason, _) => Self::BRIEF,
            (ResearchKind::Results, _) => return Self::RESULTS,
        };
        let pages = match settings.max_pages {
            0 => preset.pages,
            pages => usize::try_from(pages).unwrap_or(preset.pages),
        };
        let tokens = match settings.max_tokens {
            0 => preset.tokens,
            tokens => tokens,
        };
        Self { pages, tokens, ..preset }
    }

    /// Returns the number of passages from which notes are taken in a round, for each sub-question.
    pub(crate) fn passages(&self) -> usize {
        6 + 2 * self.rounds
    }

    /// Returns the highest cost of a run, of whose tokens the model writes a fifth at most; `None` if a price is
    /// unknown.
    pub(crate) fn highest_cost(&self, prices: &Prices) -> Option<NanoUsd> {
        let written = self.tokens / 5;
        let model = match self.tokens {
            0 => NanoUsd(0),
            tokens => token_cost(prices, tokens - written, written)?,
        };
        let search = prices.search?.0.saturating_mul(self.searches as u64) / 1_000;
        Some(NanoUsd(model.0.saturating_add(search)))
    }

    /// Returns the usual cost of a run.
    pub(crate) fn typical_cost(&self, prices: &Prices) -> Option<NanoUsd> {
        self.highest_cost(prices).map(|bound| NanoUsd(bound.0 / 3))
    }
}

/// Returns the cost of tokens, rounded up; `None` if the price is unknown.
pub(crate) fn token_cost(prices: &Prices, read: u64, written: u64) -> Option<NanoUsd> {
    let nanos = u128::from(prices.input?.0) * u128::from(read)
        + u128::from(prices.output?.0) * u128::from(written);
    Some(NanoUsd(u64::try_from(nanos.div_ceil(1_000_000)).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K3: the bound of a run contains its searches, and an unknown price makes it unknown.
    #[test]
    fn k3_the_highest_cost_counts_tokens_and_searches() {
        let dollar = NanoUsd(1_000_000_000);
        let prices = Prices { input: Some(dollar), output: Some(dollar), search: Some(dollar) };
        let bound = Limits::LOW.highest_cost(&prices);
        assert_eq!(bound, Some(NanoUsd(200_000_000 + 9_000_000)));
        assert_eq!(Limits::HIGH.highest_cost(&Prices::FREE), Some(NanoUsd(0)));
        let no_model = Prices { input: None, output: None, ..prices };
        assert_eq!(Limits::RESULTS.highest_cost(&no_model), Some(NanoUsd(1_000_000)));
        let unknown = Prices { search: None, ..prices };
        assert_eq!(Limits::LOW.highest_cost(&unknown), None);
        assert_eq!(token_cost(&prices, 1, 0), Some(NanoUsd(1_000)));
    }
}
