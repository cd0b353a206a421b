//! Tool set `research-jobs`: start, poll, cancel. Works with any client, however short its time limit for a call, because no
//! call lasts longer than the poll budget.

mod answer;
mod schema;

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{Effort, Job, Message, NewJob, Profile, ResearchRequest, rules};
use outlast_engine::{Engine, JobSnapshot};
use rmcp::model::JsonObject;
use serde::Deserialize;

use crate::arguments::{self, digest};
use crate::caller::Caller;
use crate::reply::{CallResult, ToolResult, answer_long_json};
use crate::tool_names::research_jobs::{CANCEL, POLL, START};
use crate::tools::instructions::research_job;
use crate::tools::recipient::{Disclaimer, no_provider};
use crate::tools::schema::ListedTool;
use crate::wait;
use answer::ResearchJobAnswer;
pub(super) use answer::strips_thinking;

/// The configuration of this set.
#[derive(Clone, Debug)]
pub struct ResearchJobsOptions {
    /// The capabilities that a worker needs to run its jobs; `None` if no provider is configured.
    pub profile: Option<Profile>,
    /// The time for which one poll waits.
    pub poll_budget: Duration,
    /// The number of failed attempts that are retried.
    pub max_failures: u32,
    /// The time limit of one attempt.
    pub attempt_timeout: Duration,
    /// The time for which a job may stay unfinished.
    pub life: Duration,
    /// The time for which a finished job can be polled.
    pub keep: Duration,
    /// Controls whether descriptions warn against sending sensitive information.
    pub disclaimer: Disclaimer,
}

/// The tool set.
#[derive(Clone)]
pub struct ResearchJobs {
    engine: Engine,
    options: ResearchJobsOptions,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StartArguments {
    messages: Vec<Message>,
    #[serde(default)]
    strip_thinking: bool,
    reasoning_effort: Option<Effort>,
    idempotency_key: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct JobArguments {
    job_id: String,
}

impl ResearchJobs {
    /// Creates the set over an engine.
    pub fn new(engine: Engine, options: ResearchJobsOptions) -> Self {
        Self { engine, options }
    }

    pub(crate) fn list_tools(&self) -> Vec<ListedTool> {
        schema::tools(&Arc::new(self.clone()))
    }

    /// Returns the instructions for models.
    pub(crate) fn instructions(&self) -> String {
        format!(
            "Job by job: {START} answers at once with a jobId. Call {POLL} with it until the status is COMPLETED or \
             FAILED: each call waits for the result and returns before a client's own time limit, so repeat it \
             straight away and never start the same research again while it runs. {CANCEL} only when the result is \
             no longer wanted. Any client of the same user can poll the jobId."
        )
    }

    /// Returns the answer to a poll of this job.
    pub(crate) fn outcome(&self, job: &Job) -> ToolResult {
        let reading = JobSnapshot { job: job.clone(), now: self.engine.now(), waits: None };
        self.answer(&job.id.to_string(), Some(reading))
    }

    async fn start(&self, caller: &Caller, given: JsonObject) -> ToolResult<CallResult> {
        let arguments: StartArguments = arguments::read(given)?;
        arguments::check_messages(&arguments.messages)?;
        let ask = ResearchRequest {
            messages: arguments.messages,
            effort: arguments.reasoning_effort,
            strip_thinking: arguments.strip_thinking,
            ..ResearchRequest::default()
        };
        let key = arguments::key(arguments.idempotency_key.as_deref(), digest(&(START, &ask))?)?;
        let ResearchJobsOptions { profile, attempt_timeout, life, keep, .. } = &self.options;
        let profile = profile.clone().ok_or_else(no_provider)?;
        let job = NewJob {
            max_failures: self.options.max_failures,
            life: Some(*life),
            keep: Some(*keep),
            ..research_job(&caller.owner, profile, &ask, *attempt_timeout)?
        };
        let job = self
            .engine
            .start(job.with_tool(START).with_traceparent(caller.trace.as_ref()), key)
            .await?
            .job;
        let (id, state, now) = (job.id, job.state.kind(), self.engine.now());
        // A key may name a job whose result is no longer kept; the server never pays again without the caller's knowledge.
        let expired = rules::is_expired(&job, now);
        let reading = (!expired).then_some(JobSnapshot { job, now, waits: None });
        Ok(CallResult::from_start(self.answer(&id.to_string(), reading)?, id, state))
    }

    async fn poll(&self, caller: &mut Caller, given: JsonObject) -> ToolResult {
        let JobArguments { job_id } = arguments::read(given)?;
        let budget = self.options.poll_budget;
        self.answer(&job_id, wait::poll(&self.engine, caller, &job_id, budget).await?)
    }

    async fn cancel(&self, caller: &Caller, given: JsonObject) -> ToolResult {
        let JobArguments { job_id } = arguments::read(given)?;
        self.answer(&job_id, wait::cancel(&self.engine, caller, &job_id).await?)
    }

    fn answer(&self, given: &str, reading: Option<JobSnapshot>) -> ToolResult {
        answer_long_json(match reading {
            Some(reading) => ResearchJobAnswer::about(reading, &self.options),
            None => ResearchJobAnswer::not_found(given, &self.options),
        })
    }
}

#[cfg(test)]
mod tests {
    use outlast_core::{Key, Role};

    use super::*;
    use crate::reply::Refusal;

    #[test]
    fn the_same_key_with_other_input_has_another_hash() {
        let ask = |content: &str| ResearchRequest {
            messages: vec![Message { role: Role::User, content: content.to_owned() }],
            ..ResearchRequest::default()
        };
        let key = |text: &str, content: &str| -> Result<Option<Key>, Refusal> {
            arguments::key(Some(text), digest(&(START, &ask(content)))?)
        };
        let hash = |content| key("k", content).unwrap().unwrap().input_hash;
        assert_eq!(hash("a"), hash("a"));
        assert_ne!(hash("a"), hash("b"));
        assert!(key("", "a").is_err());
        assert!(key(&"k".repeat(201), "a").is_err());
    }
}
