//! The origin of a job: the tool or command that created it, and the provider whose conversation it moved. The
//! request records both, next to the fields that its provider reads.

use crate::{Message, NewJob, Profile, RequestNote, Role};

impl Profile {
    /// Returns the provider that a question with this profile moves a conversation from, if it moves one: to another
    /// provider, or, if it holds text of local documents, to a researcher whose work leaves this machine (P1, K9).
    pub fn moves_from<'a>(&self, owner: &'a str, holds_documents: bool) -> Option<&'a str> {
        match (owner == self.provider(), holds_documents) {
            (false, false) => Some(owner),
            // What it holds stays known, whichever provider answers in it.
            (false, true) => Some(Self::LIBRARY),
            (true, true) if !self.keeps_text() && !self.shares_documents() => Some(owner),
            (true, _) => None,
        }
    }
}

impl NewJob {
    /// Returns the same job, created by this tool or command.
    pub fn with_tool(mut self, tool: &str) -> Self {
        self.request.set_note(RequestNote::Tool, Some(tool.to_owned()));
        self
    }

    /// Returns the name of the tool or command that created it (B15, P8), or its workflow if no name is recorded.
    pub fn tool(&self) -> &str {
        self.recorded_tool().unwrap_or(&self.workflow)
    }

    /// Returns the name of the tool or command that created it, if it is recorded.
    pub fn recorded_tool(&self) -> Option<&str> {
        self.request.note(RequestNote::Tool)
    }

    /// Returns the same job, which sends the messages of a conversation of this provider to another one (P1).
    pub fn with_moved_from(mut self, provider: &str) -> Self {
        self.request.set_note(RequestNote::MovedFrom, Some(provider.to_owned()));
        self
    }

    /// Returns the provider whose conversation it moves to another one, if it moves one.
    pub fn former_owner(&self) -> Option<&str> {
        self.request.note(RequestNote::MovedFrom)
    }

    /// Returns the sentence that reports how many earlier messages were sent to another provider, if any were (P1).
    pub fn move_text(&self) -> Option<String> {
        let from = self.former_owner()?;
        let messages = &self.request.research()?.messages;
        let said = |message: &&Message| message.role != Role::System;
        // The last message is the question.
        let (count, noun) = match messages.iter().filter(said).count().saturating_sub(1) {
            0 => return None,
            1 => (1, "earlier message"),
            count => (count, "earlier messages"),
        };
        let to = self.profile.provider();
        if from == to {
            return Some(format!(
                "{count} {noun} of this conversation, which holds text of local documents: sent to {to}, whose searches or \
                 model are not on this machine, with the question"
            ));
        }
        Some(format!(
            "{count} {noun} of this conversation, which belongs to {from}: sent to {to} with the question"
        ))
    }
}
