//! Tool sets `research` and `deep-research`: deep research, and in `research` also quick search, in conversations that can
//! be continued, read, listed and cancelled. The mode determines whether deep research is held until its report is ready, or
//! queued; search is always held.

mod set;
mod arguments;
mod ask;
mod cancel;

mod history;
mod archive;
mod status;
mod batch;
mod list;
mod search_research;
mod check_citations;

mod answer;
mod long_report;
mod render;
mod schema;

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{ConversationId, Job, OwnerId, Profile};
use outlast_engine::Engine;
use outlast_mirror::Mirror;

use crate::reply::ToolResult;
use crate::tool_names::research::{
    AWAIT, CANCEL, HISTORIES, HISTORY, LIST, SEARCH, SEARCH_FOLLOWUP, SEARCH_RESEARCH,
};
use crate::tools::recipient::Disclaimer;
use crate::tools::schema::ListedTool;
use answer::QuestionStyle;
pub use set::ResearchSet;

/// The way in which a call for deep research is answered (B1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResearchMode {
    /// With the report, once it is ready.
    Blocking,
    /// At once, with the id of a conversation to poll.
    Queued,
    /// With the report if it is ready within the inline budget, otherwise like [`ResearchMode::Queued`].
    Auto,
}

/// The callers that may send text from local documents to a provider outside this machine (P1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentSharing {
    /// A person, on the command line or on the page.
    PersonsOnly,
    /// Every MCP caller as well (`library.agents_may_share`).
    AgentsToo,
}

/// The configuration of this set.
#[derive(Clone, Debug)]
pub struct ResearchOptions {
    /// The set that these options configure.
    pub set: ResearchSet,
    /// The configured providers. The first answers new questions; each of the others answers when a call names it, and
    /// continues its own conversations (P1).
    pub profiles: Vec<Profile>,
    /// The way in which a call for deep research is answered.
    pub mode: ResearchMode,
    /// The maximum number of characters of an answer with a report; a longer report is answered in parts.
    pub inline_report_chars: usize,
    /// The time for which a call waits if it could also be answered at once.
    pub inline_budget: Duration,
    /// The number of failed attempts of queued research that are retried; a held call is never retried.
    pub max_failures: u32,
    /// The time limit of one attempt at deep research.
    pub attempt_timeout: Duration,
    /// The time limit of a search.
    pub search_timeout: Duration,
    /// The retention of a failed held call.
    pub keep: Duration,
    /// Controls whether descriptions warn against sending sensitive information.
    pub disclaimer: Disclaimer,
    /// Controls whether callers may move a conversation with text from local documents to another provider.
    pub sharing: DocumentSharing,
    /// True if citations can be checked.
    pub checks_citations: bool,
    /// The mirror that writes conversations as files, if any. It also reads the files of older servers.
    pub mirror: Option<Arc<Mirror>>,
}

/// The tool set.
#[derive(Clone)]
pub struct Research {
    engine: Engine,
    options: ResearchOptions,
}

impl Research {
    /// Creates the set over an engine.
    pub fn new(engine: Engine, options: ResearchOptions) -> Self {
        Self { engine, options }
    }

    pub(crate) fn list_tools(&self) -> Vec<ListedTool> {
        schema::tools(&Arc::new(self.clone()))
    }

    /// Returns the instructions for models.
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
             finds a lost one, {SEARCH_RESEARCH} finds earlier reports, {CANCEL} stops what is no longer wanted. Ask in full sentences: earlier chat is not \
             seen."
        )
    }

    /// Returns the answer that the question which started the job would have got; `None` while it is unfinished.
    pub(crate) fn outcome(&self, job: &Job) -> Option<ToolResult> {
        self.answer_if_ended(job, self.choose_asking(job.turn > 1))
    }

    /// Returns the attributes of a deep research question.
    fn choose_asking(&self, continued: bool) -> QuestionStyle {
        let ResearchOptions { set, inline_report_chars, .. } = self.options;
        QuestionStyle { set, continued, show_thinking: false, inline_report_chars }
    }

    /// Returns the path of a conversation's files, which only its owner on this machine can use.
    fn path(&self, owner: &OwnerId, id: &ConversationId) -> Option<String> {
        let dir = self.options.mirror.as_ref()?.logs_dir(owner)?;
        Some(dir.join(id.as_str()).to_string_lossy().into_owned())
    }
}

#[cfg(test)]
mod tests;
