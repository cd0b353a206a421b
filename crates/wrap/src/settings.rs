//! What a person may set: how long a call may take before it is handed off, for which tools, and what a cancel means.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The settings of one front; the keeper takes those of the front that it has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrapSettings {
    /// How long a call may take before it is handed off.
    pub after: Duration,
    /// What becomes of a client's cancel.
    pub on_cancel: OnCancel,
    /// Tools with a policy of their own.
    pub tools: BTreeMap<String, ToolPolicy>,
    /// The most bytes of a result that was handed off that one answer has.
    pub max_result: u64,
    /// How the server is called in the list of jobs.
    pub name: String,
}

/// What becomes of a client's cancel (H6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnCancel {
    /// A person's reaches the server, a client's timeout does not.
    Auto,
    /// The call goes on.
    Keep,
    /// It reaches the server.
    Forward,
}

/// When a tool's calls are handed off (H9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolPolicy {
    /// Not at all.
    Never,
    /// When they take longer than this.
    After(Duration),
    /// Before they have an answer.
    AtOnce,
}

impl Default for WrapSettings {
    fn default() -> Self {
        Self {
            after: Duration::from_secs(45),
            on_cancel: OnCancel::Auto,
            tools: BTreeMap::new(),
            max_result: 256 * 1024,
            name: "server".to_owned(),
        }
    }
}

impl WrapSettings {
    /// How long a call of this tool may take before it is handed off; `None` for as long as it takes.
    pub(crate) fn patience(&self, tool: &str) -> Option<Duration> {
        match self.tools.get(tool) {
            Some(ToolPolicy::Never) => None,
            Some(ToolPolicy::After(after)) => Some(*after),
            Some(ToolPolicy::AtOnce) => Some(Duration::ZERO),
            None => Some(self.after),
        }
    }
}

impl OnCancel {
    /// Whether a cancel with this reason reaches the server.
    pub(crate) fn forwards(self, reason: &str) -> bool {
        const TIMEOUTS: [&str; 4] = [
            "request timed out",
            "timed out after",
            "request timeout",
            "maximum total timeout exceeded",
        ];
        let reason = reason.to_lowercase();
        match self {
            Self::Forward => true,
            Self::Keep => false,
            Self::Auto => !TIMEOUTS.iter().any(|timeout| reason.contains(timeout)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h6_a_timeout_is_told_from_a_person() {
        let timeouts = [
            "McpError: MCP error -32001: Request timed out",
            "Timed out after 30.0 seconds",
            "request timeout",
            "Maximum total timeout exceeded",
        ];
        for reason in timeouts {
            assert!(!OnCancel::Auto.forwards(reason), "{reason}");
            assert!(OnCancel::Forward.forwards(reason));
        }
        for reason in ["", "The user pressed Esc", "AbortError: This operation was aborted"] {
            assert!(OnCancel::Auto.forwards(reason), "{reason}");
            assert!(!OnCancel::Keep.forwards(reason));
        }
    }
}
