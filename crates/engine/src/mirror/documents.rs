//! What the three files of a conversation hold: a pure function of its turns, so that the same state is always the
//! same bytes, whoever writes it and whenever.

use outlast_core::conversation::{Conversation, ConversationFile, JobFile, StatusFile};
use outlast_core::{Job, Timestamp, escaped_json};
use serde::Serialize;

/// The files of a conversation.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Documents {
    /// What was said.
    pub(super) conversation: Vec<u8>,
    /// Where the last turn stands. `None`: nobody was ever promised anything, so there is nothing to come back for.
    pub(super) status: Option<Vec<u8>>,
    /// What is still to be done. `None`: nothing, and the file goes.
    pub(super) job: Option<Vec<u8>>,
}

impl Documents {
    /// Those of this conversation as it stands.
    pub(super) fn of(
        conversation: &Conversation,
        expected_model: Option<String>,
    ) -> Result<Self, serde_json::Error> {
        let mut said = ConversationFile::of(conversation, expected_model);
        // Not when the last turn last moved: a long conversation is not written again for every percent.
        said.updated_at = said_at(conversation).to_string();
        // Elapsed as of the last change, not as of the writing: a look that finds nothing new writes nothing.
        let status = StatusFile::of(conversation, conversation.last().updated_at);
        let promised = |job: &Job| job.new.visibility.caller_has_id();
        Ok(Self {
            conversation: pretty(&said)?,
            status: conversation.turns().any(promised).then(|| pretty(&status)).transpose()?,
            job: JobFile::of(conversation).map(|job| pretty(&job)).transpose()?,
        })
    }
}

/// When the messages last changed: a question was asked, or answered, or given up.
fn said_at(conversation: &Conversation) -> Timestamp {
    let moments = conversation.turns().map(|job| job.ended_at().unwrap_or(job.created_at));
    moments.max().unwrap_or(conversation.created_at())
}

/// Two spaces and a line's end, as people and their tools like it.
fn pretty(document: &impl Serialize) -> Result<Vec<u8>, serde_json::Error> {
    let mut bytes = escaped_json(serde_json::to_string_pretty(document)?).into_bytes();
    bytes.push(b'\n');
    Ok(bytes)
}
