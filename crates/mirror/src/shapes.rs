//! Usage, cost and sources in the words of the tools and files that show them.

use outlast_core::conversation::Conversation;
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
    /// Tokens of sources read.
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
    /// Dollars; null when unknown.
    pub usd: Option<f64>,
    /// `reported`, `computed`, `estimate` or `unknown`.
    pub kind: String,
    /// What may have been spent beyond that, if the cost of a run is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maybe_spent_usd: Option<f64>,
}

impl CostShape {
    /// A cost, and what may have been spent beyond it.
    pub fn new(cost: Cost, maybe_spent: NanoUsd) -> Self {
        let usd = cost.amount().map(NanoUsd::as_usd);
        let is_told = usd.is_none() || maybe_spent > NanoUsd(0);
        Self {
            usd,
            kind: cost.kind().to_owned(),
            maybe_spent_usd: is_told.then(|| maybe_spent.as_usd()),
        }
    }

    /// The cost of a conversation; `None` if it has no report and nothing may have been spent.
    pub fn of_conversation(conversation: &Conversation) -> Option<Self> {
        let maybe_spent = conversation.maybe_spent();
        let is_known = conversation.last_output().is_some() || maybe_spent > NanoUsd(0);
        is_known.then(|| Self::new(conversation.cost(), maybe_spent))
    }
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
        Self::new(cost, NanoUsd::default())
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
