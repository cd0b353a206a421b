//! `show_job`: the content of a job for a page inside the chat. Only such pages see the tool (`visibility: ["app"]`).

use std::sync::Arc;

use outlast_core::{ConversationId, Job, JobId, JobQuery, JobState, StateKind, StoreError};
use outlast_engine::{Engine, JobSnapshot};
use rmcp::model::{JsonObject, Tool};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::arguments;
use crate::caller::Caller;
use crate::export::{Turn, answer_html};
use crate::reply::{ToolResult, answer_with_text, without_nulls};
use crate::text::{printable, title, took};
use crate::tools::schema::{self, ListedTool};

pub(crate) const SHOW: &str = "show_job";

/// The number of unfinished jobs that are searched for the question of a held call.
const LOOKED_THROUGH: u32 = 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ShowArguments {
    /// The id of a job, or of a conversation, which selects its latest job.
    id: Option<String>,
    /// The question of a call that is not answered yet.
    query: Option<String>,
}

/// Returns the tool that a page calls.
pub(crate) fn tool(engine: &Engine) -> ListedTool {
    let input = schema::object(
        json!({
            "id": schema::describe("the id of a job or of a conversation"),
            "query": schema::describe("the question of a call that is not answered yet"),
        }),
        &[],
    );
    let output = json!({ "type": "object", "properties": { "found": { "type": "boolean" } }, "required": ["found"] });
    let about =
        "How far a job has come, for the page that shows it; models use the tools that poll.";
    let mut tool: Tool =
        schema::tool(SHOW, "Show a job", about.to_owned(), input, output, schema::reads());
    let visibility = json!({ "visibility": ["app"] });
    tool.meta.get_or_insert_default().insert("ui".to_owned(), visibility);
    let engine = Arc::new(engine.clone());
    schema::list_tool(&engine, tool, |engine, caller, given| Box::pin(show(engine, caller, given)))
}

async fn show(engine: &Engine, caller: &Caller, given: JsonObject) -> ToolResult {
    let ShowArguments { id, query } = arguments::read(given)?;
    let found = match (id, query) {
        (Some(id), _) => by_id(engine, caller, &id).await?,
        (None, Some(query)) => by_question(engine, caller, &query).await?,
        (None, None) => None,
    };
    let shape = match found {
        Some(reading) => without_nulls(view(&reading, caller.page.as_deref())),
        None => json!({ "found": false }),
    };
    let text = shape["message"].as_str().unwrap_or("There is no such job.").to_owned();
    Ok(answer_with_text(text, shape))
}

async fn by_id(
    engine: &Engine,
    caller: &Caller,
    id: &str,
) -> Result<Option<JobSnapshot>, StoreError> {
    let scope = caller.scope();
    if let Ok(job) = id.parse::<JobId>()
        && let Some(reading) = engine.read(&scope, &job).await?
    {
        return Ok(Some(reading));
    }
    match engine.conversation(&caller.owner, &ConversationId::new(id)).await? {
        Some(conversation) => engine.read(&scope, &conversation.last().id).await,
        None => Ok(None),
    }
}

/// Finds the newest unfinished job of this question: a held call has not returned an id yet.
async fn by_question(
    engine: &Engine,
    caller: &Caller,
    question: &str,
) -> Result<Option<JobSnapshot>, StoreError> {
    let query = JobQuery {
        states: StateKind::UNFINISHED.to_vec(),
        limit: LOOKED_THROUGH,
        ..JobQuery::default()
    };
    let title = title(question);
    let page = engine.list(&caller.scope(), &query).await?;
    match page.jobs.iter().find(|job| job.title == title) {
        Some(job) => engine.read(&caller.scope(), &job.id).await,
        None => Ok(None),
    }
}

/// Builds the content of the page. The renderer of the page and the export produces the report's HTML.
fn view(reading: &JobSnapshot, page: Option<&str>) -> Value {
    let job = &reading.job;
    let state = job.kind();
    let turn = Turn::of(job);
    let answer = turn.answer.as_ref();
    let message = match state {
        StateKind::Queued | StateKind::Running | StateKind::Waiting => {
            printable(&reading.read_standing().to_string())
        }
        StateKind::Succeeded => "Completed".to_owned(),
        StateKind::Failed => "Failed".to_owned(),
        StateKind::Cancelled => "Cancelled".to_owned(),
    };
    json!({
        "found": true,
        "jobId": job.id.to_string(),
        "conversationId": job.new.conversation,
        "title": printable(&turn.question),
        "status": state.as_str(),
        "done": state.is_terminal(),
        "percent": job.progress.as_ref().and_then(|progress| progress.percent),
        "message": message,
        "provider": job.new.profile.provider(),
        "model": answer.and_then(|answer| answer.model.as_deref()).map(printable),
        "cost": answer.map(|answer| &answer.price),
        "elapsed": took(job.elapsed(reading.now).as_secs()),
        "partial": job.partial.as_deref().map(printable),
        "error": failure(job),
        "report": answer.map(|answer| answer_html(answer, 1).into_string()),
        "markdown": answer.map(|answer| &answer.text),
        "page": page.map(|base| super::link::page_of_job(base, &job.id.to_string()))
    })
}

fn failure(job: &Job) -> Option<Value> {
    let JobState::Failed { .. } = job.state else { return None };
    let last = job.failures.last()?;
    Some(json!({ "code": last.code.as_str(), "message": printable(&last.message) }))
}
