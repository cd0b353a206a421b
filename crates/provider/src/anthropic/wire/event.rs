//! Events of a session, as a list shows them and as a stream sends them.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::vendor::lenient::{Items, Lenient, long_text, word};

/// One event.
#[derive(Debug, Default, Deserialize)]
pub(in crate::anthropic) struct Event {
    #[serde(default, rename = "type", deserialize_with = "word")]
    pub(in crate::anthropic) kind: String,
    pub(in crate::anthropic) id: Lenient<String>,
    /// The id of the tool use that this is the result of.
    pub(in crate::anthropic) tool_use_id: Lenient<String>,
    content: Items<MessageBlock>,
    name: Lenient<String>,
    input: Lenient<ToolInput>,
    stop_reason: Lenient<StopReason>,
    stop_details: Lenient<StopDetails>,
    error: Lenient<SessionError>,
    delta: Lenient<Delta>,
}

/// A piece of a message, or of what a tool brought.
#[derive(Debug, Default, Deserialize)]
pub(in crate::anthropic) struct MessageBlock {
    #[serde(default, rename = "type", deserialize_with = "word")]
    kind: String,
    #[serde(default, deserialize_with = "long_text")]
    pub(in crate::anthropic) text: Option<String>,
    /// The address of a page.
    #[serde(default, deserialize_with = "address")]
    pub(in crate::anthropic) source: Option<String>,
    pub(in crate::anthropic) title: Lenient<String>,
}

#[derive(Debug, Default, Deserialize)]
struct ToolInput {
    query: Lenient<String>,
    url: Lenient<String>,
}

#[derive(Debug, Default, Deserialize)]
struct StopReason {
    #[serde(rename = "type")]
    kind: Lenient<String>,
}

#[derive(Debug, Default, Deserialize)]
struct StopDetails {
    explanation: Lenient<String>,
}

/// An error in a session.
#[derive(Debug, Default, Deserialize)]
pub(in crate::anthropic) struct SessionError {
    #[serde(default, rename = "type", deserialize_with = "word")]
    pub(in crate::anthropic) kind: String,
    message: Lenient<String>,
    retry_status: Lenient<StopReason>,
}

impl SessionError {
    /// The provider's words for it.
    pub(in crate::anthropic) fn text(&self) -> String {
        format!("{} {}", self.kind, self.message.as_deref().unwrap_or_default())
    }
}

#[derive(Debug, Default, Deserialize)]
struct Delta {
    content: Lenient<MessageBlock>,
}

impl Event {
    pub(in crate::anthropic) fn blocks(&self) -> impl Iterator<Item = &MessageBlock> {
        self.content.iter().flatten()
    }

    /// The next piece of a message that is being written.
    pub(in crate::anthropic) fn preview(&self) -> Option<&str> {
        let delta = self.delta.as_ref().filter(|_| self.kind == "event_delta")?;
        delta.content.as_ref()?.text.as_deref()
    }

    /// The query of a web search.
    pub(in crate::anthropic) fn query(&self) -> Option<&str> {
        self.input.as_ref().filter(|_| self.uses("web_search"))?.query.as_deref()
    }

    /// The address that is to be read.
    pub(in crate::anthropic) fn fetched_url(&self) -> Option<&str> {
        self.input.as_ref().filter(|_| self.uses("web_fetch"))?.url.as_deref()
    }

    fn uses(&self, tool: &str) -> bool {
        self.kind == "agent.tool_use" && self.name.as_deref() == Some(tool)
    }

    pub(in crate::anthropic) fn stop_reason(&self) -> Option<&str> {
        self.stop_reason.as_ref()?.kind.as_deref()
    }

    /// Returns true if the session may have ended, which a check must confirm.
    pub(in crate::anthropic) fn may_end_the_session(&self) -> bool {
        matches!(
            self.kind.as_str(),
            "session.status_idle" | "session.status_terminated" | "session.deleted"
        )
    }

    /// The error, unless the provider retries by itself.
    pub(in crate::anthropic) fn session_error(&self) -> Option<&SessionError> {
        let error = self.error.as_ref().filter(|_| self.kind == "session.error")?;
        let retry = error.retry_status.as_ref().and_then(|status| status.kind.as_deref());
        (retry != Some("retrying")).then_some(error)
    }
}

impl MessageBlock {
    /// Returns true if it is a page that was found or read.
    pub(in crate::anthropic) fn is_page(&self) -> bool {
        matches!(self.kind.as_str(), "search_result" | "document")
    }
}

/// The model's explanation of a refusal, if it gives one.
pub(in crate::anthropic) fn explanation(events: &[Event]) -> Option<String> {
    events.iter().rev().find_map(|event| event.stop_details.as_ref()?.explanation.0.clone())
}

/// The address of a page: a text in what a search found, part of an object in a document.
fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    #[derive(Default, Deserialize)]
    struct Document {
        url: Lenient<String>,
    }
    let field = <&RawValue>::deserialize(deserializer)?.get();
    Ok(match field.starts_with('"') {
        true => serde_json::from_str(field).ok(),
        false => serde_json::from_str::<Document>(field).ok().and_then(|document| document.url.0),
    })
}
