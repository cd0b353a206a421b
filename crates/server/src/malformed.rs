//! Answers messages that are not valid MCP. A request is answered under its own id, with the reason, so that no caller
//! waits forever. Text that is not JSON is answered without an id, as JSON-RPC demands. Notifications get no answer.

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, ErrorCode, InitializeRequestParams, JsonRpcError, RequestId,
    ServerJsonRpcMessage,
};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use crate::text::printable;

/// The methods that we support. If rmcp cannot read a request of one of them, its parameters are wrong.
const METHODS: [&str; 14] = [
    "initialize",
    "server/discover",
    "ping",
    "tools/list",
    "tools/call",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "subscriptions/listen",
];
/// The depth limit of serde_json.
const MAX_DEPTH: usize = 128;

/// The readable parts of any message. Ignored fields may be nested to any depth.
#[derive(Deserialize)]
struct MessageHead {
    #[serde(default, deserialize_with = "present")]
    id: Option<Value>,
    method: Option<String>,
    result: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Params {
    params: Option<Value>,
}

/// Returns the answer to a message that rmcp could not read; `None` if the message gets no answer.
pub(crate) fn answer(message: &[u8]) -> Option<ServerJsonRpcMessage> {
    let Ok(head) = serde_json::from_slice::<MessageHead>(message) else {
        // serde_json does not check ignored fields for UTF-8.
        let is_json = std::str::from_utf8(message)
            .is_ok_and(|message| serde_json::from_str::<IgnoredAny>(message).is_ok());
        return Some(refuse(None, if is_json { not_a_request() } else { not_json() }));
    };
    let Some(id) = head.id else {
        // A notification never gets an answer; a message that is neither a notification nor a response gets an error.
        let is_nothing = head.method.is_none() && head.result.is_none() && head.error.is_none();
        return is_nothing.then(|| refuse(None, not_a_request()));
    };
    let id = serde_json::from_value::<RequestId>(id).ok();
    let error = match (head.method, &id) {
        (Some(method), Some(_)) => why(&method, message),
        (None, _) if head.result.is_some() || head.error.is_some() => return None,
        (Some(_), None) | (None, _) => not_a_request(),
    };
    Some(refuse(id, error))
}

/// Returns the error for a request with this method and these parameters.
pub(crate) fn wrong_params(method: &str, params: Option<Value>) -> ErrorData {
    if !METHODS.contains(&method) {
        let method = printable(method).chars().take(64).collect::<String>();
        return ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None);
    }
    let reason = match (method, params.unwrap_or(Value::Null)) {
        (_, params) if !params.is_object() && !params.is_null() => {
            Some("`params` must be an object".to_owned())
        }
        ("tools/call", params) => misfit::<CallToolRequestParams>(params),
        ("initialize", params) => misfit::<InitializeRequestParams>(params),
        _ => None,
    };
    let reason = reason.unwrap_or_else(|| "they are not as MCP has them".to_owned());
    ErrorData::invalid_params(format!("the parameters of {method}: {reason}"), None)
}

fn why(method: &str, message: &[u8]) -> ErrorData {
    match serde_json::from_slice::<Params>(message) {
        Ok(Params { params }) => wrong_params(method, params),
        Err(error) => ErrorData::parse_error(unreadable(&error), None),
    }
}

/// Explains why a JSON message cannot be read, and names the next step. serde_json has no error kinds for these reasons.
fn unreadable(error: &serde_json::Error) -> String {
    let reason = error.to_string();
    if reason.starts_with("recursion limit") {
        return format!("the message is nested more than {MAX_DEPTH} levels deep; send it flatter");
    }
    let is_surrogate = ["lone leading surrogate", "unexpected end of hex escape"]
        .iter()
        .any(|start| reason.starts_with(start));
    if is_surrogate {
        return format!(
            "a string has half of a surrogate pair at column {}, such as `\\ud800` alone, which is no character; send whole \
             characters",
            error.column()
        );
    }
    let reason: String = printable(&reason).chars().take(200).collect();
    format!("the message cannot be read: {reason}")
}

/// Returns the field with the wrong type.
fn misfit<T: DeserializeOwned>(params: Value) -> Option<String> {
    let error = serde_path_to_error::deserialize::<_, T>(params).err()?;
    let said: String = printable(&error.inner().to_string()).chars().take(200).collect();
    match error.path().to_string().as_str() {
        "." => Some(said),
        path => Some(format!("`{path}`: {said}")),
    }
}

fn not_a_request() -> ErrorData {
    ErrorData::invalid_request("this is not one request of JSON-RPC 2.0", None)
}

fn not_json() -> ErrorData {
    ErrorData::parse_error("this is not JSON; send one JSON-RPC message per line", None)
}

fn refuse(id: Option<RequestId>, error: ErrorData) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::Error(JsonRpcError::new(id, error))
}

/// Distinguishes an explicit null from an absent value.
fn present<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the id, the code and the message of an answer.
    fn told(message: &str) -> Option<(Value, i64, String)> {
        let answer = serde_json::to_value(answer(message.as_bytes())?).unwrap();
        let error = &answer["error"];
        let words = error["message"].as_str().unwrap().to_owned();
        Some((answer["id"].clone(), error["code"].as_i64().unwrap(), words))
    }

    #[test]
    fn a_request_is_answered_under_its_id_with_the_reason() {
        let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
        let deep = format!(r#"{{"params":{{"x":{deep}}},"method":"tools/call","id":"a"}}"#);
        let cases = [
            (
                r#"{"id":1,"method":"tools/call","params":[]}"#,
                json!(1),
                -32602,
                "`params` must be an object",
            ),
            (r#"{"id":"x","method":"tools/list","params":7}"#, json!("x"), -32602, "`params` must"),
            (r#"{"id":2,"method":"tools/call","params":{"name":5}}"#, json!(2), -32602, "`name`: "),
            (
                r#"{"id":3,"method":"tools/call","params":{"name":"a","arguments":[]}}"#,
                json!(3),
                -32602,
                "`arguments`: ",
            ),
            (r#"{"id":4,"method":"tools/call"}"#, json!(4), -32602, "tools/call"),
            (
                r#"{"id":5,"method":"tasks/get","params":{"taskId":1}}"#,
                json!(5),
                -32602,
                "not as MCP has",
            ),
            (r#"{"id":6,"method":"dance","params":[]}"#, json!(6), -32601, "dance"),
            (r#"{"id":7}"#, json!(7), -32600, ""),
            (r#"{"id":1.5,"method":"ping"}"#, Value::Null, -32600, ""),
            (r#"{"id":null,"method":"ping"}"#, Value::Null, -32600, ""),
            ("[]", Value::Null, -32600, ""),
            ("{}", Value::Null, -32600, ""),
            (&deep, json!("a"), -32700, "nested"),
            (
                r#"{"id":8,"method":"tools/call","params":{"name":"a","arguments":{"q":"x\ud800"}}}"#,
                json!(8),
                -32700,
                "half of a surrogate pair",
            ),
            (
                r#"{"id":9,"method":"tools/call","params":{"name":"\ud83d\ud83d","arguments":{}}}"#,
                json!(9),
                -32700,
                "half of a surrogate pair",
            ),
            (
                r#"{"id":10,"method":"ping","params":{"q":"\udc00"}}"#,
                json!(10),
                -32700,
                "surrogate",
            ),
            (
                r#"{"id":11,"method":"ping","params":{"q":1e999}}"#,
                json!(11),
                -32700,
                "cannot be read",
            ),
        ];
        for (message, id, code, words) in cases {
            let short = &message[..message.len().min(100)];
            let (got_id, got_code, got_words) = told(message).expect(short);
            assert_eq!((got_id, got_code), (id, code), "{short}");
            assert!(got_words.contains(words), "{short}: {got_words}");
        }
    }

    #[test]
    fn text_that_is_not_json_is_answered_without_an_id() {
        for message in ["hello", "{\"id\":1,"] {
            let (id, code, _) = told(message).unwrap();
            assert_eq!((id, code), (Value::Null, -32700), "{message}");
        }
    }

    #[test]
    fn notifications_and_responses_are_not_answered() {
        for message in [
            r#"{"method":"tools/call","params":[]}"#,
            r#"{"id":1,"result":7}"#,
            r#"{"id":1,"error":7}"#,
        ] {
            assert_eq!(told(message), None, "{message}");
        }
    }
}
