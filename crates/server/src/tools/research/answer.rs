//! The answers of the four tools that ask: one format, and a text that is complete without it.

use outlast_core::{Body, Checkpoint, Cost, Job, Output, Timestamp, Waits, rules};
use outlast_engine::ReportCheck;
use outlast_engine::RequestForecast;
use outlast_mirror::{
    CostShape, ProgressShape, SearchResult, StatusWord, UsageShape, search_results,
};
use rmcp::model::CallToolResult;
use serde_json::json;

use super::ResearchSet;
use super::long_report::{self, ReportPart};
use super::render::{self, TextLines as _};
use crate::quoted::{Quotation, TextBlocks};
use crate::reply::{ToolResult, answer_with_blocks, answer_with_text, without_nulls};
use crate::resources::report_link;
use crate::text::{block_texts, printable};
use crate::tool_names::research::{AWAIT, HISTORY, LIST};

/// The attributes of a question that its answer depends on.
#[derive(Clone, Copy)]
pub(super) struct QuestionStyle {
    /// The set of the tool that asked.
    pub(super) set: ResearchSet,
    /// True if the question continues an existing conversation.
    pub(super) continued: bool,
    /// True if the answer includes the model's thinking.
    pub(super) show_thinking: bool,
    /// The maximum number of characters of an answer with a report.
    pub(super) inline_report_chars: usize,
}

/// Builds the answer to a question with a finished report.
pub(super) fn answer_completed(
    job: &Job,
    output: &Output,
    asking: QuestionStyle,
    path: Option<String>,
    budget_note: Option<&str>,
) -> ToolResult {
    let (id, sources_text) = (conversation(job), render::sources(output));
    let part = cut_beginning(output, asking.inline_report_chars, &sources_text);
    let report = match &part {
        Some(part) => part.text.clone(),
        None => body(output, asking.show_thinking),
    };
    let (usage, cost) =
        (UsageShape::from(&output.usage), CostShape::new(output.cost, rules::maybe_spent(job)));
    let (model, check) = (model(output.model.as_deref()), report_check(job, output));
    let response_id = match &job.checkpoint {
        Checkpoint::Running(run) => printable(&run.id),
        Checkpoint::NotBegun | Checkpoint::Beginning { .. } => job.id.to_string(),
    };
    let mut text = TextBlocks::new(&id, header(asking, &id));
    text.path(path.as_deref());
    text.quote(Quotation::Report, &format!("{report}{sources_text}"));
    let next = job.new.conversation.as_ref().zip(part.as_ref());
    if let Some((id, part)) = next {
        text.line(&part.how_to_read_on(id));
    }
    text.line(&render::usage(&usage, &cost, &model));
    text.remarks(check.as_ref(), output.cost);
    text.follow(job);
    if let Some(note) = budget_note {
        text.line(note);
    }
    text.line(&format!("Continue with {}.", asking.set.followups()));
    let mut blocks = text.finish();
    let (conversation, updated_at) = (job.new.conversation.as_ref(), job.updated_at.to_string());
    blocks.extend(conversation.map(|id| report_link(id, &job.new.title, updated_at)));
    let shape = without_nulls(json!({
        "rawResultText": report,
        "truncated": part.as_ref().map(|_| true),
        "totalChars": part.as_ref().map(|part| part.total),
        "nextOffset": part.as_ref().and_then(|part| part.next),
        "responseId": response_id,
        "modelUsed": model,
        "provider": job.new.profile.provider(),
        "usage": usage,
        "cost": cost,
        "searchResults": sources(output),
        "reportCheck": check,
        "conversationId": id,
        "conversationPath": path,
        "status": StatusWord::Completed
    }));
    Ok(answer_with_blocks(blocks, shape))
}

/// Returns the beginning of a report that is too long for one answer.
fn cut_beginning(output: &Output, limit: usize, sources: &str) -> Option<ReportPart> {
    let Body::Report { text, .. } = &output.body else { return None };
    // Characters are counted only if there may be too many.
    let report = (text.len() > limit).then(|| printable(text))?;
    ReportPart::cut_beginning(&report, limit, sources.chars().count() + long_report::BESIDE)
}

/// Builds the answer to a question that is queued or running (B2).
pub(super) fn answer_queued(
    job: &Job,
    asking: QuestionStyle,
    path: Option<String>,
    expected: &RequestForecast,
) -> CallToolResult {
    let id = conversation(job);
    let cost = CostShape::from(expected.cost.amount().map_or(Cost::Unknown, Cost::Estimate));
    // The lines up to the second blank one are a contract; further help comes after them.
    let mut text = format!(
        "{}\nDeep research query has been queued for background processing.\n\n\
         **To check status and retrieve results:**\n\
         Use the `{HISTORY}` tool with this conversation ID.\n\
         The system will process your query in the background and stream results as they become available.\n\n\
         Deep research takes minutes; it goes on if the client disconnects. `{AWAIT}` waits for one or more \
         conversations, `{LIST}` finds a lost id. Do not ask the same question again while it runs.\n{}",
        header(asking, &id),
        render::estimate(&cost)
    );
    text.follow(job);
    if let Some(note) = &expected.budget_note {
        text.line(note);
    }
    text.path(path.as_deref());
    let shape = without_nulls(json!({
        "rawResultText": text,
        "responseId": "queued",
        "modelUsed": model(expected.model.as_deref()),
        "provider": job.new.profile.provider(),
        "usage": UsageShape::default(),
        "cost": cost,
        "searchResults": [],
        "conversationId": id,
        "conversationPath": path,
        "status": StatusWord::from(job.kind())
    }));
    answer_with_text(text, shape)
}

/// Returns the quality check of a report, if one was requested.
pub(super) fn report_check(job: &Job, output: &Output) -> Option<ReportCheck> {
    ReportCheck::check(job.new.request.research()?, output)
}

/// Returns the printable sources of a report.
pub(super) fn sources(output: &Output) -> Vec<SearchResult> {
    let shown = search_results(output).into_iter().map(|source| SearchResult {
        title: printable(&source.title),
        url: printable(&source.url),
        date: source.date.as_deref().map(printable),
    });
    shown.collect()
}

/// Returns the printable progress of a turn.
pub(super) fn progress(job: &Job, now: Timestamp, waits: Option<Waits>) -> ProgressShape {
    let progress = ProgressShape::of(job, now, waits);
    ProgressShape { message: printable(&progress.message), ..progress }
}

fn header(asking: QuestionStyle, id: &str) -> String {
    let first = if asking.continued {
        "🔁 **Conversation Continued**"
    } else {
        "🆕 **New Conversation Started**"
    };
    format!("{first}\nConversation ID: `{id}`")
}

fn conversation(job: &Job) -> String {
    job.new.conversation.as_ref().map_or_else(String::new, |id| id.as_str().to_owned())
}

pub(super) fn model(model: Option<&str>) -> String {
    model.map_or_else(|| "unknown".to_owned(), printable)
}

/// Returns the report, preceded by the thinking and followed by related questions, if there are any.
fn body(output: &Output, show_thinking: bool) -> String {
    match &output.body {
        Body::Report { text, thinking, related, .. } => {
            let mut body = match thinking {
                Some(thinking) if show_thinking => render::render_thinking(thinking, text),
                Some(_) | None => printable(text),
            };
            if !related.is_empty() {
                body.push_str("\n\nRelated questions:");
                for question in related {
                    body.push_str(&format!("\n- {}", printable(question)));
                }
            }
            body
        }
        Body::Tool { content, .. } => block_texts(content),
    }
}
