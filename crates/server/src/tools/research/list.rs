//! The caller's conversations, newest first, so that a model that lost an id finds it (B17).

use outlast_core::{ConversationQuery, ConversationSummary, Cursor};
use outlast_mirror::StatusWord;
use rmcp::model::CallToolResult;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::render::Lines;
use super::{HISTORY, Research};
use crate::arguments;
use crate::caller::Caller;
use crate::reply::{Refusal, told};
use crate::text::printable;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    #[serde(default)]
    status: Option<StatusWord>,
    #[serde(default = "twenty")]
    limit: i64,
    #[serde(default)]
    cursor: Option<String>,
}

fn twenty() -> i64 {
    20
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct List {
    conversations: Vec<Listed>,
    next_cursor: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    conversation_id: String,
    title: String,
    status: StatusWord,
    created_at: String,
    updated_at: String,
    message_count: u32,
}

impl Research {
    pub(super) async fn list(
        &self,
        caller: &Caller,
        given: Map<String, Value>,
    ) -> Result<CallToolResult, Refusal> {
        let arguments: ListArguments = arguments::read(Some(given))?;
        let limit = u32::try_from(arguments.limit).ok().filter(|limit| (1..=100).contains(limit));
        let limit = limit.ok_or_else(|| {
            Refusal::validation(format!("limit must be 1 to 100, not {}", arguments.limit))
        })?;
        let after = arguments.cursor.as_deref().map(cursor).transpose()?;
        let states = arguments.status.map(StatusWord::state).into_iter().collect();
        let query = ConversationQuery { states, limit, after };
        let page = self.engine.conversations(&caller.owner, &query).await?;
        let list = List {
            conversations: page.conversations.into_iter().map(Listed::from).collect(),
            next_cursor: page.next.map(|Cursor(at)| at.to_string()),
        };
        told(text(&list), &list)
    }
}

impl From<ConversationSummary> for Listed {
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

fn cursor(text: &str) -> Result<Cursor, Refusal> {
    let at = text.parse().map_err(|_| {
        Refusal::validation("cursor must be the nextCursor of an earlier answer, or left out")
    });
    Ok(Cursor(at?))
}

fn text(list: &List) -> String {
    if list.conversations.is_empty() {
        return "There are no such conversations.".to_owned();
    }
    let mut text = Lines::new(format!("Conversations, newest first; `{HISTORY}` reads one:"));
    for listed in &list.conversations {
        let Listed { conversation_id, title, status, updated_at, message_count, .. } = listed;
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
