//! Adds the link to the page to the answers of tools that start a job (I7).

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;

use crate::reply::indented;

/// Returns the address of a job's page.
pub(super) fn page_of(base: &str, job: &str) -> String {
    format!("{base}/ui/jobs/{job}")
}

/// Adds the link to an answer that names a started job: in `_meta`, and as the last sentence of its message.
pub(crate) fn with_link(mut result: CallToolResult, base: &str) -> CallToolResult {
    let Some(shape) = result.structured_content.as_mut() else { return result };
    let Some(link) = link(shape, base) else { return result };
    let sentence = format!("Its page: {link}");
    let told =
        ["message", "next_instruction_for_model"].into_iter().find(|key| shape[*key].is_string());
    if let Some(Value::String(told)) = told.map(|key| &mut shape[key]) {
        told.push(' ');
        told.push_str(&sentence);
        if let Ok(text) = indented(shape) {
            result.content = vec![ContentBlock::text(text)];
        }
    } else if let Some(Value::String(told)) = shape.get_mut("rawResultText") {
        told.push('\n');
        told.push_str(&sentence);
        result.content = vec![ContentBlock::text(told.clone())];
    }
    result.meta.get_or_insert_default().insert("outlast/page".to_owned(), link.into());
    result
}

fn link(shape: &Value, base: &str) -> Option<String> {
    let id = shape.get("jobId").or_else(|| shape.get("job_id")).and_then(Value::as_str);
    if let Some(id) = id {
        let is_there = !matches!(shape["status"].as_str(), Some("NOT_FOUND" | "expired"));
        return is_there.then(|| page_of(base, id));
    }
    let is_queued = shape["responseId"] == "queued";
    let conversation = shape["conversationId"].as_str().filter(|_| is_queued)?;
    Some(format!("{base}/ui/conversations/{conversation}"))
}
