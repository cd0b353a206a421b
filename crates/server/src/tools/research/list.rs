//! Lists the caller's conversations, newest first, so that a model can find a lost id (B17). Folders of older servers are
//! merged with those of the store.

use std::fmt;

use outlast_core::{
    ConversationId, ConversationPage, ConversationQuery, ConversationSummary, Cursor, OwnerId, Role,
};
use outlast_mirror::{ArchiveError, ArchivedConversation, ArchivedFolder, StatusWord};
use rmcp::model::JsonObject;
use serde::Serialize;
use serde_json::json;

use super::Research;
use super::render::TextLines as _;
use crate::arguments::{self, ListArguments};
use crate::caller::Caller;
use crate::reply::{Refusal, ToolResult, answer_with_text};
use crate::text::{printable, title};
use crate::tool_names::research::HISTORY;

/// A conversation as the list shows it.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedConversation {
    conversation_id: ConversationId,
    title: String,
    status: StatusWord,
    created_at: String,
    updated_at: String,
    message_count: usize,
}

impl Research {
    pub(super) async fn list(&self, caller: &Caller, given: JsonObject) -> ToolResult {
        let arguments: ListArguments<StatusWord> = arguments::read(given)?;
        let (limit, place) = arguments.page_after("nextCursor", ListPlace::parse)?;
        let place = place.unwrap_or_default();
        let list = List { set: self, owner: &caller.owner, status: arguments.status, limit };
        let (conversations, next) = list.page(place).await?;
        let next = next.map(|place| place.to_string());
        let text = text(&conversations, next.as_deref());
        Ok(answer_with_text(text, json!({ "conversations": conversations, "nextCursor": next })))
    }
}

/// The contents of the list: two lists, each newest first, merged.
struct List<'a> {
    set: &'a Research,
    owner: &'a OwnerId,
    status: Option<StatusWord>,
    limit: u32,
}

impl List<'_> {
    /// Returns the page that starts at this place, and the place of the next one.
    async fn page(
        &self,
        place: ListPlace,
    ) -> Result<(Vec<ListedConversation>, Option<ListPlace>), Refusal> {
        let stored = self.list_stored(place.stored, self.limit).await?;
        let folders = self.folders(&place).await?;
        let mut listed = Vec::new();
        let (mut taken, mut archived) = (0, place.archived);
        let mut from_store = stored.conversations.iter().peekable();
        let mut from_folders = folders.iter().peekable();
        while listed.len() < self.limit as usize {
            let is_folder = match (from_store.peek(), from_folders.peek()) {
                (Some(stored), Some(folder)) => folder.at > stored.updated_at,
                (None, folder) => folder.is_some(),
                (Some(_), None) => false,
            };
            if is_folder && let Some(folder) = from_folders.next() {
                archived = Some((folder.at.as_millis(), folder.id.as_str().to_owned()));
                listed.extend(self.list_archived(folder).await?);
            } else if let Some(summary) = from_store.next() {
                taken += 1;
                listed.push(of_store(summary));
            } else {
                break;
            }
        }
        let is_stored_over = from_store.peek().is_none() && stored.next.is_none();
        let are_folders_over = from_folders.peek().is_none();
        if is_stored_over && are_folders_over {
            return Ok((listed, None));
        }
        let after = match taken {
            _ if is_stored_over => StoredPlace::End,
            0 => place.stored,
            // The store returns a cursor only for the end of a page, so a page that was used in part is read again up to
            // that part.
            taken if from_store.peek().is_some() => {
                self.list_stored(place.stored, taken).await?.next.into()
            }
            _ => stored.next.into(),
        };
        Ok((listed, Some(ListPlace { stored: after, archived })))
    }

    async fn list_stored(
        &self,
        place: StoredPlace,
        limit: u32,
    ) -> Result<ConversationPage, Refusal> {
        let after = match place {
            StoredPlace::Start => None,
            StoredPlace::After(cursor) => Some(Cursor(cursor)),
            StoredPlace::End => {
                return Ok(ConversationPage { conversations: Vec::new(), next: None });
            }
        };
        let states = self.status.map(StatusWord::state).into_iter().collect();
        let query = ConversationQuery { states, limit, after };
        Ok(self.set.engine.conversations(self.owner, &query).await?)
    }

    /// Returns the folders of older servers that no earlier page has shown.
    async fn folders(&self, place: &ListPlace) -> Result<Vec<ArchivedFolder>, Refusal> {
        let Some(mirror) = &self.set.options.mirror else { return Ok(Vec::new()) };
        let mut folders = mirror.list_archived(self.owner).await?;
        if let Some((millis, id)) = &place.archived {
            folders.retain(|folder| folder.sort_key() < (*millis, id.as_str()));
        }
        Ok(folders)
    }

    /// Returns the entry of a folder; `None` if it cannot be read, or has another status than requested.
    async fn list_archived(
        &self,
        folder: &ArchivedFolder,
    ) -> Result<Option<ListedConversation>, Refusal> {
        let Some(mirror) = &self.set.options.mirror else { return Ok(None) };
        let archived = match mirror.read_archived(self.owner, &folder.id).await {
            Ok(archived) => archived,
            Err(ArchiveError::Store(error)) => return Err(error.into()),
            Err(error @ (ArchiveError::Corrupted { .. } | ArchiveError::Unreadable { .. })) => {
                tracing::warn!(conversation.id = %folder.id, %error, "a conversation's files cannot be read");
                None
            }
        };
        let listed = archived.map(|archived| of_folder(folder, archived));
        Ok(listed.filter(|listed| self.status.is_none_or(|status| status == listed.status)))
    }
}

/// The end of a page of the list: in the store, and among the folders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ListPlace {
    stored: StoredPlace,
    /// The last folder that was shown.
    archived: Option<(i64, String)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum StoredPlace {
    #[default]
    Start,
    After(u64),
    End,
}

impl From<Option<Cursor>> for StoredPlace {
    fn from(next: Option<Cursor>) -> Self {
        next.map_or(Self::End, |Cursor(at)| Self::After(at))
    }
}

impl ListPlace {
    /// Parses `17`, or `17~1761930000000~20251031-1761930000000` once folders were shown.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '~');
        let stored = match parts.next()? {
            "" => StoredPlace::Start,
            "end" => StoredPlace::End,
            number => StoredPlace::After(number.parse().ok()?),
        };
        let archived = match (parts.next(), parts.next()) {
            (Some(millis), Some(id)) => Some((millis.parse().ok()?, id.to_owned())),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => return None,
        };
        (stored != StoredPlace::Start || archived.is_some()).then_some(Self { stored, archived })
    }
}

impl fmt::Display for ListPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.stored {
            StoredPlace::Start => {}
            StoredPlace::After(at) => write!(f, "{at}")?,
            StoredPlace::End => f.write_str("end")?,
        }
        match &self.archived {
            Some((millis, id)) => write!(f, "~{millis}~{id}"),
            None => Ok(()),
        }
    }
}

fn of_store(summary: &ConversationSummary) -> ListedConversation {
    ListedConversation {
        conversation_id: summary.id.clone(),
        title: outlast_core::without_hidden(&printable(&summary.title)),
        status: StatusWord::from(summary.state),
        created_at: summary.created_at.to_string(),
        updated_at: summary.updated_at.to_string(),
        message_count: summary.turns.saturating_add(summary.reports) as usize,
    }
}

fn of_folder(folder: &ArchivedFolder, archived: ArchivedConversation) -> ListedConversation {
    let ArchivedConversation { conversation, status, .. } = archived;
    let mut said = conversation.messages.iter().filter(|said| said.role != Role::System);
    let message_count = said.clone().count();
    let question = said.find(|said| said.role == Role::User);
    ListedConversation {
        conversation_id: folder.id.clone(),
        title: question.map_or_else(String::new, |question| title(&question.content)),
        // A conversation without a status file had ended when it was written.
        status: status.map_or(StatusWord::Completed, |status| status.status),
        created_at: printable(&conversation.created_at),
        updated_at: printable(&conversation.updated_at),
        message_count,
    }
}

fn text(conversations: &[ListedConversation], next: Option<&str>) -> String {
    if conversations.is_empty() {
        return "There are no such conversations.".to_owned();
    }
    let mut text = format!("Conversations, newest first; `{HISTORY}` reads one:");
    for listed in conversations {
        text.line(&format!(
            "- `{}` {}, {} messages, updated {}: {}",
            listed.conversation_id,
            listed.status.as_str(),
            listed.message_count,
            listed.updated_at,
            listed.title
        ));
    }
    if let Some(cursor) = next {
        text.line(&format!("There are more: call again with cursor `{cursor}`."));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let archived = Some((1_761_930_000_000, "a~b-c".to_owned()));
        for (stored, archived) in [
            (StoredPlace::After(17), None),
            (StoredPlace::Start, archived.clone()),
            (StoredPlace::After(3), archived.clone()),
            (StoredPlace::End, archived),
            (StoredPlace::End, None),
        ] {
            let place = ListPlace { stored, archived };
            assert_eq!(ListPlace::parse(&place.to_string()), Some(place));
        }
        for bad in ["", "x", "-1", "1~2", "~x~id", "1~~id", "99999999999999999999"] {
            assert_eq!(ListPlace::parse(bad), None, "{bad}");
        }
    }
}
