//! The settings that a person may choose: the time before a call is handed off, for which tools, and the meaning of a
//! cancel.

use std::collections::BTreeMap;
use std::time::Duration;

use outlast_core::WaitCommand;
use serde::{Deserialize, Serialize};

/// The settings of one front. The host process uses those of its current front.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrapSettings {
    /// The time that a call may take before it is handed off.
    pub after: Duration,
    /// The effect of a client's cancel.
    pub on_cancel: OnCancel,
    /// Tools with their own policy.
    pub tools: BTreeMap<String, ToolPolicy>,
    /// The maximum number of bytes of a handed-off result in one answer.
    pub max_result: u64,
    /// The name of the server in the list of jobs.
    pub name: String,
    /// The command that waits for a job (L1).
    #[serde(default)]
    pub wait: Option<WaitCommand>,
}

/// The effect of a client's cancel (H6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnCancel {
    /// A person's cancel reaches the server; a client's timeout does not.
    Auto,
    /// The call continues.
    Keep,
    /// The cancel reaches the server.
    Forward,
}

/// The policy by which a tool's calls are handed off (H9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolPolicy {
    /// Calls are never handed off.
    Never,
    /// Calls are handed off when they take longer than this.
    After(Duration),
    /// Calls are handed off before they have an answer.
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
            wait: None,
        }
    }
}

impl WrapSettings {
    /// Returns the time that a call of this tool may take before it is handed off; `None` for unlimited time.
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
    /// Returns true if a cancel with this reason reaches the server.
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
    fn h6_a_timeout_is_distinguished_from_a_person() {
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
