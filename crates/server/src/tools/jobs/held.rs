//! A workflow as a tool of its own: held until its result is there, which is passed on as it came.

use outlast_core::{Body, Job, JobState, Key, Visibility};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value};

use super::Jobs;
use super::page::whole;
use super::workflow::{Given, Workflow};
use crate::arguments;
use crate::caller::Caller;
use crate::receipt::Receipt;
use crate::reply::{Answered, Refusal, RefusalCode};
use crate::text::with_citations;
use crate::wait;

impl Jobs {
    pub(super) async fn held(
        &self,
        caller: &mut Caller,
        workflow: &Workflow,
        arguments: Option<Map<String, Value>>,
    ) -> Result<Answered, Refusal> {
        let given: Given = arguments::read(arguments)?;
        let hash = workflow.input_hash(&given)?;
        let key = given.idempotency_key.as_deref();
        let key = key.map(|text| arguments::key(text, hash)).transpose()?;
        // A task is a promise: its id goes out, and whoever has it comes back for it.
        let visibility = if caller.takes_tasks { Visibility::Task } else { Visibility::Unpromised };
        let job = workflow.new_job(&caller.owner, &given, visibility, self.options.keep)?;
        if caller.takes_tasks {
            let job = self.engine.start(job, key).await?.job;
            self.engine.carry_if_held(&job);
            return Ok(Answered::Task(Box::new(job)));
        }
        let key = key.unwrap_or_else(|| Key::held(&workflow.name, hash));
        let started = self.engine.start_held(job, key).await?;
        let id = started.job.id;
        let Some(reading) = wait::for_job(&self.engine, caller, &id, None).await? else {
            return Err(Refusal::validation(
                "idempotency_key names a call that is no longer kept; use a new key to make it again",
            ));
        };
        let Some(outcome) = outcome(&reading.job) else {
            return Err(Refusal::because(
                RefusalCode::ServiceUnavailable,
                "this server is stopping; make the same call again to hear what became of it",
            ));
        };
        // Once a call was answered, the same call is a new one: a workflow may be run twice on purpose.
        caller.receipt = Some(Receipt { engine: self.engine.clone(), job: id });
        outcome.map(Answered::Now)
    }
}

/// What came of a held call; `None` while it is unfinished.
pub(super) fn outcome(job: &Job) -> Option<Result<CallToolResult, Refusal>> {
    Some(match &job.state {
        JobState::Queued { .. } | JobState::Running { .. } => return None,
        JobState::Succeeded { output, .. } => {
            let mut result = match &output.body {
                Body::Tool { content, structured, is_error } => {
                    let blocks = content.iter().map(|block| content_block(job, block)).collect();
                    let mut result = CallToolResult::success(blocks);
                    result.is_error = Some(*is_error);
                    result.structured_content.clone_from(structured);
                    result
                }
                Body::Report { text, sources, .. } => {
                    CallToolResult::success(vec![ContentBlock::text(with_citations(text, sources))])
                }
            };
            if result.structured_content.is_none() && result.is_error != Some(true) {
                // The tool has an output schema, and clients insist on what it promises.
                let conversation = job.new.conversation.as_ref();
                result.structured_content = Some(whole(conversation, output));
            }
            Ok(result)
        }
        JobState::Failed { .. } => Err(Refusal::failed(job)),
        JobState::Cancelled { .. } => Err(Refusal::because(
            RefusalCode::Execution,
            "the call was cancelled by its owner; make it again to begin anew",
        )),
    })
}

/// A block as it came; one of a kind that is not known here, as its JSON.
fn content_block(job: &Job, block: &Value) -> ContentBlock {
    serde_json::from_value(block.clone()).unwrap_or_else(|error| {
        tracing::warn!(job.id = %job.id, %error, "a block of a result is of an unknown kind");
        ContentBlock::text(block.to_string())
    })
}
