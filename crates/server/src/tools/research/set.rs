//! The two sets that share this code, and the names of their tools that ask.

use crate::tool_names::{deep_research, research};

/// One of the two sets. They differ in the names and arguments of the tools that ask; the calls do the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResearchSet {
    /// `research`: the names of documents B and C, with quick search.
    Perplexity,
    /// `deep-research`: for any configured provider (G2).
    AnyProvider,
}

impl ResearchSet {
    /// Returns the tool that starts a conversation with deep research.
    pub(super) fn deep_research(self) -> &'static str {
        match self {
            Self::Perplexity => research::DEEP_RESEARCH,
            Self::AnyProvider => deep_research::DEEP_RESEARCH,
        }
    }

    /// Returns the tool that continues a conversation with deep research.
    pub(super) fn followup(self) -> &'static str {
        match self {
            Self::Perplexity => research::DEEP_RESEARCH_FOLLOWUP,
            Self::AnyProvider => deep_research::DEEP_RESEARCH_FOLLOWUP,
        }
    }

    /// Returns the names of the tools that continue a conversation, for a sentence.
    pub(super) fn followups(self) -> String {
        match self {
            Self::Perplexity => format!("`{}` or `{}`", research::SEARCH_FOLLOWUP, self.followup()),
            Self::AnyProvider => format!("`{}`", self.followup()),
        }
    }
}
