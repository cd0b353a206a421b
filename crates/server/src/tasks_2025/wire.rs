//! The shapes of revision 2025-11-25: a task, and the capability in the answer to `initialize`.

use outlast_core::{JobState, rules};
use outlast_engine::JobSnapshot;
use serde::Serialize;
use serde_json::{Value, json};

use crate::caller::Caller;
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

/// The ability of a client to ask its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AsksUser {
    Yes,
    No,
}

impl AsksUser {
    pub(super) fn of(caller: &Caller) -> Self {
        if caller.channel.is_some() { Self::Yes } else { Self::No }
    }
}

impl WireTask {
    pub(super) fn new(reading: &JobSnapshot, caller: &Caller) -> Self {
        Self::with(reading, AsksUser::of(caller))
    }

    /// Only a client that can ask its user gets the status that input is required: it gets the question in `tasks/result`.
    pub(super) fn with(JobSnapshot { job, waits, .. }: &JobSnapshot, asks: AsksUser) -> Self {
        let status = match &job.state {
            _ if asks == AsksUser::Yes && job.open_question().is_some() => "input_required",
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
