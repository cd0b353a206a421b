//! The shapes of revision 2025-11-25: a task, and the capability in the answer to `initialize`.

use outlast_core::{JobState, rules};
use outlast_engine::Reading;
use serde::Serialize;
use serde_json::{Value, json};

use crate::tasks::{POLL_EVERY_MS, describe_standing};

/// A task as this revision has it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireTask {
    task_id: String,
    status: &'static str,
    status_message: String,
    created_at: String,
    last_updated_at: String,
    /// The time in milliseconds from the creation for which the task is kept; null while it runs, and if it is kept for ever.
    ttl: Option<u64>,
    poll_interval: u64,
}

impl WireTask {
    pub(super) fn new(Reading { job, waits, .. }: &Reading) -> Self {
        let status = match &job.state {
            JobState::Queued { .. } | JobState::Running { .. } => "working",
            JobState::Succeeded { .. } => "completed",
            JobState::Failed { .. } => "failed",
            JobState::Cancelled { .. } => "cancelled",
        };
        let has_ended = job.state.kind().is_terminal();
        let kept = rules::expires_at(job).filter(|_| has_ended);
        let ttl = kept.map(|end| end.since(job.created_at).as_millis());
        Self {
            task_id: job.id.to_string(),
            status,
            status_message: describe_standing(job, *waits),
            created_at: job.created_at.to_string(),
            last_updated_at: job.updated_at.to_string(),
            ttl: ttl.map(|millis| u64::try_from(millis).unwrap_or(u64::MAX)),
            poll_interval: POLL_EVERY_MS,
        }
    }
}

/// The offer of `tasks/list`, which only a server that can identify its callers makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskListing {
    Offered,
    Absent,
}

/// Adds the capability to the answer to `initialize`, if that negotiates this revision; returns true if it does.
pub(crate) fn add_capability(answer: &mut Value, listing: TaskListing) -> bool {
    let result = &mut answer["result"];
    if result["protocolVersion"] != "2025-11-25" || !result["capabilities"].is_object() {
        return false;
    }
    let mut tasks = json!({ "cancel": {}, "requests": { "tools": { "call": {} } } });
    if listing == TaskListing::Offered {
        tasks["list"] = json!({});
    }
    result["capabilities"]["tasks"] = tasks;
    true
}
