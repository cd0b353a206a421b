//! The caller's conversations, newest first, so that a model that lost an id finds it (B17).

use outlast_core::{ConversationQuery, ConversationSummary, Cursor, without_hidden};
use outlast_mirror::StatusWord;
use rmcp::model::JsonObject;
use serde_json::{Value, json};

use super::Research;
use super::render::TextLines as _;
use crate::arguments::{self, ListArguments};
use crate::caller::Caller;
use crate::reply::{ToolResult, told};
use crate::text::printable;
use crate::tool_names::research::HISTORY;

impl Research {
    pub(super) async fn list(&self, caller: &Caller, given: JsonObject) -> ToolResult {
        let arguments: ListArguments<StatusWord> = arguments::read(given)?;
        let (limit, after) = arguments.page("nextCursor")?;
        let query = ConversationQuery {
            states: arguments.status.map(StatusWord::state).into_iter().collect(),
            limit,
            after,
        };
        let page = self.engine.conversations(&caller.owner, &query).await?;
        let next = page.next.map(|Cursor(at)| at.to_string());
        let text = text(&page.conversations, next.as_deref());
        let conversations: Vec<Value> = page.conversations.iter().map(listed).collect();
        Ok(told(text, json!({ "conversations": conversations, "nextCursor": next })))
    }
}

fn listed(summary: &ConversationSummary) -> Value {
    json!({
        "conversationId": summary.id,
        "title": without_hidden(&printable(&summary.title)),
        "status": StatusWord::from(summary.state),
        "createdAt": summary.created_at.to_string(),
        "updatedAt": summary.updated_at.to_string(),
        "messageCount": messages(summary)
    })
}

fn messages(summary: &ConversationSummary) -> u32 {
    summary.turns.saturating_add(summary.reports)
}

fn text(conversations: &[ConversationSummary], next: Option<&str>) -> String {
    if conversations.is_empty() {
        return "There are no such conversations.".to_owned();
    }
    let mut text = format!("Conversations, newest first; `{HISTORY}` reads one:");
    for summary in conversations {
        text.line(&format!(
            "- `{}` {}, {} messages, updated {}: {}",
            summary.id,
            StatusWord::from(summary.state).as_str(),
            messages(summary),
            summary.updated_at,
            without_hidden(&printable(&summary.title))
        ));
    }
    if let Some(cursor) = next {
        text.line(&format!("There are more: call again with cursor `{cursor}`."));
    }
    text
}
