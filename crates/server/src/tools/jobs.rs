//! Tool set `jobs`: any configured workflow as a durable job. In async mode start, get, cancel and list; otherwise each
//! workflow is a tool of its own that is held until its result is there.

mod workflow;
mod start;
mod get;
mod list;
mod held;
mod answer;
mod page;
mod schema;

use std::time::Duration;

use outlast_core::{Job, NewJob};
use outlast_engine::Engine;
use rmcp::model::{CallToolResult, Tool};
use serde_json::{Map, Value};

use crate::caller::Caller;
use crate::reply::{Answered, Refusal};
use crate::tools::recipient::Disclaimer;
pub use workflow::{Work, Workflow};

pub(crate) const START: &str = "start_job";
pub(crate) const GET: &str = "get_job";
pub(crate) const CANCEL: &str = "cancel_job";
pub(crate) const LIST: &str = "list_jobs";

/// The name of the built-in workflow.
pub const DEEP_RESEARCH: &str = NewJob::DEEP_RESEARCH;

/// What this set is told once.
#[derive(Clone, Debug)]
pub struct JobsOptions {
    /// What can be started, in the order it is listed.
    pub workflows: Vec<Workflow>,
    /// How it is started.
    pub mode: JobsMode,
    /// How long `get_job` waits when it is not told.
    pub wait: Duration,
    /// How long a finished job is kept.
    pub keep: Duration,
    /// Whether descriptions warn against sending sensitive information.
    pub disclaimer: Disclaimer,
}

/// How workflows are started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobsMode {
    /// By `start_job`, which is told which one.
    AnyWorkflow,
    /// By `start_<name>`: this one and no other.
    OneWorkflow(String),
    /// Each by a tool of its name, which is held.
    Held,
}

/// The tool set.
#[derive(Clone)]
pub struct Jobs {
    engine: Engine,
    options: JobsOptions,
}

impl Jobs {
    /// The tools of async mode, where no workflow is fixed.
    pub const NAMES: [&str; 4] = [START, GET, CANCEL, LIST];

    /// The set over an engine.
    pub fn new(engine: Engine, options: JobsOptions) -> Self {
        Self { engine, options }
    }

    /// Its tools as they are listed.
    pub(crate) fn tools(&self) -> Vec<Tool> {
        schema::tools(&self.options)
    }

    /// How a model should use them.
    pub(crate) fn instructions(&self) -> String {
        let start = match &self.options.mode {
            JobsMode::Held => {
                return "A workflow's tool returns its result; if a call times out, make the same call again: it \
                        picks up where it was."
                    .to_owned();
            }
            JobsMode::AnyWorkflow => START.to_owned(),
            JobsMode::OneWorkflow(name) => start_tool(name),
        };
        format!(
            "Jobs: {start} answers at once with a job_id. Call {GET} with it until `done` is true: each call waits for \
             the end, so repeat it straight away. {CANCEL} ends a job that is no longer wanted, {LIST} finds a lost \
             job_id."
        )
    }

    /// Calls one of them; `None` when the name is not one of this set's.
    pub(crate) async fn call(
        &self,
        caller: &mut Caller,
        name: &str,
        arguments: Option<Map<String, Value>>,
    ) -> Option<Result<Answered, Refusal>> {
        let answer = match &self.options.mode {
            JobsMode::Held => {
                let workflow = self.workflow(name)?;
                return Some(self.held(caller, workflow, arguments).await);
            }
            JobsMode::AnyWorkflow if name == START => self.start_any(caller, arguments).await,
            JobsMode::OneWorkflow(fixed) if name == start_tool(fixed) => {
                self.start_one(caller, fixed, arguments).await
            }
            JobsMode::AnyWorkflow | JobsMode::OneWorkflow(_) => match name {
                GET => self.get(caller, arguments).await,
                CANCEL => self.cancel(caller, arguments).await,
                LIST => self.list(caller, arguments).await,
                _ => return None,
            },
        };
        Some(answer.map(Answered::Now))
    }

    /// What a held call of this set that made the job would be answered; `None` when the job is none of its making, or
    /// unfinished.
    pub(crate) fn outcome(&self, job: &Job) -> Option<Result<CallToolResult, Refusal>> {
        let workflow = self.workflow(&job.new.workflow)?;
        if workflow.work == Work::Research { None } else { held::outcome(job) }
    }

    fn workflow(&self, name: &str) -> Option<&Workflow> {
        self.options.workflows.iter().find(|workflow| workflow.name == name)
    }
}

/// The tool that starts this workflow and no other.
pub(crate) fn start_tool(workflow: &str) -> String {
    format!("start_{workflow}")
}
