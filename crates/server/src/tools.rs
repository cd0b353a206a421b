//! The tool sets. A set is a list of tools, each with its handler, and short instructions for models.

pub(crate) mod jobs;
pub(crate) mod recipient;
pub(crate) mod instructions;
pub(crate) mod schema;
pub(crate) mod outcome;

pub(crate) mod perplexity;
pub(crate) mod research;
pub(crate) mod research_jobs;

use outlast_core::Job;

use crate::reply::ToolResult;
use crate::tool_names;
use instructions::DEEP_RESEARCH;
use jobs::Jobs;
use perplexity::Perplexity;
use research::Research;
use research_jobs::ResearchJobs;
pub(crate) use schema::ListedTool;

/// A set of tools that can be enabled by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolSet {
    /// Deep research and search in conversations.
    Research,
    /// Start, poll and cancel research.
    ResearchJobs,
    /// Deep research in conversations, with any configured provider.
    DeepResearch,
    /// The vendor's own four tools.
    Perplexity,
    /// Any configured workflow as a job.
    Jobs,
}

/// A tool set that is enabled.
#[derive(Clone)]
pub enum Tools {
    /// See [`ToolSet::Research`] and [`ToolSet::DeepResearch`].
    Research(Box<Research>),
    /// See [`ToolSet::ResearchJobs`].
    ResearchJobs(Box<ResearchJobs>),
    /// See [`ToolSet::Perplexity`].
    Perplexity(Box<Perplexity>),
    /// See [`ToolSet::Jobs`].
    Jobs(Box<Jobs>),
}

/// An unknown name of a tool set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no tool set `{name}` in this version; there is: {}", ToolSet::names())]
pub struct UnknownToolSet {
    /// The requested name.
    pub name: String,
}

impl ToolSet {
    /// All tool sets, in their default order.
    pub const ALL: [Self; 5] =
        [Self::Research, Self::ResearchJobs, Self::DeepResearch, Self::Perplexity, Self::Jobs];

    /// Returns the name in `OUTLAST_TOOLS` and `--tools`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Research => "research",
            Self::ResearchJobs => "research-jobs",
            Self::DeepResearch => "deep-research",
            Self::Perplexity => "perplexity",
            Self::Jobs => "jobs",
        }
    }

    /// Returns the set with this name.
    pub fn from_name(name: &str) -> Result<Self, UnknownToolSet> {
        let found = Self::ALL.into_iter().find(|set| set.name() == name);
        found.ok_or_else(|| UnknownToolSet { name: name.to_owned() })
    }

    fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }
}

impl Tools {
    pub(crate) fn list_tools(&self) -> Vec<ListedTool> {
        match self {
            Self::Research(set) => set.list_tools(),
            Self::ResearchJobs(set) => set.list_tools(),
            Self::Perplexity(set) => set.list_tools(),
            Self::Jobs(set) => set.list_tools(),
        }
    }

    /// Returns the names of the tools.
    pub fn names(&self) -> Vec<String> {
        self.list_tools().into_iter().map(|listed| listed.tool.name.into_owned()).collect()
    }

    /// Returns the instructions for models.
    pub(crate) fn instructions(&self) -> String {
        match self {
            Self::Research(set) => set.instructions(),
            Self::ResearchJobs(set) => set.instructions(),
            Self::Perplexity(set) => set.instructions(),
            Self::Jobs(set) => set.instructions(),
        }
    }

    /// Returns the answer that the call which started the job would have got; `None` if the job is unfinished or was not
    /// started by this set.
    pub(crate) fn outcome(&self, job: &Job) -> Option<ToolResult> {
        match self {
            Self::Research(set) if job.new.request.is_citation_check() => set.check_outcome(job),
            _ if job.new.request.is_citation_check() => None,
            Self::Research(set) if job.new.conversation.is_some() => set.outcome(job),
            Self::Perplexity(_) if tool_names::perplexity::ALL.contains(&&*job.new.workflow) => {
                perplexity::outcome(job)
            }
            Self::ResearchJobs(set)
                if job.new.conversation.is_none() && job.new.workflow == DEEP_RESEARCH =>
            {
                Some(set.outcome(job))
            }
            Self::Jobs(set) => set.outcome(job),
            Self::Research(_) | Self::Perplexity(_) | Self::ResearchJobs(_) => None,
        }
    }
}
