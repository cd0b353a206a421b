//! The outcome of a job, in the format of the tool that started it.

use outlast_core::{Body, Code, Job, JobState, Output};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;

use crate::reply::{Refusal, ToolResult};
use crate::text::with_citations;

/// Renders the output of a job with `completed`, or the reason that there is none; `None` while the job is unfinished.
pub(crate) fn outcome(
    job: &Job,
    completed: impl FnOnce(&Output) -> ToolResult,
) -> Option<ToolResult> {
    Some(match &job.state {
        JobState::Queued { .. } | JobState::Running { .. } => return None,
        JobState::Succeeded { output, .. } => completed(output),
        JobState::Failed { .. } => Err(Refusal::from_failure(job)),
        JobState::Cancelled { .. } => {
            Err(Refusal::because(Code::ExecutionError, describe_cancel(job)))
        }
    })
}

/// Explains that the owner cancelled the call, and what is known about the provider's run. An identical call begins a new
/// run, or resumes the one that was left.
fn describe_cancel(job: &Job) -> String {
    let run = job.stop_text().map_or_else(String::new, |text| format!(". {text}"));
    let next = if job.run_left().is_some() { "go on with its run" } else { "begin anew" };
    format!("the call was cancelled by its owner; make it again to {next}{run}")
}

/// Returns an output as its provider returned it.
pub(crate) fn plain(job: &Job, output: &Output) -> CallToolResult {
    match &output.body {
        Body::Report { text, sources, .. } => {
            CallToolResult::success(vec![ContentBlock::text(with_citations(text, sources))])
        }
        Body::Tool { content, structured, is_error } => {
            let blocks = content.iter().map(|block| content_block(job, block)).collect();
            let mut result = CallToolResult::success(blocks);
            result.is_error = Some(*is_error);
            result.structured_content.clone_from(structured);
            result
        }
    }
}

/// Converts a block unchanged; a block of an unknown kind becomes its JSON.
fn content_block(job: &Job, block: &Value) -> ContentBlock {
    serde_json::from_value(block.clone()).unwrap_or_else(|error| {
        tracing::warn!(job.id = %job.id, %error, "a block of a result is of an unknown kind");
        ContentBlock::text(block.to_string())
    })
}
