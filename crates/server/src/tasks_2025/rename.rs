//! Renames messages whose types rmcp does not have. Remove this when rmcp has the tasks of revision 2025-11-25 again.

use serde_json::Value;

/// The prefix of renamed methods.
const PREFIX: &str = "outlast/renamed/";
/// The longest list request that is looked at.
const MAX_LIST_BYTES: usize = 4 * 1024;
/// The longest `initialize` that is looked at.
const MAX_GREETING_BYTES: usize = 64 * 1024;
/// The name that marks a message of the newest revision.
const MODERN: &str = "io.modelcontextprotocol/protocolVersion";

/// Returns a message with its method renamed, if it is a request about tasks, a call as a task, or a list of tools.
pub(crate) fn rename(message: &[u8]) -> Option<Vec<u8>> {
    let has = |text: &str| message.windows(text.len()).any(|part| part == text.as_bytes());
    let may_list = message.len() <= MAX_LIST_BYTES && has("tools/list");
    if !may_list && !has("\"task") {
        return None;
    }
    let mut parsed: Value = serde_json::from_slice(message).ok()?;
    let params = parsed.get("params").unwrap_or(&Value::Null);
    if params["_meta"].get(MODERN).is_some() {
        return None;
    }
    let method = parsed["method"].as_str()?;
    let is_concerned = match method {
        "tools/call" => params.get("task").is_some(),
        "tools/list" | "tasks/get" | "tasks/result" | "tasks/list" | "tasks/cancel" => true,
        _ => false,
    };
    if !is_concerned {
        return None;
    }
    let renamed = format!("{PREFIX}{method}");
    *parsed.get_mut("method")? = renamed.into();
    serde_json::to_vec(&parsed).ok()
}

/// Returns true if a message is the first of a session.
pub(crate) fn is_initialize(message: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct TaskMessageHead {
        method: String,
    }
    let name = b"\"initialize\"";
    message.len() <= MAX_GREETING_BYTES
        && message.windows(name.len()).any(|part| part == name)
        && serde_json::from_slice::<TaskMessageHead>(message)
            .is_ok_and(|head| head.method == "initialize")
}

/// Returns the original name of a renamed method.
pub(crate) fn original_method(method: &str) -> Option<&str> {
    method.strip_prefix(PREFIX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn m3_only_messages_about_tasks_are_renamed() {
        let message = |method: &str, params: Value| {
            json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
        };
        for (method, params) in [
            ("tasks/get", json!({ "taskId": "a" })),
            ("tasks/list", json!({})),
            ("tools/list", json!({})),
            ("tools/call", json!({ "name": "a", "task": {} })),
        ] {
            let renamed = rename(message(method, params.clone()).as_bytes()).unwrap();
            let renamed: Value = serde_json::from_slice(&renamed).unwrap();
            assert_eq!(original_method(renamed["method"].as_str().unwrap()), Some(method));
            assert_eq!(renamed["params"], params);
            let mut modern = params;
            modern["_meta"] = json!({ MODERN: "2026-07-28" });
            assert_eq!(rename(message(method, modern).as_bytes()), None, "{method}");
        }
        for (method, params) in [
            ("tools/call", json!({ "name": "task", "arguments": { "task": 1 } })),
            ("tasks/update", json!({ "taskId": "a" })),
            ("prompts/list", json!({ "x": "tools/list" })),
        ] {
            assert_eq!(rename(message(method, params).as_bytes()), None, "{method}");
        }
        assert_eq!(rename(b"[\"tasks/get\"]"), None);
        assert_eq!(rename(b"{\"method\": \"tasks/get\""), None);
    }
}
