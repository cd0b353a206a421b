//! The tool sets. A set is a list of tools and one function that calls them by name.

pub(crate) mod research_jobs;

/// A set of tools that can be switched on by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolSet {
    /// Start, poll and cancel research.
    ResearchJobs,
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
    pub const ALL: [Self; 1] = [Self::ResearchJobs];

    /// Its name in `OUTLAST_TOOLS` and `--tools`.
    pub fn name(self) -> &'static str {
        match self {
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
