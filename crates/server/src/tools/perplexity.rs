//! Tool set `perplexity`: the vendor's four tools under the vendor's names and schemas, over durable jobs. Every call is
//! held; a client that gives up makes the same call again and picks it up.

mod arguments;
mod schema;

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{
    AskKind, Body, HeldAnswer, Job, Key, NewJob, OwnerId, Profile, ResearchAsk, Visibility,
};
use outlast_engine::Engine;
use rmcp::model::JsonObject;
use serde_json::json;

use crate::arguments::digest;
use crate::caller::Caller;
use crate::held::{self, AskAnew, HeldCall, ToldAgain};
use crate::reply::{Answered, Refusal, ToolResult, told};
use crate::text::{block_texts, printable, with_citations};
use crate::tool_names::perplexity::{ASK, REASON, RESEARCH, SEARCH};
use crate::tools::instructions::research_job;
use crate::tools::outcome;
use crate::tools::recipient::Disclaimer;
use crate::tools::schema::ListedTool;

/// What this set is told once.
#[derive(Clone, Debug)]
pub struct PerplexityOptions {
    /// Which workers can run its jobs.
    pub profile: Profile,
    /// How long a quick answer may take.
    pub quick_timeout: Duration,
    /// How long research may take.
    pub research_timeout: Duration,
    /// How long a finished call is kept.
    pub keep: Duration,
    /// Whether descriptions warn against sending sensitive information.
    pub disclaimer: Disclaimer,
}

/// The tool set.
#[derive(Clone)]
pub struct Perplexity {
    engine: Engine,
    options: PerplexityOptions,
}

impl Perplexity {
    /// The set over an engine.
    pub fn new(engine: Engine, options: PerplexityOptions) -> Self {
        Self { engine, options }
    }

    /// Its tools.
    pub(crate) fn listed(&self) -> Vec<ListedTool> {
        schema::tools(&Arc::new(self.clone()))
    }

    /// How a model should use them.
    pub(crate) fn instructions(&self) -> String {
        format!(
            "{SEARCH} finds what there is, {ASK} answers a quick question, {REASON} thinks one through, {RESEARCH} writes a \
             report and takes minutes. If a call times out, make the same call again: it picks up where it was."
        )
    }

    async fn ask(
        &self,
        caller: &mut Caller,
        tool: &'static str,
        kind: AskKind,
        given: JsonObject,
    ) -> ToolResult<Answered> {
        let (messages, filters) = arguments::read(kind, given)?;
        let ask = ResearchAsk { kind, messages, filters, ..ResearchAsk::default() };
        let may_be_task = caller.takes_tasks && held_answer(kind) == HeldAnswer::Report;
        let (visibility, answer_with) = held::until_its_end(may_be_task);
        let call = HeldCall {
            job: self.new_job(&caller.owner, tool, &ask, visibility)?,
            key: None,
            call_key: Key::research(tool, digest(&ask)?, held_answer(kind)),
            answer_with,
            told_again: ToldAgain::ForAWhile(AskAnew::LaterOrInOtherWords),
        };
        held::carry(&self.engine, caller, call, &outcome).await?.answered()
    }

    fn new_job(
        &self,
        owner: &OwnerId,
        tool: &str,
        ask: &ResearchAsk,
        visibility: Visibility,
    ) -> Result<NewJob, Refusal> {
        let timeout = match held_answer(ask.kind) {
            HeldAnswer::Report => self.options.research_timeout,
            HeldAnswer::Quick => self.options.quick_timeout,
        };
        // Nothing that a caller waits for is submitted twice.
        let job = research_job(owner, self.options.profile.clone(), ask, timeout)?;
        Ok(NewJob { workflow: tool.to_owned(), visibility, keep: Some(self.options.keep), ..job })
    }
}

fn held_answer(kind: AskKind) -> HeldAnswer {
    match kind {
        AskKind::Research => HeldAnswer::Report,
        AskKind::Search | AskKind::Ask | AskKind::Reason | AskKind::Results => HeldAnswer::Quick,
    }
}

/// What came of a call of this set; `None` while it is unfinished.
pub(crate) fn outcome(job: &Job) -> Option<ToolResult> {
    let field = if job.new.workflow == SEARCH { "results" } else { "response" };
    outcome::outcome(job, |output| {
        let mut text = match &output.body {
            Body::Report { text, .. } if job.new.workflow == SEARCH => printable(text),
            Body::Report { text, sources, .. } => with_citations(text, sources),
            Body::Tool { content, .. } => block_texts(content),
        };
        if let Some(warning) = output.cost.warning() {
            text.push_str(&format!("\n\nNote: {warning}"));
        }
        let shape = json!({ field: text });
        Ok(told(text, shape))
    })
}
