//! A workflow as a tool of its own: held until its result is there, which is passed on as it came.

use outlast_core::{Job, Key, Visibility};
use rmcp::model::JsonObject;

use super::result_page::whole;
use super::start::WorkflowTool;
use super::workflow::WorkflowArguments;
use crate::arguments;
use crate::caller::Caller;
use crate::held::{self, AnswerWith, HeldCall, ToldAgain};
use crate::reply::{Answered, ToolResult};
use crate::tools::outcome;

impl WorkflowTool {
    pub(super) async fn hold(
        &self,
        caller: &mut Caller,
        given: JsonObject,
    ) -> ToolResult<Answered> {
        let Self { jobs, workflow } = self;
        let given: WorkflowArguments = arguments::read(given)?;
        let hash = workflow.input_hash(&given)?;
        let (visibility, answer_with) = match caller.takes_tasks {
            true => (Visibility::Task, AnswerWith::Task),
            false => (Visibility::Unpromised, AnswerWith::Outcome { within: None }),
        };
        let call = HeldCall {
            key: arguments::key(given.idempotency_key.as_deref(), hash)?,
            call_key: Key::held(&workflow.name, hash),
            job: workflow.new_job(&caller.owner, given, visibility, jobs.options.keep)?,
            answer_with,
            told_again: ToldAgain::UntilReceived,
        };
        held::carry(&jobs.engine, caller, call, &outcome).await?.answered()
    }
}

/// What came of a held call; `None` while it is unfinished.
pub(super) fn outcome(job: &Job) -> Option<ToolResult> {
    outcome::outcome(job, |output| {
        let mut result = outcome::plain(job, output);
        if result.structured_content.is_none() && result.is_error != Some(true) {
            // The tool has an output schema, and clients insist on what it promises.
            result.structured_content = Some(whole(job.new.conversation.as_ref(), output));
        }
        Ok(result)
    })
}
