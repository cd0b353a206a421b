//! Adds the link to the page to the answers of tools that start a job (I7).

use rmcp::model::CallToolResult;
use serde_json::Value;

use crate::notified::add_sentence;

/// Returns the address of a job's page.
pub(crate) fn page_of_job(base: &str, job: &str) -> String {
    format!("{base}/ui/jobs/{job}")
}

/// Adds the link to an answer that names a started job: in `_meta`, and as the last sentence of its message.
pub(crate) fn with_link(mut result: CallToolResult, base: &str) -> CallToolResult {
    let Some(link) = result.structured_content.as_ref().and_then(|shape| link(shape, base)) else {
        return result;
    };
    add_sentence(&mut result, &format!("Its page: {link}"));
    result.meta.get_or_insert_default().insert("outlast/page".to_owned(), link.into());
    result
}

fn link(shape: &Value, base: &str) -> Option<String> {
    let id = shape.get("jobId").or_else(|| shape.get("job_id")).and_then(Value::as_str);
    if let Some(id) = id {
        let is_there = !matches!(shape["status"].as_str(), Some("NOT_FOUND" | "expired"));
        return is_there.then(|| page_of_job(base, id));
    }
    let is_queued = shape["responseId"] == "queued";
    let conversation = shape["conversationId"].as_str().filter(|_| is_queued)?;
    Some(format!("{base}/ui/conversations/{conversation}"))
}
