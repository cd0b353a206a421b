//! The content of a resource, and its entry in lists and results: title, size and date.

use outlast_core::conversation::Conversation;
use outlast_core::{Body, ConversationId, Job, Standing, StateKind, rules};
use outlast_mirror::{CostShape, QuestionShape};
use rmcp::model::{Annotations, ContentBlock, Resource};
use serde_json::{Value, json};

use super::ResourceId;
use crate::export::{Transcript, markdown_document, question_of};
use crate::reply::without_nulls;
use crate::text::{block_texts, printable, title, with_citations};

pub(crate) const MARKDOWN: &str = "text/markdown";
pub(super) const JSON: &str = "application/json";

/// Returns the document of a conversation.
pub(super) fn report_text(conversation: &Conversation) -> String {
    markdown_document(&Transcript::from_stored(conversation))
}

/// Returns the list entry of a conversation's document.
pub(super) fn report(conversation: &Conversation) -> Resource {
    let question = conversation.turns().next().map_or_else(String::new, question_of);
    let size = report_text(conversation).len();
    entry(
        ResourceId::Report(conversation.id.clone()),
        "report",
        &question,
        MARKDOWN,
        conversation.updated_at().to_string(),
    )
    .with_size(size as u64)
}

/// Returns the link from an answer to the document of its conversation.
pub(crate) fn report_link(id: &ConversationId, question: &str, updated_at: String) -> ContentBlock {
    let id = ResourceId::Report(id.clone());
    ContentBlock::ResourceLink(entry(id, "report", question, MARKDOWN, updated_at))
}

/// Returns the list entry of a job.
pub(super) fn job(job: &Job) -> Resource {
    let id = ResourceId::Job(job.id);
    entry(id, "job", &job.new.title, JSON, job.updated_at.to_string())
        .with_description(job.kind().as_str())
        .with_size(job_text(job).len() as u64)
}

fn entry(
    id: ResourceId,
    name: &str,
    question: &str,
    mime_type: &str,
    updated_at: String,
) -> Resource {
    let mut annotations = Annotations::default();
    annotations.last_modified = Some(updated_at);
    let mut entry = Resource::new(id.uri(), name).with_title(title(question));
    entry.mime_type = Some(mime_type.to_owned());
    entry.annotations = Some(annotations);
    entry
}

/// Returns the state of a job as JSON. The report of a conversation is a separate resource.
pub(super) fn job_text(job: &Job) -> String {
    let state = job.kind();
    let report = job.new.conversation.clone().map(|id| ResourceId::Report(id).uri());
    let failure = job.failures.last().filter(|_| state == StateKind::Failed);
    let failure = failure.map(
        |failure| json!({ "code": failure.code.as_str(), "message": printable(&failure.message) }),
    );
    let cost = job.output().map(|output| CostShape::new(output.cost, rules::maybe_spent(job)));
    let shape = without_nulls(json!({
        "jobId": job.id.to_string(),
        "conversationId": job.new.conversation,
        "workflow": job.new.workflow,
        "title": title(&job.new.title),
        "provider": job.new.profile.provider(),
        "status": state.as_str(),
        "done": state.is_terminal(),
        "message": printable(&Standing::new(job, None).to_string()),
        "createdAt": job.created_at.to_string(),
        "updatedAt": job.updated_at.to_string(),
        "endedAt": job.ended_at().map(|at| at.to_string()),
        "question": job.open_question().map(QuestionShape::new),
        "error": failure,
        "cost": cost,
        "result": if report.is_none() { result(job) } else { Value::Null },
        "report": report,
    }));
    serde_json::to_string_pretty(&shape).unwrap_or_default()
}

fn result(job: &Job) -> Value {
    match job.output().map(|output| &output.body) {
        None => Value::Null,
        Some(Body::Report { text, sources, .. }) => with_citations(text, sources).into(),
        Some(Body::Tool { structured: Some(structured), .. }) => structured.clone(),
        Some(Body::Tool { content, .. }) => block_texts(content).into(),
    }
}
