//! The request of a job of a configured workflow: the form that the jobs interface writes into [`crate::NewJob::request`]
//! and a command or an upstream tool reads. The ask does not state which program or tool that is.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A request to a configured workflow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkflowRequest {
    /// Free text: a command's standard input, or one argument of a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The arguments of the workflow.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// The caller's own name for the session that the job belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The time limit of the whole run, as agreed when the job was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}
