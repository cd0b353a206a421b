//! The caller's jobs, newest first, so that a model that lost an id finds it.

use outlast_core::{Cursor, JobQuery, StateKind, Summary};
use rmcp::model::CallToolResult;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Jobs;
use super::answer::{ProgressShape, status};
use crate::arguments;
use crate::caller::Caller;
use crate::reply::{Refusal, structured};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListArguments {
    #[serde(default)]
    status: Option<Status>,
    #[serde(default = "twenty")]
    limit: i64,
    #[serde(default)]
    cursor: Option<String>,
}

fn twenty() -> i64 {
    20
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Queued,
    Running,
    Completed,
    Failed,
    Cancelled,
}

#[derive(Debug, Serialize)]
struct List {
    jobs: Vec<Listed>,
    next_cursor: Option<String>,
}

#[derive(Debug, Serialize)]
struct Listed {
    job_id: String,
    workflow: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    status: &'static str,
    created_at: String,
    updated_at: String,
    progress: ProgressShape,
}

impl Jobs {
    pub(super) async fn list(
        &self,
        caller: &Caller,
        arguments: Option<Map<String, Value>>,
    ) -> Result<CallToolResult, Refusal> {
        let arguments: ListArguments = arguments::read(arguments)?;
        let limit = u32::try_from(arguments.limit).ok().filter(|limit| (1..=100).contains(limit));
        let limit = limit.ok_or_else(|| {
            Refusal::validation(format!("limit must be 1 to 100, not {}", arguments.limit))
        })?;
        let after = arguments.cursor.as_deref().map(cursor).transpose()?;
        let states = arguments.status.map(Status::states).unwrap_or_default();
        let mut query = JobQuery { states: states.to_vec(), limit, after, ..JobQuery::default() };
        let mut jobs = Vec::new();
        // A job that waits for another try counts as running here, so a page of one may hold some of the other.
        loop {
            let page = self.engine.list(&caller.scope(), &query).await?;
            let listed = page.jobs.into_iter().map(Listed::from);
            jobs.extend(listed.filter(|job| arguments.status.is_none_or(|it| it.is(job.status))));
            query.after = page.next;
            if query.after.is_none() || !jobs.is_empty() {
                break;
            }
        }
        let next_cursor = query.after.map(|Cursor(at)| at.to_string());
        structured(&List { jobs, next_cursor })
    }
}

impl Status {
    fn states(self) -> &'static [StateKind] {
        match self {
            Self::Queued => &[StateKind::Queued],
            Self::Running => &[StateKind::Queued, StateKind::Running],
            Self::Completed => &[StateKind::Succeeded],
            Self::Failed => &[StateKind::Failed],
            Self::Cancelled => &[StateKind::Cancelled],
        }
    }

    fn is(self, word: &str) -> bool {
        let own = match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        };
        own == word
    }
}

impl From<Summary> for Listed {
    fn from(summary: Summary) -> Self {
        let status = status(summary.state, summary.was_claimed);
        let said = summary.progress.as_ref();
        Self {
            job_id: summary.id.to_string(),
            workflow: summary.workflow,
            session_id: summary.session,
            status,
            created_at: summary.created_at.to_string(),
            updated_at: summary.updated_at.to_string(),
            progress: ProgressShape::listed(
                status,
                said.and_then(|said| said.percent),
                said.map(|said| said.message.as_str()),
            ),
        }
    }
}

fn cursor(text: &str) -> Result<Cursor, Refusal> {
    let at = text.parse().map_err(|_| {
        Refusal::validation("cursor must be the next_cursor of an earlier answer, or left out")
    });
    Ok(Cursor(at?))
}
