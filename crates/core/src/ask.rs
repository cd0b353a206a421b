//! What a research job asks for: the shape a face writes into [`crate::NewJob::ask`] and a provider reads.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{BeginError, NanoUsd, ProviderError, Trouble};

/// A question for a research provider.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResearchAsk {
    /// What kind of answer is wanted.
    #[serde(default)]
    pub kind: AskKind,
    /// The conversation so far, passed on verbatim; the last message is the question.
    pub messages: Vec<Message>,
    /// How hard to work; unset means the provider's own default, and nothing is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Leave the model's thinking out of the report.
    #[serde(default)]
    pub strip_thinking: bool,
    /// What the web search is narrowed to.
    #[serde(default)]
    pub filters: SearchFilters,
    /// What the run may cost at most, if the caller said so (G6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<NanoUsd>,
}

impl ResearchAsk {
    /// Reads a stored request.
    pub fn stored(ask: &Value) -> Result<Self, BeginError> {
        Self::deserialize(ask).map_err(|error| {
            let sentence = "the stored request cannot be read by this version";
            BeginError::NotSent(ProviderError {
                detail: Some(error.to_string()),
                ..ProviderError::new(Trouble::Rejected, sentence)
            })
        })
    }

    /// What a stored request may cost at most, if the caller said so.
    pub fn stored_budget(ask: &Value) -> Option<NanoUsd> {
        NanoUsd::deserialize(ask.get("budget")?).ok()
    }

    /// The question itself, for lists and titles: the last thing the user said.
    pub fn question(&self) -> &str {
        let said = self.messages.iter().rfind(|message| message.role == Role::User);
        said.or(self.messages.last()).map_or("", |message| message.content.as_str())
    }
}

/// What kind of answer is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskKind {
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

impl AskKind {
    /// What kind of answer a stored request wants. [`ResearchAsk::stored`] refuses what cannot be read.
    pub fn stored(ask: &Value) -> Self {
        ask.get("kind").and_then(|kind| Self::deserialize(kind).ok()).unwrap_or_default()
    }
}

/// What a web search is narrowed to; nothing set means no narrowing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SearchFilters {
    /// No older than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recency: Option<Recency>,
    /// Only these domains; with a leading `-`, none of these.
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
    /// How much of what was found the model reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_size: Option<ContextSize>,
    /// Ask for questions a reader may have next.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub related_questions: bool,
    /// Two letters: results as seen from there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
    /// How many ranked results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_results: Option<u32>,
    /// How much of each ranked result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens_per_page: Option<u32>,
}

/// How old a result may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Recency {
    /// An hour.
    Hour,
    /// A day.
    Day,
    /// A week.
    Week,
    /// A month.
    Month,
    /// A year.
    Year,
}

/// How much of what was found the model reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ContextSize {
    /// Little, and cheap.
    Low,
    /// Some.
    Medium,
    /// Much.
    High,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// Who said it.
    pub role: Role,
    /// What was said.
    pub content: String,
}

/// Who said a message.
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

/// How hard a provider should work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// Known to the Sonar dialect; elsewhere the same as low.
    Minimal,
    /// A short look.
    Low,
    /// A thorough look.
    Medium,
    /// Everything the provider has.
    High,
}
