//! The contents of a conversation's three files: a pure function of its turns, so that every process writes the
//! same bytes for the same state.

use outlast_core::conversation::Conversation;
use outlast_core::{Job, Timestamp, escape_json};
use serde::Serialize;

use crate::documents::{ConversationFile, JobFile, StatusFile};

/// The contents of a conversation's files.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FileBytes {
    pub(crate) conversation: Vec<u8>,
    /// `None` if no turn was promised, because then no caller comes back to look.
    pub(crate) status: Option<Vec<u8>>,
    /// `None` if no work is left: the file is removed.
    pub(crate) job: Option<Vec<u8>>,
}

impl FileBytes {
    /// Renders a conversation; `expected_model` is used until a model has answered.
    pub(crate) fn of(
        conversation: &Conversation,
        expected_model: Option<String>,
    ) -> Result<Self, serde_json::Error> {
        let mut said = ConversationFile::of(conversation, expected_model);
        // Progress of the last turn does not count: a long conversation is not rewritten for every percent.
        said.updated_at = messages_changed_at(conversation).to_string();
        // The elapsed time at the last change, not at the time of writing: without a change the bytes stay the
        // same.
        let status = StatusFile::of(conversation, conversation.last().updated_at);
        let promised = |job: &Job| job.new.visibility.caller_has_id();
        Ok(Self {
            conversation: pretty(&said)?,
            status: conversation.turns().any(promised).then(|| pretty(&status)).transpose()?,
            job: JobFile::of(conversation).map(|job| pretty(&job)).transpose()?,
        })
    }
}

/// Returns the time at which a question was last asked, answered or abandoned.
fn messages_changed_at(conversation: &Conversation) -> Timestamp {
    let moments = conversation.turns().map(|job| job.ended_at().unwrap_or(job.created_at));
    moments.max().unwrap_or(conversation.created_at())
}

/// Indents by two spaces and ends with a newline.
fn pretty(document: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = escape_json(serde_json::to_string_pretty(document)?).into_bytes();
    bytes.push(b'\n');
    Ok(bytes)
}
