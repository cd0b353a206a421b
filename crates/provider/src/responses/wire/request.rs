//! The common part of all submit bodies.

use outlast_core::{Message, ResearchAsk, Role};
use serde_json::{Value, json};

/// An instruction in words for an option that the API has no field for.
pub(crate) const SCHOLARLY: &str =
    "Use scholarly sources only: peer-reviewed papers, preprints, academic books.";

/// The messages of a conversation, and the instructions for it.
pub(crate) fn conversation(ask: &ResearchAsk) -> (Value, Option<String>) {
    let (mut system, mut said): (Vec<&Message>, Vec<&Message>) =
        ask.messages.iter().partition(|message| message.role == Role::System);
    if said.is_empty() {
        // Instructions alone are the question: the API refuses an empty input.
        std::mem::swap(&mut system, &mut said);
    }
    let item = |message: &&Message| json!({"type": "message", "role": message.role, "content": message.content});
    let input = match said.as_slice() {
        [Message { role: Role::User, content }] => json!(content),
        messages => messages.iter().map(item).collect(),
    };
    let mut instructions: Vec<&str> =
        system.iter().map(|message| message.content.as_str()).collect();
    instructions.extend(ask.filters.academic.then_some(SCHOLARLY));
    (input, (!instructions.is_empty()).then(|| instructions.join("\n\n")))
}
