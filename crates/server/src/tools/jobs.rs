//! Tool set `jobs`: any configured workflow as a durable job. In async mode start, get, cancel and list; otherwise each
//! workflow is a tool of its own that is held until its result is there.

mod workflow;
mod input_schema;
mod calls;
mod list;
mod answer;
mod result_page;
mod schema;

use std::sync::Arc;
use std::time::Duration;

use outlast_core::Job;
use outlast_engine::Engine;

use crate::reply::ToolResult;
use crate::tool_names::jobs::{ALL, CANCEL, GET, LIST, START, start_one};
use crate::tools::recipient::Disclaimer;
use crate::tools::schema::ListedTool;
pub use input_schema::InputSchema;
pub use workflow::{Work, Workflow};

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
    pub const NAMES: [&str; 4] = ALL;

    /// The set over an engine.
    pub fn new(engine: Engine, options: JobsOptions) -> Self {
        Self { engine, options }
    }

    /// Its tools.
    pub(crate) fn listed(&self) -> Vec<ListedTool> {
        schema::tools(&Arc::new(self.clone()))
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
            JobsMode::OneWorkflow(name) => start_one(name),
        };
        format!(
            "Jobs: {start} answers at once with a job_id. Call {GET} with it until `done` is true: each call waits for \
             the end, so repeat it straight away. {CANCEL} ends a job that is no longer wanted, {LIST} finds a lost \
             job_id."
        )
    }

    /// What a held call of this set that made the job would be answered; `None` when the job is none of its making, or
    /// unfinished.
    pub(crate) fn outcome(&self, job: &Job) -> Option<ToolResult> {
        let workflow = self.workflow(&job.new.workflow)?;
        if workflow.work == Work::Research { None } else { calls::outcome(job) }
    }

    fn workflow(&self, name: &str) -> Option<&Workflow> {
        self.options.workflows.iter().find(|workflow| workflow.name == name)
    }
}
