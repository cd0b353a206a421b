//! The access that an MCP message needs. Reading and running differ here; a tool that is not known to read needs more.

use serde::Deserialize;

use crate::app;
use crate::caller::Access;
use crate::tool_names;

#[derive(Deserialize)]
struct Message {
    method: Option<String>,
    params: Option<Params>,
}

#[derive(Deserialize)]
struct Params {
    name: Option<serde_json::Value>,
}

/// Returns the access that a message needs. A message that cannot be read needs none: it is refused, or the handler decides.
pub(super) fn needed_access(message: &[u8]) -> Access {
    let Ok(Message { method: Some(method), params }) = serde_json::from_slice(message) else {
        return Access::Read;
    };
    match &*method {
        "tools/call" => {
            let name = params.and_then(|params| params.name);
            let name = name.as_ref().and_then(serde_json::Value::as_str);
            access_for_tool(name.unwrap_or_default())
        }
        "tasks/cancel" | "tasks/update" => Access::Run,
        _ => Access::Read,
    }
}

/// Returns the access that a tool needs.
pub(crate) fn access_for_tool(name: &str) -> Access {
    match tool_names::only_reads(name) || name == app::SHOW {
        true => Access::Read,
        false => Access::Run,
    }
}
