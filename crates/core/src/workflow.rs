//! What a job of a configured workflow asks for: the shape the `jobs` face writes into [`crate::NewJob::ask`] and a
//! command or an upstream tool reads. Which program or tool that is, the ask cannot say.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A request to a configured workflow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkflowAsk {
    /// Free text: a command's standard input, or one argument of a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What the workflow is called with.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// The caller's own name for what the job belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// How long the whole run may take, as it was agreed when the job was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// The session an ask belongs to, whatever else it asks for.
pub fn session_of(ask: &Value) -> Option<&str> {
    ask.get("session_id")?.as_str()
}
