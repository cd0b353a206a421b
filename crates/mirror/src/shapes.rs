//! Usage, cost and sources in the words of the tools and files that show them.

use outlast_core::{Body, Cost, NanoUsd, Output, Usage};
use serde::{Deserialize, Serialize};

/// Tokens, as clients know them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageShape {
    /// Read.
    pub prompt_tokens: u64,
    /// Written.
    pub completion_tokens: u64,
    /// Both.
    pub total_tokens: u64,
    /// Of sources read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub citation_tokens: Option<u64>,
    /// Searches made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_search_queries: Option<u64>,
    /// Spent on reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
}

/// Money, and how sure we are of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CostShape {
    /// Dollars; zero when unknown.
    pub usd: f64,
    /// `reported`, `computed`, `estimate` or `unknown`.
    pub kind: String,
}

/// A source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchResult {
    /// What it is called; its address when it has no name.
    pub title: String,
    /// Where it is.
    pub url: String,
    /// When it was published, if that is known.
    pub date: Option<String>,
}

impl From<&Usage> for UsageShape {
    fn from(usage: &Usage) -> Self {
        let known = |count: u64| (count > 0).then_some(count);
        Self {
            prompt_tokens: usage.input_tokens,
            completion_tokens: usage.output_tokens,
            total_tokens: usage.total_tokens,
            citation_tokens: known(usage.citation_tokens),
            num_search_queries: known(usage.searches),
            reasoning_tokens: known(usage.reasoning_tokens),
        }
    }
}

impl From<Cost> for CostShape {
    fn from(cost: Cost) -> Self {
        let (NanoUsd(nanos), kind) = match cost {
            Cost::Reported(money) => (money, "reported"),
            Cost::Computed(money) => (money, "computed"),
            Cost::Estimate(money) => (money, "estimate"),
            Cost::Unknown => (NanoUsd(0), "unknown"),
        };
        Self { usd: nanos as f64 / 1e9, kind: kind.to_owned() }
    }
}

/// What several turns consumed together.
pub fn usage_of<'a>(outputs: impl Iterator<Item = &'a Output>) -> Usage {
    outputs.fold(Usage::default(), |sum, Output { usage, .. }| Usage {
        input_tokens: sum.input_tokens.saturating_add(usage.input_tokens),
        output_tokens: sum.output_tokens.saturating_add(usage.output_tokens),
        total_tokens: sum.total_tokens.saturating_add(usage.total_tokens),
        reasoning_tokens: sum.reasoning_tokens.saturating_add(usage.reasoning_tokens),
        citation_tokens: sum.citation_tokens.saturating_add(usage.citation_tokens),
        searches: sum.searches.saturating_add(usage.searches),
    })
}

/// What several turns cost together: as sure as the least sure of them.
pub fn cost_of<'a>(outputs: impl Iterator<Item = &'a Output>) -> Cost {
    let doubt = |cost: Cost| match cost {
        Cost::Reported(money) => (0, money),
        Cost::Computed(money) => (1, money),
        Cost::Estimate(money) => (2, money),
        Cost::Unknown => (3, NanoUsd(0)),
    };
    let sum = outputs.map(|output| doubt(output.cost)).reduce(|(most, sum), (doubt, money)| {
        (most.max(doubt), NanoUsd(sum.0.saturating_add(money.0)))
    });
    match sum {
        Some((0, money)) => Cost::Reported(money),
        Some((1, money)) => Cost::Computed(money),
        // What is known of it, if a part is not.
        Some((2, money)) => Cost::Estimate(money),
        Some((_, NanoUsd(0))) | None => Cost::Unknown,
        Some((_, money)) => Cost::Estimate(money),
    }
}

/// What a report cites.
pub fn search_results(output: &Output) -> Vec<SearchResult> {
    match &output.body {
        Body::Report { sources, .. } => sources
            .iter()
            .map(|source| SearchResult {
                title: source.title.clone().unwrap_or_else(|| source.url.clone()),
                url: source.url.clone(),
                date: source.date.clone(),
            })
            .collect(),
        Body::Tool { .. } => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costing(cost: Cost) -> Output {
        Output { body: Body::report("", Vec::new()), model: None, usage: Usage::default(), cost }
    }

    /// C9: sums are exact, and no surer than their parts.
    #[test]
    fn costs_add_up_and_doubt_is_kept() {
        let reported = || costing(Cost::Reported(NanoUsd(1)));
        let cases = [
            (vec![], Cost::Unknown),
            (vec![reported(), reported()], Cost::Reported(NanoUsd(2))),
            (vec![reported(), costing(Cost::Computed(NanoUsd(2)))], Cost::Computed(NanoUsd(3))),
            (vec![reported(), costing(Cost::Estimate(NanoUsd(2)))], Cost::Estimate(NanoUsd(3))),
            (vec![reported(), costing(Cost::Unknown)], Cost::Estimate(NanoUsd(1))),
            (vec![costing(Cost::Unknown)], Cost::Unknown),
        ];
        for (outputs, expected) in cases {
            assert_eq!(cost_of(outputs.iter()), expected);
        }
    }
}
