//! Where a job came from: the tool or command that made it, and the provider whose conversation it moved. Both stand in the
//! request, beside what its provider reads.

use serde_json::Value;

use crate::NewJob;

impl NewJob {
    /// Where a request names the tool or command that made it; no provider reads it.
    const TOOL: &str = "tool";
    /// Where a request names the provider whose conversation was moved by it (P1); no provider reads it.
    const MOVED_FROM: &str = "moved_from";

    /// The same job, made by this tool or command.
    pub fn made_by(mut self, tool: &str) -> Self {
        if let Value::Object(ask) = &mut self.ask {
            ask.insert(Self::TOOL.to_owned(), tool.into());
        }
        self
    }

    /// The name of the tool or command that made it (B15, P8); its workflow where no name is recorded.
    pub fn tool(&self) -> &str {
        self.recorded_tool().unwrap_or(&self.workflow)
    }

    /// The name of the tool or command that made it, where it is recorded.
    pub fn recorded_tool(&self) -> Option<&str> {
        self.ask.get(Self::TOOL)?.as_str()
    }

    /// The same job, which sends what was said in a conversation of this provider to another one (P1).
    pub fn moved_from(mut self, provider: &str) -> Self {
        if let Value::Object(ask) = &mut self.ask {
            ask.insert(Self::MOVED_FROM.to_owned(), provider.into());
        }
        self
    }

    /// The provider whose conversation it moves to another one, if it moves one.
    pub fn moved_out_of(&self) -> Option<&str> {
        self.ask.get(Self::MOVED_FROM)?.as_str()
    }

    /// That what was said earlier was sent to another provider than the conversation's own, if it was (P1).
    pub fn move_text(&self) -> Option<String> {
        let from = self.moved_out_of()?;
        let messages = self.ask.get("messages").and_then(Value::as_array)?;
        let said = |message: &&Value| message.get("role").is_none_or(|role| role != "system");
        // The last one is the question.
        let (count, noun) = match messages.iter().filter(said).count().saturating_sub(1) {
            0 => return None,
            1 => (1, "earlier message"),
            count => (count, "earlier messages"),
        };
        let to = self.profile.provider();
        Some(format!(
            "{count} {noun} of this conversation, which belongs to {from}: sent to {to} with the question"
        ))
    }
}
