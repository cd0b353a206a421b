//! Usage, cost and sources with the names used by tools and files.

use outlast_core::conversation::Conversation;
use outlast_core::{Body, Cost, NanoUsd, Output, Question, Usage, printable};
use serde::{Deserialize, Serialize};

/// Token counts with the names that clients use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageShape {
    /// Input tokens.
    pub prompt_tokens: u64,
    /// Output tokens.
    pub completion_tokens: u64,
    /// The sum of both.
    pub total_tokens: u64,
    /// Tokens of sources that were read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub citation_tokens: Option<u64>,
    /// The number of searches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_search_queries: Option<u64>,
    /// Tokens spent on reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
}

/// The question that a job waits for (M4).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionShape {
    /// The id of the question, unique within its job.
    pub id: String,
    pub text: String,
    /// The possible answers, if not every text is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// The answer after the deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    pub deadline: String,
}

impl QuestionShape {
    /// Renders a question.
    pub fn new(question: &Question) -> Self {
        Self {
            id: question.id.clone(),
            text: printable(&question.text),
            choices: question.choices.iter().map(|choice| printable(choice)).collect(),
            default: question.default.as_deref().map(printable),
            deadline: question.deadline.to_string(),
        }
    }
}

/// A cost and its reliability.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CostShape {
    /// Dollars; null when unknown.
    pub usd: Option<f64>,
    /// `reported`, `computed`, `estimate` or `unknown`.
    pub kind: String,
    /// The amount that may have been spent in addition, if the cost of a run is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maybe_spent_usd: Option<f64>,
}

impl CostShape {
    /// Combines a cost with the amount that may have been spent in addition.
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

/// A source of a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchResult {
    /// The title, or the address if there is none.
    pub title: String,
    /// The address.
    pub url: String,
    /// The date of publication, if it is known.
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

/// Returns the sources that a report cites.
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
