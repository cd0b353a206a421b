//! Starting a job: durable before the answer, which comes at once.

use std::sync::Arc;

use outlast_core::{Visibility, rules};
use outlast_engine::Reading;
use rmcp::model::JsonObject;
use serde_json::Value;

use super::Jobs;
use super::answer::JobAnswer;
use super::workflow::{Workflow, WorkflowArguments};
use crate::arguments;
use crate::caller::Caller;
use crate::reply::{Refusal, ToolResult, structured};
use crate::text::echoed_id;
use crate::tool_names::jobs::{START, start_one};
use crate::tools::instructions::DEEP_RESEARCH;

/// A tool that starts one workflow: `start_<workflow>`, or the workflow's own name where its calls are held.
pub(super) struct WorkflowTool {
    pub(super) jobs: Arc<Jobs>,
    pub(super) workflow: Workflow,
}

impl WorkflowTool {
    /// `start_<workflow>`
    pub(super) async fn start(&self, caller: &Caller, given: JsonObject) -> ToolResult {
        let Self { jobs, workflow } = self;
        let tool = start_one(&workflow.name);
        jobs.start(caller, &tool, workflow, arguments::read(given)?).await
    }
}

impl Jobs {
    /// `start_job`
    pub(super) async fn start_any(&self, caller: &Caller, mut given: JsonObject) -> ToolResult {
        let name = match given.remove("workflow") {
            Some(Value::String(name)) => name,
            Some(_) => return Err(Refusal::validation("workflow must be a string: its name")),
            None => return Err(Refusal::validation("workflow is missing; it is the name of one")),
        };
        let workflow = self.workflow(&name).ok_or_else(|| self.no_workflow(&name))?;
        self.start(caller, START, workflow, arguments::read(given)?).await
    }

    async fn start(
        &self,
        caller: &Caller,
        tool: &str,
        workflow: &Workflow,
        given: WorkflowArguments,
    ) -> ToolResult {
        let hash = workflow.input_hash(&given)?;
        let key = arguments::key(given.idempotency_key.as_deref(), hash);
        let keep = self.options.keep;
        let job = workflow.new_job(&caller.owner, given, Visibility::Promised, keep)?.made_by(tool);
        let started = self.engine.start(job, key?).await?;
        let (job, now) = (started.job, self.engine.now());
        if rules::expired(&job, now) {
            // The key names a job whose result is no longer kept; nothing is run again behind the caller's back.
            return structured(&JobAnswer::expired(&job.id.to_string(), &self.options));
        }
        let answer = JobAnswer::about(&Reading { job, now, waits: None }, &self.options, 0)?;
        structured(&if started.existed { answer } else { answer.started() })
    }

    fn no_workflow(&self, name: &str) -> Refusal {
        let names: Vec<_> =
            self.options.workflows.iter().map(|workflow| workflow.name.as_str()).collect();
        let known = match names.as_slice() {
            [] => format!(
                "no workflow is configured; {DEEP_RESEARCH} needs a research provider, others a [[workflow]] in \
                 outlast.toml"
            ),
            names => format!("there is: {}", names.join(", ")),
        };
        Refusal::validation(format!("workflow `{}` is not known; {known}", echoed_id(name)))
    }
}
