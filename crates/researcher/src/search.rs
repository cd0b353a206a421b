//! The search backends.

use async_trait::async_trait;
use outlast_core::ProviderError;
use serde::{Deserialize, Serialize};

/// A search tool of another server.
#[async_trait]
pub trait SearchTool: Send + Sync {
    /// Calls the tool with `{query}` and returns the hits in the order of the tool. An empty list means that nothing
    /// was found. The caller limits the time: a dropped call may have been answered.
    async fn search(&self, query: &str) -> Result<Vec<SearchHit>, ProviderError>;
}

/// A hit of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchHit {
    pub url: String,
    #[serde(default)]
    pub title: String,
    /// A few words of the page, as the search service shows them.
    #[serde(default)]
    pub snippet: String,
}
