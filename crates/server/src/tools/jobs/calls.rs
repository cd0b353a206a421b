//! The calls about one job: start it, poll it, cancel it. If workflows are tools, the call is held until the result is
//! ready. A job is durable before its start is answered.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{Job, Key, Visibility, rules};
use outlast_engine::JobSnapshot;
use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::{Number, Value};

use super::Jobs;
use super::answer::JobAnswer;
use super::result_page::whole;
use super::workflow::{Workflow, WorkflowArguments};
use crate::arguments;
use crate::caller::Caller;
use crate::held::{self, HeldCall, ToldAgain};
use crate::reply::{CallResult, Refusal, ToolResult, answer_json};
use crate::text::echo_id;
use crate::tool_names::jobs::{START, start_one};
use crate::tools::instructions::DEEP_RESEARCH;
use crate::tools::outcome;
use crate::wait;

/// The time before the end of the wait at which the answer is sent, so that it arrives in time (E3).
const SENT_BEFORE_END: Duration = Duration::from_millis(500);
const MAX_WAIT_SECONDS: f64 = 300.0;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GetArguments {
    job_id: String,
    wait_seconds: Option<Number>,
    #[serde(default)]
    offset: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CancelArguments {
    job_id: String,
}

/// A tool that starts one workflow: `start_<workflow>`, or the workflow's name if its calls are held.
pub(super) struct WorkflowTool {
    pub(super) jobs: Arc<Jobs>,
    pub(super) workflow: Workflow,
}

impl WorkflowTool {
    /// Handles `start_<workflow>`.
    pub(super) async fn start(&self, caller: &Caller, given: JsonObject) -> ToolResult<CallResult> {
        let Self { jobs, workflow } = self;
        let tool = start_one(&workflow.name);
        jobs.start(caller, &tool, workflow, arguments::read(given)?).await
    }

    /// Handles a workflow that is a separate tool: holds the call until the result is ready, and returns it unchanged.
    pub(super) async fn hold(
        &self,
        caller: &mut Caller,
        given: JsonObject,
    ) -> ToolResult<CallResult> {
        let Self { jobs, workflow } = self;
        let given: WorkflowArguments = arguments::read(given)?;
        let hash = workflow.input_hash(&given)?;
        let (visibility, answer_with) = held::until_its_end(caller.takes_tasks);
        let call = HeldCall {
            key: arguments::key(given.idempotency_key.as_deref(), hash)?,
            call_key: Key::for_held_call(&workflow.name, hash),
            job: workflow
                .new_job(&caller.owner, given, visibility, jobs.options.keep)?
                .with_traceparent(caller.trace.as_ref()),
            answer_with,
            told_again: ToldAgain::UntilReceived,
        };
        held::carry(&jobs.engine, caller, call, &outcome).await?.into_answer()
    }
}

impl Jobs {
    /// Handles `start_job`.
    pub(super) async fn start_any(
        &self,
        caller: &Caller,
        mut given: JsonObject,
    ) -> ToolResult<CallResult> {
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
    ) -> ToolResult<CallResult> {
        let hash = workflow.input_hash(&given)?;
        let key = arguments::key(given.idempotency_key.as_deref(), hash);
        let keep = self.options.keep;
        let job =
            workflow.new_job(&caller.owner, given, Visibility::Promised, keep)?.with_tool(tool);
        let job = job.with_traceparent(caller.trace.as_ref());
        let started = self.engine.start(job, key?).await?;
        let (job, now) = (started.job, self.engine.now());
        if rules::is_expired(&job, now) {
            // The key names a job whose result is no longer kept; the server never runs it again without the caller's
            // knowledge.
            let expired = JobAnswer::from_expired(&job.id.to_string(), &self.options);
            return answer_json(&expired).map(Into::into);
        }
        let (id, state) = (job.id, job.state.kind());
        let answer = JobAnswer::about(&JobSnapshot { job, now, waits: None }, &self.options, 0)?;
        let answer = answer_json(&if started.existed { answer } else { answer.with_start() })?;
        Ok(CallResult::from_start(answer, id, state))
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
        Refusal::validation(format!("workflow `{}` is not known; {known}", echo_id(name)))
    }

    pub(super) async fn get(&self, caller: &mut Caller, given: JsonObject) -> ToolResult {
        let GetArguments { job_id, wait_seconds, offset } = arguments::read(given)?;
        let given = wait_seconds.map(|number| whole_seconds(&number)).transpose()?;
        let budget = given.unwrap_or(self.options.wait).saturating_sub(SENT_BEFORE_END);
        let reading = wait::poll(&self.engine, caller, &job_id, budget).await?;
        self.answer(&job_id, reading, offset)
    }

    pub(super) async fn cancel(&self, caller: &Caller, given: JsonObject) -> ToolResult {
        let CancelArguments { job_id } = arguments::read(given)?;
        let reading = wait::cancel(&self.engine, caller, &job_id).await?;
        self.answer(&job_id, reading, 0)
    }

    fn answer(&self, given: &str, reading: Option<JobSnapshot>, offset: u64) -> ToolResult {
        answer_json(&match reading {
            Some(reading) => JobAnswer::about(&reading, &self.options, offset)?,
            None => JobAnswer::from_expired(given, &self.options),
        })
    }
}

/// Renders the outcome of a held call; `None` while it is unfinished.
pub(super) fn outcome(job: &Job) -> Option<ToolResult> {
    outcome::outcome(job, |output| {
        let mut result = outcome::plain(job, output);
        if result.structured_content.is_none() && result.is_error != Some(true) {
            // The tool has an output schema, and clients require results to match it.
            result.structured_content = Some(whole(job, output));
        }
        Ok(result)
    })
}

/// Accepts any whole number: zero means no wait, others are clamped.
fn whole_seconds(seconds: &Number) -> Result<Duration, Refusal> {
    let number = seconds.as_f64().filter(|number| number.fract() == 0.0).ok_or_else(|| {
        Refusal::validation(format!("wait_seconds must be a whole number, not {seconds}"))
    })?;
    let whole = if number == 0.0 { 0.0 } else { number.clamp(1.0, MAX_WAIT_SECONDS) };
    Ok(Duration::from_secs_f64(whole))
}

#[cfg(test)]
mod tests {
    use outlast_core::Profile;
    use outlast_engine::{Engine, Options, Providers, Shutdown};
    use outlast_store::{MemoryStore, SystemClock};
    use serde_json::json;

    use super::super::{Disclaimer, JobsMode, JobsOptions, WorkKind};
    use super::*;

    /// Without the refusal, the call would wait forever: its job needs a server with the settings of the first call, and
    /// none is running.
    #[tokio::test(start_paused = true)]
    async fn the_same_call_with_other_settings_is_refused_while_its_job_waits_for_the_first_ones() {
        let store = Arc::new(MemoryStore::new(Arc::new(SystemClock)));
        let engine = Engine::new(store, Providers::new(), Options::default(), Shutdown::new());
        let (engine, _follower) = engine.await.unwrap();
        let tool = |profile: &str| {
            let workflow = Workflow {
                name: "audit".to_owned(),
                description: String::new(),
                profile: Profile::new(profile),
                work: WorkKind::Command,
                max_failures: 0,
                timeout: Duration::from_secs(60),
                input: None,
            };
            let options = JobsOptions {
                workflows: vec![workflow.clone()],
                mode: JobsMode::Held,
                wait: Duration::from_secs(59),
                keep: Duration::from_secs(3600),
                disclaimer: Disclaimer::Off,
            };
            WorkflowTool { jobs: Arc::new(Jobs::new(engine.clone(), options)), workflow }
        };
        let hold = async |profile: &str| {
            let mut ann = Caller::test("ann");
            let call = tool(profile);
            let held = call.hold(&mut ann, JsonObject::new());
            tokio::time::timeout(Duration::from_secs(1), held).await
        };
        assert!(hold("workflow:before").await.is_err(), "it waits");
        let refusal = hold("workflow:now").await.unwrap().unwrap_err().into_sentence();
        assert!(refusal.starts_with("CONFIGURATION_ERROR: the same call was made"), "{refusal}");
        assert!(refusal.contains("outlast jobs cancel "), "{refusal}");
    }

    /// E3: any integer is accepted.
    #[test]
    fn e3_a_wait_is_any_whole_number_brought_into_bounds() {
        let seconds = |given: Value| match given {
            Value::Number(number) => whole_seconds(&number).ok().map(|wait| wait.as_secs()),
            other => panic!("{other}"),
        };
        let cases = [
            (json!(0), Some(0)),
            (json!(1), Some(1)),
            (json!(59), Some(59)),
            (json!(300), Some(300)),
            (json!(301), Some(300)),
            (json!(-7), Some(1)),
            (json!(u64::MAX), Some(300)),
            (json!(i64::MIN), Some(1)),
            (json!(5.0), Some(5)),
            (json!(1e300), Some(300)),
            (json!(0.5), None),
        ];
        for (given, expected) in cases {
            assert_eq!(seconds(given.clone()), expected, "{given}");
        }
    }
}
