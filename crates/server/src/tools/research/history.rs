//! Reads a conversation: its messages, its status and its cost.

use outlast_core::conversation::{Conversation, ConversationMessage};
use outlast_core::{ConversationId, Job, JobState, Role, StateKind, Waits};
use outlast_engine::ReportCheck;
use outlast_mirror::{
    CostShape, ProgressShape, QuestionShape, SearchResult, StatusFile, UsageShape,
};
use rmcp::model::{ContentBlock, JsonObject};
use serde::Serialize;
use serde_json::{Value, json};

use super::answer::{model, progress, report_check, sources};
use super::arguments::{HistoryArguments, OneOrMany, check_count, conversation_id};
use super::ask::not_found;
use super::long_report::{BESIDE, ReportPart};
use super::render::{self, TextLines as _};
use super::{Research, status};
use crate::arguments::{self, as_json};
use crate::caller::Caller;
use crate::citations::{CheckSummary, check_of, last_report};
use crate::quoted::{Quotation, TextBlocks};
use crate::reply::{Refusal, ToolResult, answer_with_blocks, without_nulls};
use crate::resources::report_link;
use crate::text::printable;
use crate::tools::schema::join;

/// The parts of a conversation that are shown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Show {
    pub(super) system: bool,
    pub(super) thinking: bool,
    /// Shows only the part of the last report that begins at this character.
    pub(super) offset: Option<usize>,
}

/// A conversation with its messages.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConversationShape {
    pub(super) conversation_id: String,
    pub(super) created_at: String,
    pub(super) updated_at: String,
    pub(super) message_count: usize,
    pub(super) messages: Vec<MessageShape>,
    /// True if the last report is too long for one answer.
    pub(super) truncated: Option<bool>,
    pub(super) total_chars: Option<usize>,
    pub(super) next_offset: Option<usize>,
    /// The sentence that says how to read the rest.
    #[serde(skip)]
    pub(super) read_on: Option<String>,
    /// The partial text of the running turn (G8). It is not a message, and disappears when the turn ends.
    pub(super) partial: Option<String>,
    /// The question that the running turn waits for (M4).
    pub(super) question: Option<QuestionShape>,
    pub(super) conversation_path: Option<String>,
    /// The provider of the conversation (P1).
    pub(super) provider: String,
    pub(super) usage: Option<UsageShape>,
    pub(super) cost: Option<CostShape>,
    pub(super) search_results: Option<Vec<SearchResult>>,
    pub(super) report_check: Option<ReportCheck>,
    /// The result of the check of the last report's citations.
    pub(super) citation_check: Option<CheckSummary>,
}

#[derive(Debug, Serialize)]
pub(super) struct MessageShape {
    pub(super) role: Role,
    pub(super) content: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) failed: bool,
}

/// A conversation as read, with all parts of the answer.
pub(super) struct ShownConversation {
    /// The conversation with its messages.
    pub(super) conversation: Value,
    pub(super) status: StatusFile,
    /// The progress of a turn that did not fail or get cancelled.
    pub(super) progress: Option<ProgressShape>,
    /// The status in words, with the next step.
    pub(super) standing: String,
    /// The status, the metadata and the messages.
    pub(super) blocks: Vec<ContentBlock>,
}

impl ConversationShape {
    /// Shortens the last report if it is too long for one answer, or shows only its part at an offset.
    pub(super) fn shorten(&mut self, show: Show, limit: usize) -> Result<(), Refusal> {
        let last = self.messages.iter().rposition(|message| message.role == Role::Assistant);
        let report = last.map_or("", |last| self.messages[last].content.as_str());
        let sources = self.search_results.iter().flatten();
        let sources: usize = sources.map(|it| it.title.len() + it.url.len() + 10).sum();
        let part = match show.offset {
            None => ReportPart::cut_beginning(report, limit, sources + BESIDE),
            Some(offset) => {
                let room = limit.saturating_sub(BESIDE).max(limit / 2);
                let part = ReportPart::at(report, offset, room).ok_or_else(|| {
                    let total = report.chars().count();
                    Refusal::validation(format!(
                        "offset must be less than {total}, the number of characters of the last report"
                    ))
                })?;
                Some(part)
            }
        };
        let (Some(part), Some(last)) = (part, last) else { return Ok(()) };
        let id = ConversationId::new(&*self.conversation_id);
        self.read_on = Some(part.how_to_read_on(&id));
        self.truncated = Some(true);
        self.total_chars = Some(part.total);
        self.next_offset = part.next;
        if show.offset.is_some() {
            let mut message = self.messages.swap_remove(last);
            message.content = part.text;
            self.messages = vec![message];
            self.search_results = None;
        } else {
            self.messages[last].content = part.text;
        }
        Ok(())
    }
}

impl ShownConversation {
    /// Builds the answer; `notes` follow the messages.
    pub(super) fn new(
        shape: &ConversationShape,
        status: StatusFile,
        progress: Option<ProgressShape>,
        standing: String,
        notes: &HistoryNotes,
    ) -> Result<Self, Refusal> {
        let blocks = blocks(shape, &standing, notes);
        let conversation = without_nulls(as_json(shape)?);
        Ok(Self { conversation, status, progress, standing, blocks })
    }
}

impl Research {
    pub(super) async fn history(&self, caller: &Caller, given: JsonObject) -> ToolResult {
        let arguments: HistoryArguments = arguments::read(given)?;
        let show = Show {
            system: arguments.include_system_prompt,
            thinking: arguments.show_thinking,
            offset: arguments.offset,
        };
        match arguments.conversation_id {
            OneOrMany::Many(_) if show.offset.is_some() => {
                Err(Refusal::validation("offset needs one conversationId, not an array"))
            }
            OneOrMany::Many(ids) => {
                check_count("conversationId", &ids)?;
                self.batch(caller, &ids, show).await
            }
            OneOrMany::One(given) => self.one_history(caller, &given, show).await,
        }
    }

    /// Returns the history of one conversation; refuses an id that the caller does not have.
    pub(super) async fn one_history(&self, caller: &Caller, given: &str, show: Show) -> ToolResult {
        let shown = match conversation_id(given) {
            Some(id) => self.show(caller, &id, show).await?,
            None => None,
        };
        let Some(shown) = shown else { return Err(not_found(given)) };
        let errors = Some(shown.status.error_history);
        let standing = json!({
            "status": shown.status.status,
            "attempts": shown.status.attempts,
            "progress": shown.progress,
            "error": shown.status.error,
            "errorHistory": errors.filter(|errors| !errors.is_empty()),
            "statusMessage": shown.standing
        });
        Ok(answer_with_blocks(shown.blocks, join(shown.conversation, without_nulls(standing))))
    }

    /// Returns a conversation of the caller; `None` if they have no such conversation.
    pub(super) async fn show(
        &self,
        caller: &Caller,
        id: &ConversationId,
        show: Show,
    ) -> Result<Option<ShownConversation>, Refusal> {
        let Some(conversation) = self.engine.conversation(&caller.owner, id).await? else {
            return self.read_archived(&caller.owner, id, show).await;
        };
        let now = self.engine.now();
        let last = conversation.last();
        let waits = self.waits(caller, last).await;
        let status = sanitise(StatusFile::of(&conversation, now));
        let progress = match last.state {
            JobState::Queued { .. } | JobState::Running { .. } | JobState::Succeeded { .. } => {
                Some(progress(last, now, waits))
            }
            JobState::Failed { .. } | JobState::Cancelled { .. } => None,
        };
        let set = self.options.set;
        let standing =
            status::describe_standing(set, &status, progress.as_ref(), last.stop_text().as_deref());
        let path = self.path(&caller.owner, id);
        let limit = self.options.inline_report_chars;
        let mut shape = shape(&conversation, show, path, limit);
        shape.shorten(show, limit)?;
        if let Some(report) = last_report(&conversation) {
            let check = check_of(&self.engine, &caller.scope(), report).await?;
            shape.citation_check = check.as_ref().map(CheckSummary::from);
        }
        let notes = match show.offset {
            None => notes(&conversation, &shape),
            Some(_) => HistoryNotes::default(),
        };
        let mut shown = ShownConversation::new(&shape, status, progress, standing, &notes)?;
        if conversation.last_output().is_some() {
            let question = conversation.turns().next().map_or("", |job| job.new.title.as_str());
            shown.blocks.push(report_link(&conversation.id, question, shape.updated_at.clone()));
        }
        Ok(Some(shown))
    }

    /// Returns the reason that a turn waits, if any; a failure to find the reason is not worth an error.
    async fn waits(&self, caller: &Caller, job: &Job) -> Option<Waits> {
        if job.state.kind() != StateKind::Queued {
            return None;
        }
        self.engine.read(&caller.scope(), &job.id).await.ok()??.waits
    }
}

fn shape(
    conversation: &Conversation,
    show: Show,
    path: Option<String>,
    limit: usize,
) -> ConversationShape {
    let said = conversation.messages().into_iter();
    let said = said.filter(|said| show.system || said.role != Role::System);
    let messages: Vec<MessageShape> = said.map(|said| message(said, show, limit)).collect();
    let answered = conversation.turns().filter_map(|job| match &job.state {
        JobState::Succeeded { output, .. } => Some((job, &**output)),
        _ => None,
    });
    let last = answered.last();
    ConversationShape {
        conversation_id: conversation.id.as_str().to_owned(),
        created_at: conversation.created_at().to_string(),
        updated_at: conversation.updated_at().to_string(),
        message_count: messages.len(),
        messages,
        truncated: None,
        total_chars: None,
        next_offset: None,
        read_on: None,
        partial: conversation.last().partial.as_deref().map(printable),
        question: conversation.last().open_question().map(QuestionShape::new),
        conversation_path: path,
        provider: conversation.provider().to_owned(),
        usage: last.map(|_| (&conversation.usage()).into()),
        cost: CostShape::of_conversation(conversation),
        search_results: last.map(|(_, output)| sources(output)),
        report_check: last.and_then(|(job, output)| report_check(job, output)),
        citation_check: None,
    }
}

fn message(said: ConversationMessage, show: Show, limit: usize) -> MessageShape {
    // A long report is read by offsets, which do not count thinking.
    let content = match said.thinking {
        Some(thinking) if show.thinking && said.content.len() <= limit => {
            render::render_thinking(&thinking, &said.content)
        }
        Some(_) | None => printable(&said.content),
    };
    MessageShape { role: said.role, content, failed: said.failed }
}

pub(super) fn sanitise(mut status: StatusFile) -> StatusFile {
    for entry in status.error.iter_mut().chain(&mut status.error_history) {
        entry.message = printable(&entry.message);
    }
    if let Some(progress) = &mut status.progress {
        progress.message = printable(&progress.message);
    }
    status
}

/// The text after the messages of a conversation.
#[derive(Default)]
pub(super) struct HistoryNotes {
    /// The sources of the last report.
    sources: String,
    /// Its cost, and remarks for the reader.
    remarks: String,
}

fn notes(conversation: &Conversation, shape: &ConversationShape) -> HistoryNotes {
    let Some(output) = conversation.last_output() else { return HistoryNotes::default() };
    let mut remarks = String::new();
    if let (Some(usage), Some(cost)) = (&shape.usage, &shape.cost) {
        remarks.line(&render::usage(usage, cost, &model(output.model.as_deref())));
    }
    remarks.remarks(shape.report_check.as_ref(), output.cost);
    if let Some(check) = &shape.citation_check {
        remarks.line(&check.line);
    }
    HistoryNotes { sources: render::sources(output), remarks }
}

/// Renders the text: the messages of assistants are reports, each in a separate block.
fn blocks(
    conversation: &ConversationShape,
    standing: &str,
    notes: &HistoryNotes,
) -> Vec<ContentBlock> {
    let id = &conversation.conversation_id;
    let mut text = TextBlocks::new(
        id,
        format!(
            "{standing}\n\n---\n\nConversation ID: `{id}`\nCreated: {}\nUpdated: {}\nMessages: {}",
            conversation.created_at, conversation.updated_at, conversation.message_count
        ),
    );
    text.path(conversation.conversation_path.as_deref());
    let last_report = conversation.messages.iter().rposition(|it| it.role == Role::Assistant);
    for (at, message) in conversation.messages.iter().enumerate() {
        let who = match message.role {
            Role::System => "System",
            Role::User => "User",
            Role::Assistant => "Assistant",
        };
        let failed = if message.failed { " (not answered)" } else { "" };
        text.line(&format!("\n---\n\n**{who}{failed}:**"));
        match message.role {
            Role::Assistant if Some(at) == last_report => {
                text.quote(Quotation::Report, &format!("{}{}", message.content, notes.sources));
            }
            Role::Assistant => text.quote(Quotation::Report, &message.content),
            Role::System | Role::User => text.line(&message.content),
        }
    }
    if let Some(read_on) = &conversation.read_on {
        text.line(read_on);
    }
    if let Some(partial) = &conversation.partial {
        text.line("\n---\n\n**Partial text so far (being written; not the report):**");
        text.quote(Quotation::Partial, partial);
    }
    text.line(notes.remarks.trim_start());
    text.finish()
}
