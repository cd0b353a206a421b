//! How the tool set `research-jobs` is set up, and how it shows itself to the server.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{Job, Profile};
use outlast_engine::{Engine, Reading};

use super::{ResearchJobs, schema};
use crate::reply::ToolResult;
use crate::tool_names::research_jobs::{CANCEL, POLL, START};
use crate::tools::recipient::Disclaimer;
use crate::tools::schema::ListedTool;

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

impl ResearchJobs {
    /// The set over an engine.
    pub fn new(engine: Engine, options: ResearchJobsOptions) -> Self {
        Self { engine, options }
    }

    /// Its tools.
    pub(crate) fn listed(&self) -> Vec<ListedTool> {
        schema::tools(&Arc::new(self.clone()))
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

    /// What a poll of this job would be answered.
    pub(crate) fn outcome(&self, job: &Job) -> ToolResult {
        let reading = Reading { job: job.clone(), now: self.engine.now(), waits: None };
        self.answer(&job.id.to_string(), Some(reading))
    }
}
