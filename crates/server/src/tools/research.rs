//! Tool sets `research` and `deep-research`: deep research, and in the first quick search, in conversations that can be
//! continued, read, listed and cancelled. Deep research is held until its report is there, or queued, as the mode says;
//! search is always held.

mod set;
mod arguments;
mod ask;
mod cancel;

mod history;
mod archive;
mod status;
mod batch;
mod list;

mod answer;
mod render;
mod schema;

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{ConversationId, Job, OwnerId, Profile};
use outlast_engine::Engine;
use outlast_mirror::Mirror;

use crate::reply::ToolResult;
use crate::tool_names::research::{
    AWAIT, CANCEL, HISTORIES, HISTORY, LIST, SEARCH, SEARCH_FOLLOWUP,
};
use crate::tools::recipient::Disclaimer;
use crate::tools::schema::ListedTool;
use answer::Asking;
pub use set::ResearchSet;

/// How a call for deep research is answered (B1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResearchMode {
    /// With the report, when it is there.
    Blocking,
    /// At once, with the name of a conversation to ask after.
    Queued,
    /// With the report if it is there within the inline budget, else like [`ResearchMode::Queued`].
    Auto,
}

/// Who decides that text from local documents is sent to a provider outside this machine (P1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentSharing {
    /// A person, on the command line or on the page.
    PersonsOnly,
    /// Every MCP caller as well (`library.agents_may_share`).
    AgentsToo,
}

/// What this set is told once.
#[derive(Clone, Debug)]
pub struct ResearchOptions {
    /// Which of the two sets it is.
    pub set: ResearchSet,
    /// Who answers new questions.
    pub profile: Profile,
    /// Who else is configured: answers where a call names it, and goes on with conversations of its own (P1).
    pub others: Vec<Profile>,
    /// How a call for deep research is answered.
    pub mode: ResearchMode,
    /// How long a call waits that could as well be answered at once.
    pub inline_budget: Duration,
    /// How many failures of queued research are forgiven; of a held call, none.
    pub max_failures: u32,
    /// How long one try at deep research may take.
    pub attempt_timeout: Duration,
    /// How long a search may take.
    pub search_timeout: Duration,
    /// How long a held call that failed is kept.
    pub keep: Duration,
    /// Whether descriptions warn against sending sensitive information.
    pub disclaimer: Disclaimer,
    /// Whether callers may move a conversation that holds text from local documents to another provider.
    pub sharing: DocumentSharing,
    /// Where conversations are shown as files, if they are, and where those of older servers are read.
    pub mirror: Option<Arc<Mirror>>,
}

/// The tool set.
#[derive(Clone)]
pub struct Research {
    engine: Engine,
    options: ResearchOptions,
}

impl Research {
    /// The set over an engine.
    pub fn new(engine: Engine, options: ResearchOptions) -> Self {
        Self { engine, options }
    }

    /// Its tools.
    pub(crate) fn listed(&self) -> Vec<ListedTool> {
        schema::tools(&Arc::new(self.clone()))
    }

    /// How a model should use them.
    pub(crate) fn instructions(&self) -> String {
        let set = self.options.set;
        let (ask, followup) = (set.deep_research(), set.followup());
        let flow = match self.options.mode {
            ResearchMode::Blocking => format!(
                "{ask} returns the report; if the client gives up first, make the same call again to pick it up."
            ),
            ResearchMode::Queued | ResearchMode::Auto => format!(
                "{ask} queues the question and returns a conversationId; read {HISTORY} until it is completed, or \
                 wait for several with {AWAIT}."
            ),
        };
        let (quick, continues) = match set {
            ResearchSet::Perplexity => (
                format!("{SEARCH} answers a quick question. "),
                format!("{SEARCH_FOLLOWUP} and {followup} continue"),
            ),
            ResearchSet::AnyProvider => (String::new(), format!("{followup} continues")),
        };
        format!(
            "In conversations: {quick}{flow} {continues} a conversation, {HISTORY} and {HISTORIES} read it, {LIST} \
             finds a lost one, {CANCEL} stops what is no longer wanted. Ask in full sentences: earlier chat is not \
             seen."
        )
    }

    /// What a question of this set that made the job would be answered; `None` while it is unfinished.
    pub(crate) fn outcome(&self, job: &Job) -> Option<ToolResult> {
        self.ended(job, self.asking(job.turn > 1))
    }

    /// How deep research is asked.
    fn asking(&self, continued: bool) -> Asking {
        Asking { set: self.options.set, continued, show_thinking: false }
    }

    /// Who can be asked, the first in line first.
    fn profiles(&self) -> impl Iterator<Item = &Profile> {
        std::iter::once(&self.options.profile).chain(&self.options.others)
    }

    /// Where a conversation's files are; only its owner on this machine can use that.
    fn path(&self, owner: &OwnerId, id: &ConversationId) -> Option<String> {
        let dir = self.options.mirror.as_ref()?.logs_dir(owner)?;
        Some(dir.join(id.as_str()).to_string_lossy().into_owned())
    }
}

#[cfg(test)]
mod tests;
