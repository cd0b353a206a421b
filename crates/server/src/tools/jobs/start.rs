//! Starting a job: durable before the answer, which comes at once.

use outlast_core::{Visibility, rules};
use outlast_engine::Reading;
use rmcp::model::CallToolResult;
use serde_json::{Map, Value};

use super::answer::Answer;
use super::workflow::{Given, Workflow};
use super::{DEEP_RESEARCH, Jobs, START, start_tool};
use crate::arguments;
use crate::caller::Caller;
use crate::reply::{Refusal, structured};
use crate::text::echoed_id;

impl Jobs {
    /// `start_job`
    pub(super) async fn start_any(
        &self,
        caller: &Caller,
        arguments: Option<Map<String, Value>>,
    ) -> Result<CallToolResult, Refusal> {
        let mut given = arguments.unwrap_or_default();
        let name = match given.remove("workflow") {
            Some(Value::String(name)) => name,
            Some(_) => return Err(Refusal::validation("workflow must be a string: its name")),
            None => return Err(Refusal::validation("workflow is missing; it is the name of one")),
        };
        let workflow = self.workflow(&name).ok_or_else(|| self.no_workflow(&name))?;
        self.start(caller, START, workflow, arguments::read(Some(given))?).await
    }

    /// `start_<workflow>`
    pub(super) async fn start_one(
        &self,
        caller: &Caller,
        name: &str,
        arguments: Option<Map<String, Value>>,
    ) -> Result<CallToolResult, Refusal> {
        let workflow = self.workflow(name).ok_or_else(|| self.no_workflow(name))?;
        self.start(caller, &start_tool(name), workflow, arguments::read(arguments)?).await
    }

    async fn start(
        &self,
        caller: &Caller,
        tool: &str,
        workflow: &Workflow,
        given: Given,
    ) -> Result<CallToolResult, Refusal> {
        let keep = self.options.keep;
        let job =
            workflow.new_job(&caller.owner, &given, Visibility::Promised, keep)?.made_by(tool);
        let key = given.idempotency_key.as_deref();
        let key = key.map(|text| arguments::key(text, workflow.input_hash(&given)?)).transpose()?;
        let started = self.engine.start(job, key).await?;
        let (job, now) = (started.job, self.engine.now());
        if rules::expired(&job, now) {
            // The key names a job whose result is no longer kept; nothing is run again behind the caller's back.
            return structured(&Answer::expired(&job.id.to_string(), &self.options));
        }
        let answer = Answer::about(&Reading { job, now, waits: None }, &self.options, 0)?;
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
