//! The tool sets. A set is a list of tools, one function that calls them by name, and a few words on how to use them.

pub(crate) mod jobs;
pub(crate) mod recipient;
mod instructions;
mod schema;

pub(crate) mod perplexity;
pub(crate) mod research;
pub(crate) mod research_jobs;

use outlast_core::{Body, Job, JobState};
use rmcp::model::{CallToolResult, ContentBlock, Tool};
use serde_json::{Map, Value};

use crate::caller::Caller;
use crate::reply::{Answered, Refusal};
use crate::text::with_citations;
use jobs::Jobs;
use perplexity::Perplexity;
use research::Research;
use research_jobs::ResearchJobs;

/// A set of tools that can be switched on by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolSet {
    /// Deep research and search in conversations.
    Research,
    /// Start, poll and cancel research.
    ResearchJobs,
    /// The vendor's own four tools.
    Perplexity,
    /// Any configured workflow as a job.
    Jobs,
}

/// A tool set that is on.
#[derive(Clone)]
pub enum Tools {
    /// See [`ToolSet::Research`].
    Research(Box<Research>),
    /// See [`ToolSet::ResearchJobs`].
    ResearchJobs(Box<ResearchJobs>),
    /// See [`ToolSet::Perplexity`].
    Perplexity(Box<Perplexity>),
    /// See [`ToolSet::Jobs`].
    Jobs(Box<Jobs>),
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
    pub const ALL: [Self; 4] = [Self::Research, Self::ResearchJobs, Self::Perplexity, Self::Jobs];

    /// Its name in `OUTLAST_TOOLS` and `--tools`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Research => "research",
            Self::ResearchJobs => "research-jobs",
            Self::Perplexity => "perplexity",
            Self::Jobs => "jobs",
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
            Self::Perplexity(set) => set.tools(),
            Self::Jobs(set) => set.tools(),
        }
    }

    /// The names of its tools.
    pub fn names(&self) -> Vec<String> {
        self.tools().into_iter().map(|tool| tool.name.into_owned()).collect()
    }

    /// How a model should use them.
    pub(crate) fn instructions(&self) -> String {
        match self {
            Self::Research(set) => set.instructions(),
            Self::ResearchJobs(set) => set.instructions(),
            Self::Perplexity(set) => set.instructions(),
            Self::Jobs(set) => set.instructions(),
        }
    }

    /// Calls one of them; `None` when the name is not one of this set's.
    pub(crate) async fn call(
        &self,
        caller: &mut Caller,
        name: &str,
        arguments: Option<Map<String, Value>>,
    ) -> Option<Result<Answered, Refusal>> {
        match self {
            Self::Research(set) => set.call(caller, name, arguments).await,
            Self::ResearchJobs(set) => {
                let answer = set.call(caller, name, arguments).await?;
                Some(answer.map(Answered::Now))
            }
            Self::Perplexity(set) => set.call(caller, name, arguments).await,
            Self::Jobs(set) => set.call(caller, name, arguments).await,
        }
    }

    /// What a call of this set that made the job would be answered; `None` when the job is none of its making, or
    /// unfinished.
    pub(crate) fn outcome(&self, job: &Job) -> Option<Result<CallToolResult, Refusal>> {
        match self {
            Self::Research(set) if job.new.conversation.is_some() => set.outcome(job),
            Self::Perplexity(_) if perplexity::NAMES.contains(&job.new.workflow.as_str()) => {
                perplexity::outcome(job)
            }
            Self::ResearchJobs(set)
                if job.new.conversation.is_none() && job.new.workflow == "deep_research" =>
            {
                Some(set.outcome(job))
            }
            Self::Jobs(set) => set.outcome(job),
            Self::Research(_) | Self::Perplexity(_) | Self::ResearchJobs(_) => None,
        }
    }
}

/// What came of a job that no tool set here has made, in plain text.
pub(crate) fn plain_outcome(job: &Job) -> Result<CallToolResult, Refusal> {
    match &job.state {
        JobState::Succeeded { output, .. } => {
            let text = match &output.body {
                Body::Report { text, sources, .. } => with_citations(text, sources),
                Body::Tool { content, structured, is_error } => {
                    let blocks = content.iter().cloned().map(serde_json::from_value);
                    let blocks: Result<Vec<_>, _> = blocks.collect();
                    let mut result =
                        CallToolResult::success(blocks.map_err(|_| Refusal::internal())?);
                    result.structured_content.clone_from(structured);
                    result.is_error = Some(*is_error);
                    return Ok(result);
                }
            };
            Ok(CallToolResult::success(vec![ContentBlock::text(text)]))
        }
        JobState::Queued { .. }
        | JobState::Running { .. }
        | JobState::Failed { .. }
        | JobState::Cancelled { .. } => Err(Refusal::failed(job)),
    }
}
