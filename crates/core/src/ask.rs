//! What a research job asks for: the shape a face writes into [`crate::NewJob::ask`] and a provider reads.

use serde::{Deserialize, Serialize};

/// A question for a research provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResearchAsk {
    /// The conversation so far, passed on verbatim; the last message is the question.
    pub messages: Vec<Message>,
    /// How hard to work; unset means the provider's own default, and nothing is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Leave the model's thinking out of the report.
    #[serde(default)]
    pub strip_thinking: bool,
}

impl ResearchAsk {
    /// The question itself, for lists and titles: the last thing the user said.
    pub fn question(&self) -> &str {
        let said = self.messages.iter().rfind(|message| message.role == Role::User);
        said.or(self.messages.last()).map_or("", |message| message.content.as_str())
    }
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
