//! Tool set `jobs`: any configured workflow as a durable job. In async mode the tools are start, get, cancel and list;
//! otherwise each workflow is a separate tool, and its calls are held until the result is ready.

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
pub use workflow::{WorkKind, Workflow};

/// The configuration of this set.
#[derive(Clone, Debug)]
pub struct JobsOptions {
    /// The available workflows, in listing order.
    pub workflows: Vec<Workflow>,
    /// The way in which workflows are started.
    pub mode: JobsMode,
    /// The default wait of `get_job`.
    pub wait: Duration,
    /// The retention of a finished job.
    pub keep: Duration,
    /// Controls whether descriptions warn against sending sensitive information.
    pub disclaimer: Disclaimer,
}

/// The way in which workflows are started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobsMode {
    /// With `start_job`, which receives the name of the workflow.
    AnyWorkflow,
    /// With `start_<name>`, which starts only this workflow.
    OneWorkflow(String),
    /// With one tool per workflow, whose calls are held.
    Held,
}

/// The tool set.
#[derive(Clone)]
pub struct Jobs {
    engine: Engine,
    options: JobsOptions,
}

impl Jobs {
    /// The tools of async mode without a fixed workflow.
    pub const NAMES: [&str; 4] = ALL;

    /// Creates the set over an engine.
    pub fn new(engine: Engine, options: JobsOptions) -> Self {
        Self { engine, options }
    }

    pub(crate) fn list_tools(&self) -> Vec<ListedTool> {
        schema::tools(&Arc::new(self.clone()))
    }

    /// Returns the instructions for models.
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

    /// Returns the answer that the held call which started the job would have got; `None` if the job is unfinished or was
    /// not started by this set.
    pub(crate) fn outcome(&self, job: &Job) -> Option<ToolResult> {
        let workflow = self.workflow(&job.new.workflow)?;
        if workflow.work == WorkKind::Research { None } else { calls::outcome(job) }
    }

    fn workflow(&self, name: &str) -> Option<&Workflow> {
        self.options.workflows.iter().find(|workflow| workflow.name == name)
    }
}
