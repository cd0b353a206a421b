//! Lists the caller's jobs, newest first, so that a model can find a lost id.

use outlast_core::{Cursor, JobQuery, StateKind, Summary};
use rmcp::model::JsonObject;
use serde::Serialize;

use super::Jobs;
use super::answer::{JobProgress, JobStatus};
use crate::arguments::{self, ListArguments};
use crate::caller::Caller;
use crate::reply::{ToolResult, answer_json};

#[derive(Debug, Serialize)]
struct JobList {
    jobs: Vec<ListedJob>,
    next_cursor: Option<String>,
}

#[derive(Debug, Serialize)]
struct ListedJob {
    job_id: String,
    workflow: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    status: JobStatus,
    created_at: String,
    updated_at: String,
    progress: JobProgress,
}

impl Jobs {
    pub(super) async fn list(&self, caller: &Caller, given: JsonObject) -> ToolResult {
        let arguments: ListArguments<JobStatus> = arguments::read(given)?;
        let (limit, after) = arguments.page("next_cursor")?;
        let mut query = JobQuery {
            states: arguments.status.map(states).unwrap_or_default().to_vec(),
            limit,
            after,
            ..JobQuery::default()
        };
        let mut jobs = Vec::new();
        // A job that waits for another attempt counts as running here, so a page that is read for one status may contain
        // jobs of the other.
        loop {
            let page = self.engine.list(&caller.scope(), &query).await?;
            let listed = page.jobs.into_iter().map(ListedJob::from);
            jobs.extend(listed.filter(|job| arguments.status.is_none_or(|it| it == job.status)));
            query.after = page.next;
            if query.after.is_none() || !jobs.is_empty() {
                break;
            }
        }
        let next_cursor = query.after.map(|Cursor(at)| at.to_string());
        answer_json(&JobList { jobs, next_cursor })
    }
}

/// Returns the states that jobs of this status may have.
fn states(status: JobStatus) -> &'static [StateKind] {
    match status {
        JobStatus::Queued => &[StateKind::Queued],
        JobStatus::Running => &StateKind::UNFINISHED,
        JobStatus::Completed => &[StateKind::Succeeded],
        JobStatus::Failed => &[StateKind::Failed],
        JobStatus::Cancelled => &[StateKind::Cancelled],
        JobStatus::Expired => &[],
    }
}

impl From<Summary> for ListedJob {
    fn from(summary: Summary) -> Self {
        let status = JobStatus::of(summary.state, summary.was_claimed);
        Self {
            job_id: summary.id.to_string(),
            workflow: summary.workflow,
            session_id: summary.session,
            status,
            created_at: summary.created_at.to_string(),
            updated_at: summary.updated_at.to_string(),
            progress: JobProgress::of(status, summary.progress.as_ref()),
        }
    }
}
