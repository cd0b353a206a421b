//! What was asked, read from a stored job: the same for every provider.

use outlast_core::{AskKind, BeginError, ProviderError, ResearchAsk, Trouble};
use serde::Deserialize;
use serde_json::Value;

/// A stored request as we know it.
pub(crate) fn asked(ask: &Value) -> Result<ResearchAsk, BeginError> {
    ResearchAsk::deserialize(ask).map_err(|error| {
        BeginError::NotSent(ProviderError {
            trouble: Trouble::Rejected,
            sentence: "the stored request cannot be read by this version".to_owned(),
            detail: Some(error.to_string()),
        })
    })
}

/// What kind of answer a stored request wants; what cannot be read is refused by [`asked`] before it is sent.
pub(crate) fn kind(ask: &Value) -> AskKind {
    ask.get("kind").and_then(|kind| AskKind::deserialize(kind).ok()).unwrap_or_default()
}
