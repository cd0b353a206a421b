//! Conversations as JSON for scripts. Times are RFC 3339 in UTC.

use outlast_core::{ConversationId, ConversationPage};
use serde_json::{Value, json};

use super::transcript::{Transcript, Turn, TurnAnswer};
use crate::commands::job_view::json::pretty;

/// `conversations list --json`
pub(super) fn page(page: &ConversationPage) -> String {
    let conversations: Vec<Value> = page
        .conversations
        .iter()
        .map(|conversation| {
            json!({
                "id": conversation.id,
                "question": conversation.title,
                "state": conversation.state.as_str(),
                "turns": conversation.turns,
                "reports": conversation.reports,
                "created_at": conversation.created_at.to_string(),
                "updated_at": conversation.updated_at.to_string(),
            })
        })
        .collect();
    pretty(&json!({ "conversations": conversations, "more": page.next.is_some() }))
}

/// `conversations show --json`, `conversations export --format json`
pub(super) fn whole(told: &Transcript) -> String {
    pretty(&json!({
        "id": told.id,
        "state": told.state.as_str(),
        "created_at": told.created_at,
        "updated_at": told.updated_at,
        "turns": told.turns.iter().map(turn).collect::<Vec<_>>(),
    }))
}

/// `conversations delete --json`
pub(super) fn deleted(id: &ConversationId, jobs: u32) -> String {
    pretty(&json!({ "id": id, "removed": jobs }))
}

/// `conversations prune --json`
pub(super) fn pruned(ids: &[ConversationId]) -> String {
    pretty(&json!({ "removed": ids }))
}

fn turn(turn: &Turn) -> Value {
    json!({
        "job": turn.job,
        "question": turn.question,
        "state": turn.state.as_str(),
        "asked_at": turn.asked_at,
        "ended_at": turn.ended_at,
        "failures": turn.failures,
        "answer": turn.answer.as_ref().map(answer),
    })
}

fn answer(answer: &TurnAnswer) -> Value {
    json!({
        "text": answer.text,
        "sources": answer.sources,
        "model": answer.model,
        "usage": answer.usage,
        "cost": answer.cost,
    })
}
