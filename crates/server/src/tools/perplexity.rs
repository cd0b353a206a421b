//! Tool set `perplexity`: the vendor's four tools with the vendor's names and schemas, over durable jobs. Every call is
//! held; a client that gave up gets the result by repeating the call.

mod arguments;
mod schema;

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{
    Body, CallMode, HeldAnswer, Job, Key, NewJob, Profile, ResearchKind, ResearchRequest, Source,
};
use outlast_engine::Engine;
use rmcp::model::{ContentBlock, JsonObject};
use serde_json::json;

use crate::arguments::digest;
use crate::caller::Caller;
use crate::held::{self, AskAnew, HeldCall, ToldAgain};
use crate::identity::{AskedQuestion, Recognition};
use crate::reply::{CallResult, ToolResult, answer_with_text};
use crate::text::{block_texts, printable, with_citations};
use crate::tool_names::perplexity::{ASK, REASON, RESEARCH, SEARCH};
use crate::tools::instructions::research_job;
use crate::tools::outcome;
use crate::tools::recipient::{Disclaimer, no_provider};
use crate::tools::research_jobs::strips_thinking;
use crate::tools::schema::ListedTool;
use arguments::PerplexityQuestion;

/// The configuration of this set.
#[derive(Clone, Debug)]
pub struct PerplexityOptions {
    /// The capabilities that a worker needs to run its jobs; `None` if no provider is configured.
    pub profile: Option<Profile>,
    /// The time limit of a quick answer.
    pub quick_timeout: Duration,
    /// The time limit of research.
    pub research_timeout: Duration,
    /// The retention of a finished call.
    pub keep: Duration,
    /// Controls whether descriptions warn against sending sensitive information.
    pub disclaimer: Disclaimer,
}

/// The tool set.
#[derive(Clone)]
pub struct Perplexity {
    engine: Engine,
    options: PerplexityOptions,
}

impl Perplexity {
    /// Creates the set over an engine.
    pub fn new(engine: Engine, options: PerplexityOptions) -> Self {
        Self { engine, options }
    }

    pub(crate) fn list_tools(&self) -> Vec<ListedTool> {
        schema::tools(&Arc::new(self.clone()))
    }

    /// Returns the instructions for models.
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
        kind: ResearchKind,
        given: JsonObject,
    ) -> ToolResult<CallResult> {
        let PerplexityQuestion { messages, filters, strip_thinking } =
            arguments::read(kind, given)?;
        let ask = ResearchRequest {
            kind,
            messages,
            filters,
            strip_thinking,
            ..ResearchRequest::default()
        };
        let answer = match kind {
            ResearchKind::Research => HeldAnswer::Report,
            ResearchKind::Search
            | ResearchKind::Ask
            | ResearchKind::Reason
            | ResearchKind::Results => HeldAnswer::Quick,
        };
        let (timeout, may_be_task) = match answer {
            HeldAnswer::Report => (self.options.research_timeout, caller.takes_tasks),
            HeldAnswer::Quick => (self.options.quick_timeout, false),
        };
        let (visibility, answer_with) = held::until_its_end(may_be_task);
        let profile = self.options.profile.clone().ok_or_else(no_provider)?;
        let keep = Some(self.options.keep);
        // A job that a caller waits for is never submitted a second time.
        let job = research_job(&caller.owner, profile, &ask, timeout)?;
        let identity = AskedQuestion {
            tool,
            conversation: None,
            messages: &ask.messages,
            effort: ask.effort,
            filters: &ask.filters,
        };
        let recognition = Recognition { named_provider: None, mode: CallMode::Attach, answer };
        let identity = identity.identity(&self.engine, &job, recognition)?;
        let job = job.with_traceparent(caller.trace.as_ref());
        let call = HeldCall {
            job: NewJob { workflow: tool.to_owned(), visibility, keep, ..job },
            key: None,
            call_key: Key::research(tool, digest(&ask)?, answer).with_identity(identity),
            answer_with,
            told_again: ToldAgain::ForAWhile(AskAnew::LaterOrInOtherWords),
        };
        held::carry(&self.engine, caller, call, &outcome).await?.into_answer()
    }
}

/// Renders the outcome of a call of this set; `None` while it is unfinished.
pub(crate) fn outcome(job: &Job) -> Option<ToolResult> {
    let field = if job.new.workflow == SEARCH { "results" } else { "response" };
    outcome::outcome(job, |output| {
        let text = match &output.body {
            Body::Report { text, .. } if job.new.workflow == SEARCH => printable(text),
            Body::Report { text, thinking, sources, .. } => {
                let thinking = thinking.as_deref().filter(|_| !strips_thinking(&job.new.request));
                response(text, thinking, sources)
            }
            Body::Tool { content, .. } => block_texts(content),
        };
        let shape = json!({ field: text });
        let mut result = answer_with_text(text, shape);
        // In a separate block: the first one contains only the vendor's text.
        if let Some(warning) = output.cost.warning() {
            result.content.push(ContentBlock::text(format!("Note: {warning}")));
        }
        Ok(result)
    })
}

/// Formats the answer like the vendor's server: the thinking first, between its tags, and a line for each source at the end.
fn response(text: &str, thinking: Option<&str>, sources: &[Source]) -> String {
    let thinking = thinking.map(|thinking| format!("<think>\n{thinking}\n</think>\n\n"));
    let mut response = with_citations(thinking.unwrap_or_default() + text, sources);
    if !sources.is_empty() {
        response.push('\n');
    }
    response
}
