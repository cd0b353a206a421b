//! Deep research: held until the report is there, or queued and asked after, as the mode says.

use std::time::Duration;

use outlast_core::{AskKind, HeldAnswer, Job, JobState, Key, ResearchAsk, Visibility};
use outlast_engine::Started;
use rmcp::model::CallToolResult;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::answer::{self, Asked};
use super::arguments::{ResearchArguments, input_hash, take_conversation};
use super::ask::{Place, Terms};
use super::{DEEP_RESEARCH_FOLLOWUP, Research, ResearchMode};
use crate::arguments;
use crate::caller::Caller;
use crate::held::{self, AskAnew, Waited};
use crate::reply::{Answered, Refusal, RefusalCode};
use crate::tools::instructions as instruct;

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
        let ask_anew = if key.is_some() { AskAnew::WithAnotherKey } else { AskAnew::WithAKey };
        // A task is a promise: its id goes out, and whoever has it comes back for it.
        let as_task = caller.takes_tasks && self.options.mode != ResearchMode::Queued;
        let terms = Terms {
            tool,
            workflow: "deep_research",
            priority,
            visibility: match self.options.mode {
                ResearchMode::Blocking if as_task => Visibility::Task,
                ResearchMode::Blocking => Visibility::Unpromised,
                ResearchMode::Queued | ResearchMode::Auto => Visibility::Promised,
            },
            attempt_timeout: self.options.attempt_timeout,
        };
        let job = self.new_job(&caller.owner, &place, &ask, terms)?;
        let expected = self.engine.expects(&job.profile, &job.ask);
        let of_the_call = || Key::research(tool, hash, HeldAnswer::Report);
        let started = match self.options.mode {
            ResearchMode::Queued => self.engine.start(job, key).await,
            ResearchMode::Blocking | ResearchMode::Auto if as_task => {
                self.engine.start(job, key).await
            }
            ResearchMode::Blocking => self.engine.hold(job, key.unwrap_or_else(of_the_call)).await,
            // Carried by the queue, but the same call is the same job.
            ResearchMode::Auto => {
                self.engine.start(job, Some(key.unwrap_or_else(of_the_call))).await
            }
        };
        let started = match started {
            Ok(started) => started,
            Err(error) => return Err(self.refused(caller, &place, error).await),
        };
        if as_task {
            self.engine.carry_held(&started.job);
            return Ok(Answered::Task(Box::new(started.job)));
        }
        let asked = Asked {
            continued: place.conversation().is_some(),
            show_thinking: false,
            path: self.path_of(&caller.owner, &started.job),
        };
        let answer = match self.options.mode {
            ResearchMode::Blocking => self.held(caller, started, &asked, None, ask_anew).await,
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
                let outcome = |job: &Job| ended(job, &asked);
                let waited =
                    held::answer(&self.engine, caller, started, budget, ask_anew, outcome).await?;
                match waited {
                    Waited::Answer(answer) => answer,
                    // A call that holds is under way: its conversation is not shown before it has succeeded.
                    Waited::Unfinished(job) if !job.is_shown() => Err(Refusal::because(
                        RefusalCode::Timeout,
                        "the same call was made before and is under way; make it again to pick its report up",
                    )),
                    Waited::Unfinished(job) => answer::queued(&job, &asked, &expected),
                }
            }
        };
        answer.map(Answered::Now)
    }

    /// Waits for a held call and answers with what came of it.
    pub(super) async fn held(
        &self,
        caller: &mut Caller,
        started: Started,
        asked: &Asked,
        budget: Option<Duration>,
        ask_anew: AskAnew,
    ) -> Result<CallToolResult, Refusal> {
        let since = Instant::now();
        let outcome = |job: &Job| ended(job, asked);
        match held::answer(&self.engine, caller, started, budget, ask_anew, outcome).await? {
            Waited::Answer(answer) => answer,
            Waited::Unfinished(_) => {
                Err(still_running(budget.filter(|budget| since.elapsed() >= *budget)))
            }
        }
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
            "this server is stopping; make the same call again: it goes on, or says what became of the research",
        ),
    }
}
