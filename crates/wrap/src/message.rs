//! One JSON-RPC message as a line of bytes: reads the few relevant fields, and replaces one of them in place. No byte
//! outside the replaced field changes.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// The relevant fields of a message.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Message<'a> {
    #[serde(borrow, default)]
    pub(crate) id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(crate) params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) error: Option<&'a RawValue>,
}

/// The kind of a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MessageKind<'a> {
    Request {
        id: &'a str,
        method: &'a str,
    },
    Notification {
        method: &'a str,
    },
    Response {
        id: &'a str,
    },
    /// A message of no relevant kind.
    Other,
}

impl<'a> Message<'a> {
    /// Reads a line; `None` if it is not a JSON object of this shape. Such a line passes unchanged.
    pub(crate) fn read(line: &'a [u8]) -> Option<Self> {
        // serde would read a list as the fields of an object.
        let is_object = line.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
        is_object.then(|| serde_json::from_slice(line).ok()).flatten()
    }

    pub(crate) fn kind(&'a self) -> MessageKind<'a> {
        let id = self.id.map(RawValue::get).filter(|id| *id != "null");
        match (id, self.method.as_deref()) {
            (Some(id), Some(method)) => MessageKind::Request { id, method },
            (None, Some(method)) => MessageKind::Notification { method },
            (Some(id), None) if self.result.is_some() || self.error.is_some() => {
                MessageKind::Response { id }
            }
            (_, None) => MessageKind::Other,
        }
    }

    /// Reads the params as `T`.
    pub(crate) fn params<T: Deserialize<'a> + Default>(&self) -> T {
        read_or_default(self.params)
    }
}

/// Returns a message whose bytes are not all UTF-8 with U+FFFD in place of the invalid bytes, as the SDKs read it;
/// `None` for any other line.
pub(crate) fn repair_utf8(line: &[u8]) -> Option<Vec<u8>> {
    match String::from_utf8_lossy(line) {
        Cow::Owned(text) => Message::read(text.as_bytes()).is_some().then(|| text.into_bytes()),
        Cow::Borrowed(_) => None,
    }
}

/// Returns the name in a client's description of itself.
pub(crate) fn client_name(client: Option<&RawValue>) -> Option<String> {
    #[derive(Default, Deserialize)]
    struct Client {
        name: Option<String>,
    }
    read_or_default::<Client>(client).name
}

/// Reads a part of a message as `T`; a missing or unreadable part counts as empty.
pub(crate) fn read_or_default<'a, T: Deserialize<'a> + Default>(part: Option<&'a RawValue>) -> T {
    part.and_then(|part| serde_json::from_str(part.get()).ok()).unwrap_or_default()
}

/// The params of `tools/call`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct CallParams<'a> {
    #[serde(borrow, default)]
    pub(crate) name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) arguments: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) task: Option<&'a RawValue>,
    /// Answers to questions that the server asked in its result to the same call before.
    #[serde(borrow, default, rename = "inputResponses")]
    pub(crate) input_responses: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "requestState")]
    pub(crate) request_state: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "_meta")]
    pub(crate) meta: Option<&'a RawValue>,
}

/// The `_meta` of a request.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Meta<'a> {
    #[serde(borrow, default, rename = "progressToken")]
    pub(crate) progress_token: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "io.modelcontextprotocol/protocolVersion")]
    pub(crate) protocol_version: Option<Cow<'a, str>>,
    /// The client's description of itself.
    #[serde(borrow, default, rename = "io.modelcontextprotocol/clientInfo")]
    pub(crate) client: Option<&'a RawValue>,
    /// The request of the client to which a notification of the server belongs.
    #[serde(borrow, default, rename = "io.modelcontextprotocol/subscriptionId")]
    pub(crate) subscription: Option<&'a RawValue>,
}

/// The `_meta` of any message.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct MetaParams<'a> {
    #[serde(borrow, default, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

impl<'a> MetaParams<'a> {
    pub(crate) fn meta(&self) -> Meta<'a> {
        read_or_default(self.meta)
    }
}

impl<'a> CallParams<'a> {
    pub(crate) fn meta(&self) -> Meta<'a> {
        read_or_default(self.meta)
    }
}

/// The params of `notifications/cancelled`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct CancelParams<'a> {
    #[serde(borrow, default, rename = "requestId")]
    pub(crate) request: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(crate) reason: Option<Cow<'a, str>>,
}

/// The params of `notifications/progress`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ProgressParams<'a> {
    #[serde(borrow, default, rename = "progressToken")]
    pub(crate) token: Option<&'a RawValue>,
    #[serde(default)]
    pub(crate) progress: Option<f64>,
    #[serde(default)]
    pub(crate) total: Option<f64>,
    #[serde(borrow, default)]
    pub(crate) message: Option<Cow<'a, str>>,
}

/// The result of `tools/list`.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ToolsPage<'a> {
    #[serde(borrow, default)]
    pub(crate) tools: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "nextCursor")]
    pub(crate) next: Option<&'a RawValue>,
}

impl ToolsPage<'_> {
    pub(crate) fn is_last(&self) -> bool {
        self.next.is_none_or(|next| next.get() == "null")
    }
}

/// Returns the line with some of its parts replaced. Each part is a slice of the line itself; parts do not overlap.
pub(crate) fn replace_parts(line: &[u8], parts: &mut [(&str, String)]) -> Vec<u8> {
    let start = line.as_ptr() as usize;
    let offset = |part: &str| (part.as_ptr() as usize).wrapping_sub(start);
    parts.sort_by_key(|(part, _)| offset(part));
    let mut made = Vec::with_capacity(line.len() + 64);
    let mut done = 0;
    for (part, by) in parts {
        let (from, to) = (offset(part), offset(part).wrapping_add(part.len()));
        let Some(before) = line.get(done..from) else { return line.to_vec() };
        made.extend_from_slice(before);
        made.extend_from_slice(by.as_bytes());
        done = to;
    }
    made.extend_from_slice(line.get(done..).unwrap_or_default());
    made
}

/// Returns an id in a form independent of its notation: one side may escape characters that the other does not.
pub(crate) fn id_key(id: &str) -> String {
    let read = id.contains('\\').then(|| serde_json::from_str::<String>(id));
    match read {
        Some(Ok(text)) => serde_json::Value::String(text).to_string(),
        Some(Err(_)) | None => id.to_owned(),
    }
}

/// Returns our own response line to this request.
pub(crate) fn response(id: &str, key: &str, value: &str) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"{key}\":{value}}}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// H3: only the id and the token change, whatever else the line contains.
    #[test]
    fn h3_only_the_replaced_parts_of_a_line_change() {
        let line = r#" {"jsonrpc" : "2.0","x":1.0e3,"params":{"_meta":{"z":9007199254740993,"progressToken":"a"},"name":"n","arguments":{"b":1,"a":"\u00e9"}},"id":  7 ,"method":"tools/call"}  "#;
        let message = Message::read(line.as_bytes()).unwrap();
        let params: CallParams<'_> = message.params();
        let token = params.meta().progress_token.unwrap().get();
        let id = message.id.unwrap().get();
        let mut parts = [(id, "\"o\"".to_owned()), (token, "5".to_owned())];
        let made = String::from_utf8(replace_parts(line.as_bytes(), &mut parts)).unwrap();
        let expected = line.replace("7 ,", "\"o\" ,").replace("Token\":\"a\"", "Token\":5");
        assert_eq!(made, expected);
    }

    #[test]
    fn h3_a_message_that_is_not_utf8_is_repaired_and_other_lines_are_not() {
        let repaired = |line: &[u8]| repair_utf8(line).map(|line| String::from_utf8(line).unwrap());
        let expected = "{\"id\":1,\"result\":\"a\u{fffd}b\"}";
        assert_eq!(repaired(b"{\"id\":1,\"result\":\"a\xffb\"}").as_deref(), Some(expected));
        for line in [&b"garbage \xff"[..], b"{\"id\":1,\"result\":\"ab\"}", b"{\xff}", b""] {
            assert_eq!(repaired(line), None);
        }
    }

    #[test]
    fn what_is_no_message_is_not_looked_into() {
        for line in ["garbage", "[1]", "{\"id\":1,\"id\":2}", "", "{\"method\":5}"] {
            assert!(Message::read(line.as_bytes()).is_none(), "{line}");
        }
        let null = br#"{"id":null,"error":{}}"#;
        assert_eq!(Message::read(null).unwrap().kind(), MessageKind::Other);
    }
}
