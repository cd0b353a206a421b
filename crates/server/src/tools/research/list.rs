//! The caller's conversations, newest first, so that a model that lost an id finds it (B17).

use outlast_core::{ConversationQuery, ConversationSummary, Cursor};
use outlast_mirror::StatusWord;
use rmcp::model::JsonObject;
use serde::{Deserialize, Serialize};

use super::Research;
use super::render::TextLines;
use crate::arguments;
use crate::caller::Caller;
use crate::reply::{ToolResult, told};
use crate::text::printable;
use crate::tool_names::research::HISTORY;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    #[serde(default)]
    status: Option<StatusWord>,
    #[serde(default = "arguments::default_limit")]
    limit: i64,
    #[serde(default)]
    cursor: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ConversationList {
    conversations: Vec<ListedConversation>,
    next_cursor: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedConversation {
    conversation_id: String,
    title: String,
    status: StatusWord,
    created_at: String,
    updated_at: String,
    message_count: u32,
}

impl Research {
    pub(super) async fn list(&self, caller: &Caller, given: JsonObject) -> ToolResult {
        let arguments: ListArguments = arguments::read(given)?;
        let query = ConversationQuery {
            states: arguments.status.map(StatusWord::state).into_iter().collect(),
            limit: arguments::check_limit(arguments.limit)?,
            after: arguments::cursor(arguments.cursor.as_deref(), "nextCursor")?,
        };
        let page = self.engine.conversations(&caller.owner, &query).await?;
        let list = ConversationList {
            conversations: page.conversations.into_iter().map(ListedConversation::from).collect(),
            next_cursor: page.next.map(|Cursor(at)| at.to_string()),
        };
        told(text(&list), &list)
    }
}

impl From<ConversationSummary> for ListedConversation {
    fn from(summary: ConversationSummary) -> Self {
        Self {
            conversation_id: summary.id.as_str().to_owned(),
            title: printable(&summary.title),
            status: summary.state.into(),
            created_at: summary.created_at.to_string(),
            updated_at: summary.updated_at.to_string(),
            message_count: summary.turns.saturating_add(summary.reports),
        }
    }
}

fn text(list: &ConversationList) -> String {
    if list.conversations.is_empty() {
        return "There are no such conversations.".to_owned();
    }
    let mut text = TextLines::new(format!("Conversations, newest first; `{HISTORY}` reads one:"));
    for listed in &list.conversations {
        let ListedConversation {
            conversation_id, title, status, updated_at, message_count, ..
        } = listed;
        let status = status.as_str();
        text.line(&format!(
            "- `{conversation_id}` {status}, {message_count} messages, updated {updated_at}: {title}"
        ));
    }
    if let Some(cursor) = &list.next_cursor {
        text.line(&format!("There are more: call again with cursor `{cursor}`."));
    }
    text.done()
}
