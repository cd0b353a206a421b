//! Conversations that an older server left as files and that the store does not contain. Only the local owner can read and
//! continue them. No server runs them any more, whatever their files say.

use outlast_core::{Code, ConversationId, Message, OwnerId, Profile, Role};
use outlast_mirror::{ArchiveError, ArchivedConversation};
use outlast_mirror::{StatusFile, StatusWord};

use super::ask::AskedIn;
use super::history::{
    ConversationShape, HistoryNotes, MessageShape, Show, ShownConversation, sanitise,
};
use super::{Research, ResearchOptions, ResearchSet, status};
use crate::reply::{Refusal, RefusalCode};
use crate::text::printable;
use crate::tool_names::research::SEARCH;

impl Research {
    /// Returns a conversation that exists only as files.
    pub(super) async fn read_archived(
        &self,
        owner: &OwnerId,
        id: &ConversationId,
        show: Show,
    ) -> Result<Option<ShownConversation>, Refusal> {
        let ResearchOptions { set, inline_report_chars: limit, .. } = self.options;
        let archived = self.archive(owner, id).await?;
        archived.map(|archived| show_archived(set, id, archived, show, limit)).transpose()
    }

    /// Returns the same conversation for a follow-up: its messages are sent with the question, and stay in its files.
    pub(super) async fn find_archived_asked_in(
        &self,
        owner: &OwnerId,
        id: &ConversationId,
    ) -> Result<Option<AskedIn>, Refusal> {
        let Some(ArchivedConversation { conversation, .. }) = self.archive(owner, id).await? else {
            return Ok(None);
        };
        let provider = Some(conversation.provider().to_owned());
        let holds_documents = conversation.provider() == Profile::LIBRARY;
        let said = conversation.messages.into_iter();
        let said = said.filter(|message| message.role != Role::System).collect();
        let conversation = Some(id.clone());
        Ok(Some(AskedIn { conversation, provider, wanted: None, holds_documents, said }))
    }

    async fn archive(
        &self,
        owner: &OwnerId,
        id: &ConversationId,
    ) -> Result<Option<ArchivedConversation>, Refusal> {
        let Some(mirror) = &self.options.mirror else { return Ok(None) };
        mirror.read_archived(owner, id).await.map_err(|error| {
            let refusal = match error {
                ArchiveError::Store(error) => return error.into(),
                ArchiveError::Corrupted { .. } => Refusal::because(
                    RefusalCode::CONVERSATION_CORRUPTED,
                    format!(
                        "the files of conversation {id} are damaged; repair or remove its folder"
                    ),
                ),
                ArchiveError::Unreadable { .. } => Refusal::because(
                    Code::ServiceUnavailable,
                    format!("the files of conversation {id} cannot be read just now; try again"),
                ),
            };
            tracing::warn!(conversation.id = %id, %error, "a conversation's files cannot be read");
            refusal
        })
    }
}

fn show_archived(
    set: ResearchSet,
    id: &ConversationId,
    archived: ArchivedConversation,
    show: Show,
    limit: usize,
) -> Result<ShownConversation, Refusal> {
    let ArchivedConversation { folder, conversation: file, status } = archived;
    let said = file.messages.iter().filter(|said| show.system || said.role != Role::System);
    let messages: Vec<MessageShape> = said
        .map(|Message { role, content }| MessageShape {
            role: *role,
            content: printable(content),
            failed: false,
        })
        .collect();
    let status =
        sanitise(status.unwrap_or_else(|| describe_end(id, &file.created_at, &file.updated_at)));
    let standing = match status.status {
        StatusWord::Pending | StatusWord::InProgress => {
            "**Status: Left unfinished** by an older server; its last question can be asked again as a follow-up."
                .to_owned()
        }
        StatusWord::Completed | StatusWord::Failed | StatusWord::Cancelled => {
            status::describe_standing(set, &status, None, None)
        }
    };
    let mut conversation = ConversationShape {
        conversation_id: id.as_str().to_owned(),
        created_at: printable(&file.created_at),
        updated_at: printable(&file.updated_at),
        message_count: messages.len(),
        messages,
        truncated: None,
        total_chars: None,
        next_offset: None,
        read_on: None,
        partial: None,
        question: None,
        conversation_path: Some(folder.to_string_lossy().into_owned()),
        provider: file.provider().to_owned(),
        usage: file.usage,
        cost: file.cost,
        search_results: file.search_results,
        report_check: None,
        citation_check: None,
    };
    conversation.shorten(show, limit)?;
    ShownConversation::new(&conversation, status, None, standing, &HistoryNotes::default())
}

/// Returns the status of a conversation without a status file: a search, or a call that waited for its report. Both had
/// ended when the files were written.
fn describe_end(id: &ConversationId, created_at: &str, updated_at: &str) -> StatusFile {
    StatusFile {
        conversation_id: id.as_str().to_owned(),
        job_id: None,
        status: StatusWord::Completed,
        tool_name: SEARCH.to_owned(),
        started_at: created_at.to_owned(),
        updated_at: updated_at.to_owned(),
        completed_at: Some(updated_at.to_owned()),
        attempts: 0,
        progress: None,
        error: None,
        error_history: Vec::new(),
    }
}
