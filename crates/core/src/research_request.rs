//! The request of a research job: the form that an interface writes into [`crate::NewJob::request`] and a provider reads.

use serde::{Deserialize, Serialize};

use crate::NanoUsd;

/// A question for a research provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResearchRequest {
    #[serde(default)]
    pub kind: ResearchKind,
    /// The conversation so far, passed on verbatim; the last message is the question.
    pub messages: Vec<Message>,
    /// The effort of the provider; if unset, nothing is sent and the provider uses its default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Leaves the model's thinking out of the report.
    #[serde(default)]
    pub strip_thinking: bool,
    /// The limits of the web search.
    #[serde(default)]
    pub filters: SearchFilters,
    /// The maximum cost of the run, if the caller set one (G6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<NanoUsd>,
    /// Asks the owner for an approval of the plan before the paid part of the run (M4).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approve_plan: bool,
}

impl ResearchRequest {
    /// Returns the question for lists and titles: the user's last message.
    pub fn question(&self) -> &str {
        let said = self.messages.iter().rfind(|message| message.role == Role::User);
        said.or(self.messages.last()).map_or("", |message| message.content.as_str())
    }
}

/// The kind of answer that is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResearchKind {
    /// Deep research: a report, in minutes.
    #[default]
    Research,
    /// A short answer after a quick search, in seconds.
    Search,
    /// A short answer from the fastest model.
    Ask,
    /// A reasoned answer.
    Reason,
    /// Ranked web results and no answer; the question alone counts.
    Results,
}

/// The limits of a web search; an unset field does not limit it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SearchFilters {
    /// The maximum age of a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recency: Option<Recency>,
    /// Only these domains; a domain with a leading `-` is excluded instead.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<String>,
    /// Published after this day, `MM/DD/YYYY`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Published before this day, `MM/DD/YYYY`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Only scholarly sources.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub academic: bool,
    /// The amount of the search results that the model reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_size: Option<ContextSize>,
    /// Asks for follow-up questions that a reader may have.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub related_questions: bool,
    /// A country code of two letters: returns the results that are shown in that country.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
    /// The maximum number of ranked results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_results: Option<u32>,
    /// The maximum length of each ranked result, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens_per_page: Option<u32>,
}

/// The maximum age of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Recency {
    Hour,
    Day,
    Week,
    Month,
    Year,
}

/// The amount of the search results that the model reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ContextSize {
    /// A small amount, which is cheap.
    Low,
    Medium,
    High,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    pub role: Role,
    pub content: String,
}

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions to the model.
    System,
    /// The person or agent that asks.
    User,
    /// The model.
    Assistant,
}

/// The effort of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// Known only to the Sonar dialect; the same as low everywhere else.
    Minimal,
    /// A short search.
    Low,
    /// A thorough search.
    Medium,
    /// The provider's maximum.
    High,
}
