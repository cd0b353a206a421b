//! Tool set `perplexity`: the vendor's four tools under the vendor's names and schemas, over durable jobs. Every call is
//! held; a client that gives up makes the same call again and picks it up.

mod arguments;
mod schema;

use std::time::Duration;

use outlast_core::{
    AskKind, Body, HeldAnswer, Job, JobState, Key, NewJob, OwnerId, Profile, ResearchAsk,
    Visibility,
};
use outlast_engine::Engine;
use rmcp::model::{CallToolResult, Tool};
use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::caller::Caller;
use crate::held::{self, AskAnew, Waited};
use crate::reply::{Answered, Refusal, RefusalCode, told};
use crate::text::{printable, title, with_citations};
use crate::tools::recipient::{Disclaimer, Recipient};
use arguments::Asked;

pub(crate) const ASK: &str = "perplexity_ask";
pub(crate) const REASON: &str = "perplexity_reason";
pub(crate) const RESEARCH: &str = "perplexity_research";
pub(crate) const SEARCH: &str = "perplexity_search";

/// The tools of this set, which are also the names of its jobs' workflows.
pub(crate) const NAMES: [&str; 4] = [ASK, REASON, RESEARCH, SEARCH];

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

#[derive(Serialize)]
struct Response {
    response: String,
}

#[derive(Serialize)]
struct Results {
    results: String,
}

impl Perplexity {
    /// The set over an engine.
    pub fn new(engine: Engine, options: PerplexityOptions) -> Self {
        Self { engine, options }
    }

    /// Its tools as they are listed.
    pub(crate) fn tools(&self) -> Vec<Tool> {
        let PerplexityOptions { profile, disclaimer, .. } = &self.options;
        schema::tools(Recipient { profile, disclaimer: *disclaimer })
    }

    /// How a model should use them.
    pub(crate) fn instructions(&self) -> String {
        format!(
            "{SEARCH} finds what there is, {ASK} answers a quick question, {REASON} thinks one through, {RESEARCH} writes a \
             report and takes minutes. If a call times out, make the same call again: it picks up where it was."
        )
    }

    /// Calls one of them; `None` when the name is not one of this set's.
    pub(crate) async fn call(
        &self,
        caller: &mut Caller,
        name: &str,
        arguments: Option<Map<String, Value>>,
    ) -> Option<Result<Answered, Refusal>> {
        let kind = match name {
            ASK => AskKind::Ask,
            REASON => AskKind::Reason,
            RESEARCH => AskKind::Research,
            SEARCH => AskKind::Results,
            _ => return None,
        };
        Some(self.held(caller, name, kind, arguments.unwrap_or_default()).await)
    }

    async fn held(
        &self,
        caller: &mut Caller,
        tool: &str,
        kind: AskKind,
        arguments: Map<String, Value>,
    ) -> Result<Answered, Refusal> {
        let Asked { messages, filters } = arguments::read(kind, arguments)?;
        let ask = ResearchAsk { kind, messages, filters, ..ResearchAsk::default() };
        let input = serde_json::to_vec(&ask).map_err(|_| Refusal::internal())?;
        let mut job = self.new_job(&caller.owner, tool, &ask)?;
        if caller.takes_tasks && kind == AskKind::Research {
            // A task is a promise: its id goes out, and whoever has it comes back for it.
            job.visibility = Visibility::Task;
            let job = self.engine.start(job, None).await?.job;
            self.engine.carry_if_held(&job);
            return Ok(Answered::Task(Box::new(job)));
        }
        let key = Key::research(tool, Sha256::digest(input).into(), held_answer(kind));
        let started = self.engine.start_held(job, key).await?;
        let ask_anew = AskAnew::LaterOrInOtherWords;
        match held::answer(&self.engine, caller, started, None, ask_anew, outcome).await? {
            Waited::Answer(answer) => answer.map(Answered::Now),
            Waited::Unfinished(_) => Err(Refusal::because(
                RefusalCode::ServiceUnavailable,
                "this server is stopping; make the same call again: it goes on, or says what became of it",
            )),
        }
    }

    fn new_job(&self, owner: &OwnerId, tool: &str, ask: &ResearchAsk) -> Result<NewJob, Refusal> {
        let timeout = match held_answer(ask.kind) {
            HeldAnswer::Report => self.options.research_timeout,
            HeldAnswer::Quick => self.options.quick_timeout,
        };
        Ok(NewJob {
            owner: owner.clone(),
            conversation: None,
            profile: self.options.profile.clone(),
            workflow: tool.to_owned(),
            title: title(ask.question()),
            ask: serde_json::to_value(ask).map_err(|_| Refusal::internal())?,
            priority: 0,
            visibility: Visibility::Unpromised,
            // Nothing that a caller waits for is submitted twice.
            max_failures: 0,
            attempt_timeout: timeout,
            life: None,
            keep: Some(self.options.keep),
        })
    }
}

fn held_answer(kind: AskKind) -> HeldAnswer {
    match kind {
        AskKind::Research => HeldAnswer::Report,
        AskKind::Search | AskKind::Ask | AskKind::Reason | AskKind::Results => HeldAnswer::Quick,
    }
}

/// What came of a call of this set; `None` while it is unfinished.
pub(crate) fn outcome(job: &Job) -> Option<Result<CallToolResult, Refusal>> {
    Some(match &job.state {
        JobState::Queued { .. } | JobState::Running { .. } => return None,
        JobState::Succeeded { output, .. } if job.new.workflow == SEARCH => {
            let results = text(&output.body);
            told(results.clone(), &Results { results })
        }
        JobState::Succeeded { output, .. } => {
            let response = match &output.body {
                Body::Report { text, sources, .. } => {
                    let mut response = with_citations(text, sources);
                    if let Some(warning) = output.cost.warning() {
                        response.push_str(&format!("\n\nNote: {warning}"));
                    }
                    response
                }
                Body::Tool { .. } => text(&output.body),
            };
            told(response.clone(), &Response { response })
        }
        JobState::Failed { .. } => Err(Refusal::failed(job)),
        JobState::Cancelled { .. } => Err(Refusal::because(
            RefusalCode::Execution,
            "the call was cancelled by its owner; make it again to begin anew",
        )),
    })
}

fn text(body: &Body) -> String {
    match body {
        Body::Report { text, .. } => printable(text),
        Body::Tool { content, .. } => {
            let texts = content.iter().filter_map(|block| block.get("text")?.as_str());
            printable(&texts.collect::<Vec<_>>().join("\n"))
        }
    }
}
