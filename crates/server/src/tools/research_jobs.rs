//! Tool set `research-jobs`: start, poll, cancel. Works with any client, however short its limit for one call,
//! because no call lasts longer than the poll budget.

mod answer;
mod schema;

use std::time::Duration;

use outlast_core::{
    Cancelled, Effort, Job, JobId, Key, Message, NewJob, NotAJobId, OwnerId, Profile, ResearchAsk,
    Visibility, rules,
};
use outlast_engine::{Engine, Reading};
use rmcp::model::{CallToolResult, Tool};
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::arguments;
use crate::caller::Caller;
use crate::reply::{Refusal, structured_long};
use crate::text::title;
use crate::tools::recipient::Disclaimer;
use crate::wait;
use answer::Answer;

pub(crate) const START: &str = "perplexity_research_start";
pub(crate) const POLL: &str = "perplexity_research_poll";
pub(crate) const CANCEL: &str = "perplexity_research_cancel";

/// What this set is told once.
#[derive(Clone, Debug)]
pub struct ResearchJobsOptions {
    /// Which workers can run its jobs.
    pub profile: Profile,
    /// How long one poll waits.
    pub poll_budget: Duration,
    /// How many failures are forgiven.
    pub max_failures: u32,
    /// How long one try may take.
    pub attempt_timeout: Duration,
    /// How long a job may stay unfinished.
    pub life: Duration,
    /// How long a finished job can be polled.
    pub keep: Duration,
    /// Whether descriptions warn against sending sensitive information.
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
    #[serde(default)]
    reasoning_effort: Option<Effort>,
    #[serde(default)]
    idempotency_key: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct JobArguments {
    job_id: String,
}

impl ResearchJobs {
    /// The set over an engine.
    pub fn new(engine: Engine, options: ResearchJobsOptions) -> Self {
        Self { engine, options }
    }

    /// Its tools as they are listed.
    pub(crate) fn tools(&self) -> Vec<Tool> {
        schema::tools(&self.options)
    }

    /// How a model should use them.
    pub(crate) fn instructions(&self) -> String {
        format!(
            "Job by job: {START} answers at once with a jobId. Call {POLL} with it until the status is COMPLETED or \
             FAILED: each call waits for the result and returns before a client's own time limit, so repeat it \
             straight away and never start the same research again while it runs. {CANCEL} only when the result is \
             no longer wanted. Any client of the same user can poll the jobId."
        )
    }

    /// Calls one of them; `None` when the name is not one of this set's.
    pub(crate) async fn call(
        &self,
        caller: &mut Caller,
        name: &str,
        arguments: Option<Map<String, Value>>,
    ) -> Option<Result<CallToolResult, Refusal>> {
        Some(match name {
            START => self.start(caller, arguments).await,
            POLL => self.poll(caller, arguments).await,
            CANCEL => self.cancel(caller, arguments).await,
            _ => return None,
        })
    }

    /// What a poll of this job would be answered.
    pub(crate) fn outcome(&self, job: &Job) -> Result<CallToolResult, Refusal> {
        let reading = Reading { job: job.clone(), now: self.engine.now(), waits: None };
        structured_long(Answer::about(reading, &self.options))
    }

    async fn start(
        &self,
        caller: &Caller,
        arguments: Option<Map<String, Value>>,
    ) -> Result<CallToolResult, Refusal> {
        let arguments: StartArguments = arguments::read(arguments)?;
        arguments::check_messages(&arguments.messages)?;
        let ask = ResearchAsk {
            messages: arguments.messages,
            effort: arguments.reasoning_effort,
            strip_thinking: arguments.strip_thinking,
            ..ResearchAsk::default()
        };
        let key = arguments.idempotency_key.map(|text| key(&text, &ask)).transpose()?;
        let job = self.engine.start(self.new_job(&caller.owner, &ask)?, key).await?.job;
        let now = self.engine.now();
        let answer = if rules::expired(&job, now) {
            // The key names a job whose result is no longer kept; nothing is bought again behind the caller's back.
            Answer::not_found(&job.id.to_string(), &self.options)
        } else {
            Answer::about(Reading { job, now, waits: None }, &self.options)
        };
        structured_long(answer)
    }

    async fn poll(
        &self,
        caller: &mut Caller,
        arguments: Option<Map<String, Value>>,
    ) -> Result<CallToolResult, Refusal> {
        let JobArguments { job_id } = arguments::read(arguments)?;
        let budget = Some(self.options.poll_budget);
        let reading = match job_id.parse::<JobId>() {
            Ok(id) => wait::for_job(&self.engine, caller, &id, budget).await?,
            Err(NotAJobId) => None,
        };
        self.answer(&job_id, reading)
    }

    async fn cancel(
        &self,
        caller: &Caller,
        arguments: Option<Map<String, Value>>,
    ) -> Result<CallToolResult, Refusal> {
        let JobArguments { job_id } = arguments::read(arguments)?;
        let cancelled = match job_id.parse::<JobId>() {
            Ok(id) => self.engine.cancel(&caller.scope(), &id).await?,
            Err(NotAJobId) => None,
        };
        let reading = cancelled.map(|(Cancelled::Now(job) | Cancelled::Already(job))| Reading {
            job,
            now: self.engine.now(),
            waits: None,
        });
        self.answer(&job_id, reading)
    }

    fn answer(&self, given: &str, reading: Option<Reading>) -> Result<CallToolResult, Refusal> {
        structured_long(match reading {
            Some(reading) => Answer::about(reading, &self.options),
            None => Answer::not_found(given, &self.options),
        })
    }

    fn new_job(&self, owner: &OwnerId, ask: &ResearchAsk) -> Result<NewJob, Refusal> {
        let job = NewJob {
            owner: owner.clone(),
            conversation: None,
            profile: self.options.profile.clone(),
            workflow: NewJob::DEEP_RESEARCH.to_owned(),
            title: title(ask.question()),
            ask: serde_json::to_value(ask).map_err(|_| Refusal::internal())?,
            priority: 0,
            visibility: Visibility::Promised,
            max_failures: self.options.max_failures,
            attempt_timeout: self.options.attempt_timeout,
            life: Some(self.options.life),
            keep: Some(self.options.keep),
        };
        Ok(job.made_by(START))
    }
}

/// A key together with what it stands for.
fn key(text: &str, ask: &ResearchAsk) -> Result<Key, Refusal> {
    let input = serde_json::to_vec(&(START, ask)).map_err(|_| Refusal::internal())?;
    arguments::key(text, Sha256::digest(input).into())
}

#[cfg(test)]
mod tests {
    use outlast_core::Role;

    use super::*;

    #[test]
    fn the_same_key_with_other_input_has_another_hash() {
        let ask = |content: &str| ResearchAsk {
            messages: vec![Message { role: Role::User, content: content.to_owned() }],
            ..ResearchAsk::default()
        };
        let hash = |content| key("k", &ask(content)).unwrap().input_hash;
        assert_eq!(hash("a"), hash("a"));
        assert_ne!(hash("a"), hash("b"));
        assert!(key("", &ask("a")).is_err());
        assert!(key(&"k".repeat(201), &ask("a")).is_err());
    }
}
