//! The tool sets. A set is a list of tools, one function that calls them by name, and a few words on how to use them.

pub(crate) mod research;
pub(crate) mod research_jobs;

use rmcp::model::{CallToolResult, Tool};
use serde_json::{Map, Value};

use crate::caller::Caller;
use crate::reply::Refusal;
use research::Research;
use research_jobs::ResearchJobs;

/// A set of tools that can be switched on by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolSet {
    /// Deep research and search in conversations.
    Research,
    /// Start, poll and cancel research.
    ResearchJobs,
}

/// A tool set that is on.
#[derive(Clone)]
pub enum Tools {
    /// See [`ToolSet::Research`].
    Research(Box<Research>),
    /// See [`ToolSet::ResearchJobs`].
    ResearchJobs(Box<ResearchJobs>),
}

/// No set of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no tool set `{name}` in this version; there is: {}", ToolSet::names())]
pub struct UnknownToolSet {
    /// What was asked for.
    pub name: String,
}

impl ToolSet {
    /// All there are, in the order of the default.
    pub const ALL: [Self; 2] = [Self::Research, Self::ResearchJobs];

    /// Its name in `OUTLAST_TOOLS` and `--tools`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Research => "research",
            Self::ResearchJobs => "research-jobs",
        }
    }

    /// The set of that name.
    pub fn named(name: &str) -> Result<Self, UnknownToolSet> {
        let found = Self::ALL.into_iter().find(|set| set.name() == name);
        found.ok_or_else(|| UnknownToolSet { name: name.to_owned() })
    }

    fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }
}

impl Tools {
    /// Its tools as they are listed.
    pub(crate) fn tools(&self) -> Vec<Tool> {
        match self {
            Self::Research(set) => set.tools(),
            Self::ResearchJobs(set) => set.tools(),
        }
    }

    /// How a model should use them.
    pub(crate) fn instructions(&self) -> String {
        match self {
            Self::Research(set) => set.instructions(),
            Self::ResearchJobs(set) => set.instructions(),
        }
    }

    /// Calls one of them; `None` when the name is not one of this set's.
    pub(crate) async fn call(
        &self,
        caller: &mut Caller,
        name: &str,
        arguments: Option<Map<String, Value>>,
    ) -> Option<Result<CallToolResult, Refusal>> {
        match self {
            Self::Research(set) => set.call(caller, name, arguments).await,
            Self::ResearchJobs(set) => set.call(caller, name, arguments).await,
        }
    }
}
