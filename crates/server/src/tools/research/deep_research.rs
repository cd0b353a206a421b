//! Deep research: held until the report is there, or queued and asked after, as the mode says.

use std::time::Duration;

use outlast_core::{AskKind, Job, JobState, ResearchAsk, Visibility};
use rmcp::model::CallToolResult;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::answer::{self, Asked};
use super::arguments::{ResearchArguments, input_hash, take_conversation};
use super::ask::{Place, Terms};
use super::{DEEP_RESEARCH_FOLLOWUP, Research, ResearchMode, instruct};
use crate::arguments;
use crate::caller::Caller;
use crate::receipt::Receipt;
use crate::reply::{Answered, Refusal, RefusalCode};
use crate::wait;

impl Research {
    pub(super) async fn deep_research(
        &self,
        caller: &mut Caller,
        tool: &str,
        mut given: Map<String, Value>,
    ) -> Result<Answered, Refusal> {
        let conversation =
            (tool == DEEP_RESEARCH_FOLLOWUP).then(|| take_conversation(&mut given)).transpose()?;
        let arguments: ResearchArguments = arguments::read(Some(given))?;
        let priority = arguments.check()?;
        let place = match conversation {
            Some(id) => self.place(caller, &id).await?,
            None => Place::New,
        };
        let effort = arguments.reasoning_effort.into();
        let ask = ResearchAsk {
            kind: AskKind::Research,
            messages: place.messages(Some(instruct::research(effort)), &arguments.query),
            effort: Some(effort),
            ..ResearchAsk::default()
        };
        let hash = input_hash(tool, place.conversation(), &arguments)?;
        let key = arguments.idempotency_key.as_deref();
        let key = key.map(|text| arguments::key(text, hash)).transpose()?;
        // A task is a promise: its id goes out, and whoever has it comes back for it.
        let as_task = caller.takes_tasks && self.options.mode != ResearchMode::Queued;
        let terms = Terms {
            tool,
            workflow: "deep_research",
            priority,
            visibility: match self.options.mode {
                ResearchMode::Blocking if !as_task => Visibility::Unpromised,
                ResearchMode::Blocking | ResearchMode::Queued | ResearchMode::Auto => {
                    Visibility::Promised
                }
            },
            attempt_timeout: self.options.attempt_timeout,
        };
        let job = self.new_job(&caller.owner, &place, &ask, terms)?;
        let expected = self.estimate(&job);
        let started = match (self.options.mode, key) {
            (ResearchMode::Blocking | ResearchMode::Auto, key) if as_task => {
                self.engine.start(job, key).await
            }
            (ResearchMode::Blocking, None) => self.engine.hold(job, tool, hash).await,
            (ResearchMode::Blocking, Some(key)) => self.engine.hold_under(job, key).await,
            (ResearchMode::Queued | ResearchMode::Auto, key) => self.engine.start(job, key).await,
        };
        let started = match started {
            Ok(started) => started,
            Err(error) => return Err(self.refused(caller, &place, error).await),
        };
        if as_task {
            if self.options.mode == ResearchMode::Blocking {
                // Nobody may be working on the queue here.
                self.engine.carry(&started.job.id);
            }
            return Ok(Answered::Task(Box::new(started.job)));
        }
        let asked = Asked {
            continued: place.conversation().is_some(),
            show_thinking: false,
            path: self.path_of(&caller.owner, &started.job),
        };
        let answer = match self.options.mode {
            ResearchMode::Blocking => self.held(caller, &started.job, &asked, None).await,
            ResearchMode::Queued => {
                let job = started.job;
                if job.state.kind().is_terminal() {
                    // An idempotency key named a job that has ended: its present state is its outcome.
                    ended(&job, &asked).unwrap_or_else(|| Err(Refusal::internal()))
                } else {
                    answer::queued(&job, &asked, &expected)
                }
            }
            ResearchMode::Auto => {
                let budget = Some(self.options.inline_budget);
                let waited = wait::for_job(&self.engine, caller, &started.job.id, budget).await?;
                let job = waited.map_or(started.job, |reading| reading.job);
                ended(&job, &asked).unwrap_or_else(|| answer::queued(&job, &asked, &expected))
            }
        };
        answer.map(Answered::Now)
    }

    /// Waits for a held call and answers with what came of it.
    pub(super) async fn held(
        &self,
        caller: &mut Caller,
        job: &Job,
        asked: &Asked,
        budget: Option<Duration>,
    ) -> Result<CallToolResult, Refusal> {
        let since = Instant::now();
        let reading = wait::for_job(&self.engine, caller, &job.id, budget).await?;
        let Some(reading) = reading else { return Err(forgotten()) };
        let Some(outcome) = ended(&reading.job, asked) else {
            return Err(still_running(budget.filter(|budget| since.elapsed() >= *budget)));
        };
        // Once this caller has it, the same call is a new one.
        caller.receipt = Some(Receipt { engine: self.engine.clone(), job: job.id });
        outcome
    }

    pub(super) fn path_of(&self, owner: &outlast_core::OwnerId, job: &Job) -> Option<String> {
        self.path(owner, job.new.conversation.as_ref()?)
    }
}

/// What came of a job; `None` while it is unfinished.
pub(super) fn ended(job: &Job, asked: &Asked) -> Option<Result<CallToolResult, Refusal>> {
    Some(match &job.state {
        JobState::Queued { .. } | JobState::Running { .. } => return None,
        JobState::Succeeded { output, .. } => answer::completed(job, output, asked),
        JobState::Failed { .. } => Err(Refusal::failed(job)),
        JobState::Cancelled { .. } => Err(Refusal::because(
            RefusalCode::Execution,
            "the research was cancelled by its owner; ask again to begin it anew",
        )),
    })
}

/// The wait ended before the job did: after all of its budget, or because the server leaves.
fn still_running(budget: Option<Duration>) -> Refusal {
    match budget {
        Some(budget) => Refusal::because(
            RefusalCode::Timeout,
            format!(
                "there is no answer after {} s; make the same call again to pick it up, or use deep research for \
                 what takes longer",
                budget.as_secs()
            ),
        ),
        None => Refusal::because(
            RefusalCode::ServiceUnavailable,
            "this server is stopping; the research is not lost: make the same call again and it goes on",
        ),
    }
}

fn forgotten() -> Refusal {
    Refusal::validation(
        "idempotency_key names a call that failed and is no longer kept; use a new key to ask again",
    )
}
