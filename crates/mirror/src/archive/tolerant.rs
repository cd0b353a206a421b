//! Reads files of other programs: missing or unknown values get a default. A file is refused only if it is not
//! a JSON object or has no list of messages.

use outlast_core::{ConversationId, Message, Role, Timestamp};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::documents::{ConversationFile, ErrorEntry, ProgressShape, StatusFile, StatusWord};

/// Parses `conversation.json`; missing times are replaced by `modified`.
pub(super) fn conversation(
    id: &ConversationId,
    bytes: &[u8],
    modified: Timestamp,
) -> Result<ConversationFile, String> {
    let fields = object(bytes)?;
    let Some(Value::Array(messages)) = fields.get("messages") else {
        return Err("it has no list of messages".to_owned());
    };
    let messages: Vec<Message> = messages.iter().filter_map(message).collect();
    Ok(ConversationFile {
        // The folder's name is authoritative, because a copied file may contain another id.
        conversation_id: id.as_str().to_owned(),
        created_at: parse_field(&fields, "createdAt").unwrap_or_else(|| modified.to_string()),
        updated_at: parse_field(&fields, "updatedAt").unwrap_or_else(|| modified.to_string()),
        model: parse_field(&fields, "model"),
        // It is shown to callers, so an invalid name counts as none.
        provider: parse_field(&fields, "provider").filter(|name: &String| {
            name.len() <= 32 && name.bytes().all(|byte| byte.is_ascii_lowercase())
        }),
        message_count: messages.len(),
        messages,
        usage: parse_field(&fields, "usage"),
        cost: parse_field(&fields, "cost"),
        search_results: parse_field(&fields, "searchResults"),
    })
}

/// Parses `status.json`; returns `None` if it contains no status.
pub(super) fn status(
    id: &ConversationId,
    bytes: &[u8],
    modified: Timestamp,
) -> Result<Option<StatusFile>, String> {
    let fields = object(bytes)?;
    let Some(status) = parse_field::<StatusWord>(&fields, "status") else { return Ok(None) };
    let moment = |key: &str| parse_field(&fields, key).unwrap_or_else(|| modified.to_string());
    let history = fields.get("errorHistory").and_then(Value::as_array);
    Ok(Some(StatusFile {
        conversation_id: id.as_str().to_owned(),
        job_id: parse_field(&fields, "jobId"),
        status,
        tool_name: parse_field(&fields, "toolName")
            .unwrap_or_else(|| "perplexity_deep_research".to_owned()),
        started_at: moment("startedAt"),
        updated_at: moment("updatedAt"),
        completed_at: parse_field(&fields, "completedAt"),
        attempts: usize::try_from(number(fields.get("attempts"))).unwrap_or_default(),
        progress: fields.get("progress").and_then(progress),
        error: fields.get("error").and_then(error),
        error_history: history.into_iter().flatten().filter_map(error).collect(),
    }))
}

fn object(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    // Some editors write a byte order mark.
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err("it is not a JSON object".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Parses a message with a known role; content in several parts is joined.
fn message(value: &Value) -> Option<Message> {
    let role = serde_json::from_value::<Role>(value.get("role")?.clone()).ok()?;
    let content = match value.get("content")? {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str));
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => return None,
    };
    Some(Message { role, content })
}

/// Returns code and message, never the details and stack traces that older servers stored.
fn error(value: &Value) -> Option<ErrorEntry> {
    let of = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    Some(ErrorEntry {
        code: of("code").unwrap_or_else(|| "INTERNAL_ERROR".to_owned()),
        message: of("message")?,
        timestamp: of("timestamp"),
    })
}

fn progress(value: &Value) -> Option<ProgressShape> {
    Some(ProgressShape {
        percentage: u8::try_from(number(value.get("percentage")).min(100)).unwrap_or(100),
        message: value.get("message")?.as_str()?.to_owned(),
        elapsed_ms: number(value.get("elapsedMs")),
        attempt: None,
    })
}

/// Parses a count, even one with a fraction.
fn number(value: Option<&Value>) -> u64 {
    let value = value.and_then(Value::as_f64).unwrap_or_default();
    value.clamp(0.0, 1e15) as u64
}

fn parse_field<T: DeserializeOwned>(fields: &Map<String, Value>, key: &str) -> Option<T> {
    serde_json::from_value(fields.get(key)?.clone()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEN: Timestamp = Timestamp::from_millis(0);

    fn id() -> ConversationId {
        ConversationId::new("20251031-1761930000000")
    }

    #[test]
    fn files_of_an_older_server_are_understood() {
        let said = r#"{
          "conversationId": "20251031-1761930000000",
          "createdAt": "2025-10-31T17:00:00.000Z",
          "updatedAt": "2025-10-31T17:05:00.000Z",
          "messageCount": 3,
          "messages": [
            {"role": "system", "content": "be good"},
            {"role": "user", "content": "why?", "id": 7},
            {"role": "assistant", "content": [{"type": "text", "text": "because"}]},
            {"role": "tool", "content": "not one of our messages"}
          ]
        }"#;
        let said = conversation(&id(), said.as_bytes(), THEN).unwrap();
        assert_eq!(said.created_at, "2025-10-31T17:00:00.000Z");
        let contents: Vec<_> = said.messages.iter().map(|said| said.content.as_str()).collect();
        assert_eq!(contents, ["be good", "why?", "because"]);
        assert_eq!(said.message_count, 3, "those that are listed");

        let stood = r#"{
          "conversationId": "20251031-1761930000000", "status": "failed",
          "toolName": "perplexity_deep_research", "startedAt": "2025-10-31T17:00:00.000Z",
          "updatedAt": "2025-10-31T17:05:00.000Z", "attempts": 2, "metadata": {"a": 1},
          "progress": {"message": "Querying", "percentage": 25.0, "elapsedMs": 12.5},
          "error": {"code": "TIMEOUT", "message": "late", "stackTrace": "at /home/ann/secret.js"},
          "errorHistory": [{"code": "TIMEOUT", "message": "late", "details": {"path": "/home"}}]
        }"#;
        let stood = status(&id(), stood.as_bytes(), THEN).unwrap().unwrap();
        assert_eq!((stood.status, stood.attempts), (StatusWord::Failed, 2));
        assert_eq!(stood.progress.as_ref().map(|progress| progress.percentage), Some(25));
        assert_eq!(stood.error_history.len(), 1);
        assert!(
            !serde_json::to_string(&stood).unwrap().contains("/home"),
            "no stack traces, no paths"
        );
    }

    #[test]
    fn missing_values_get_a_sensible_default() {
        let said = conversation(&id(), br#"{"messages": []}"#, THEN).unwrap();
        assert_eq!((said.created_at, said.message_count), (THEN.to_string(), 0));
        assert_eq!(status(&id(), br#"{"status": "dancing"}"#, THEN), Ok(None));
    }

    #[test]
    fn other_files_are_refused() {
        for broken in ["", "{", "[]", "null", "{}", r#"{"messages": {}}"#, "{\"messages\": [}"] {
            assert!(conversation(&id(), broken.as_bytes(), THEN).is_err(), "{broken}");
        }
        for broken in ["", "{\"status\": \"pend", "[]"] {
            assert!(status(&id(), broken.as_bytes(), THEN).is_err(), "{broken}");
        }
    }
}
