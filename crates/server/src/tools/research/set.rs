//! The two sets that are made of this code, and what the tools that ask are called in each.

use crate::tool_names::{deep_research, research};

/// Which of the two sets it is. They differ in the names and arguments of the tools that ask; what a call does is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResearchSet {
    /// `research`: the names of documents B and C, with quick search.
    Perplexity,
    /// `deep-research`: for whichever providers are configured (G2).
    AnyProvider,
}

impl ResearchSet {
    /// The tool that begins a conversation with deep research.
    pub(super) fn deep_research(self) -> &'static str {
        match self {
            Self::Perplexity => research::DEEP_RESEARCH,
            Self::AnyProvider => deep_research::DEEP_RESEARCH,
        }
    }

    /// The tool that continues one with deep research.
    pub(super) fn followup(self) -> &'static str {
        match self {
            Self::Perplexity => research::DEEP_RESEARCH_FOLLOWUP,
            Self::AnyProvider => deep_research::DEEP_RESEARCH_FOLLOWUP,
        }
    }

    /// The tools that continue a conversation, in words.
    pub(super) fn followups(self) -> String {
        match self {
            Self::Perplexity => format!("`{}` or `{}`", research::SEARCH_FOLLOWUP, self.followup()),
            Self::AnyProvider => format!("`{}`", self.followup()),
        }
    }
}
