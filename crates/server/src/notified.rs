//! Adds the command that waits for a job to the answers that leave the job running (L1).

use outlast_core::{JobId, WaitCommand};
use rmcp::model::{CallToolResult, ContentBlock, MetaObject};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

use crate::reply::indent;

/// The metadata field with the arguments of the command.
const WAIT: &str = "outlast/wait";

/// Adds the command to an answer: in `_meta`, and as a sentence if the client has a shell.
pub(crate) fn with_wait(
    mut result: CallToolResult,
    job: &JobId,
    wait: Option<&WaitCommand>,
    context: &RequestContext<RoleServer>,
) -> CallToolResult {
    let Some(wait) = wait else { return result };
    let client = context.client_info().map(|client| client.name);
    if let Some(sentence) = wait.sentence(job, client.as_deref()) {
        add_sentence(&mut result, &sentence);
    }
    result.meta.get_or_insert_default().extend(wait_meta(wait, job));
    result
}

/// Returns the metadata with the arguments of the command.
pub(crate) fn wait_meta(wait: &WaitCommand, job: &JobId) -> MetaObject {
    let mut meta = MetaObject::default();
    meta.insert(WAIT.to_owned(), json!(wait.argv(job)));
    meta
}

/// Adds a sentence to the text of an answer about an unfinished job, in each tool's format.
pub(crate) fn add_sentence(result: &mut CallToolResult, sentence: &str) {
    let Some(shape) = result.structured_content.as_mut() else { return };
    let told =
        ["message", "next_instruction_for_model"].into_iter().find(|key| shape[*key].is_string());
    if let Some(Value::String(told)) = told.map(|key| &mut shape[key]) {
        told.push(' ');
        told.push_str(sentence);
        if let Ok(text) = indent(shape) {
            result.content = vec![ContentBlock::text(text)];
        }
    } else if let Some(Value::String(told)) = shape.get_mut("rawResultText") {
        told.push('\n');
        told.push_str(sentence);
        result.content = vec![ContentBlock::text(told.clone())];
    }
}
