//! Tasks of revision 2025-11-25 (M3), over the same jobs as the extension of 2026-07-28. rmcp has no types for them, so the
//! messages concerned are renamed before rmcp reads them, and answered here as custom requests.
//!
//! A client that negotiated the revision marks a call with `task`, and gets the task at once; `tasks/result` waits for the answer
//! that the call would have got. Task ids are job ids: they survive restarts, and every interface finds them.

mod rename;
mod wire;

use std::time::Duration;

use outlast_core::{CancelOutcome, Cursor, JobId, JobQuery};
use outlast_engine::JobSnapshot;
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CustomNotification, CustomResult,
    ErrorCode, ProtocolVersion, ServerNotification,
};
use rmcp::service::{Peer, RequestContext, RoleServer};
use serde::Serialize;
use serde_json::{Value, json};

use crate::caller::{self, Access, Caller};
use crate::http::access_for_tool;
use crate::notified;
use crate::reply::Refusal;
use crate::server::Server;
use crate::tasks::{report_refusal, report_unknown};
use crate::wait::{self, IdOrigin, OnQuestion};
pub(crate) use rename::{is_initialize, original_method, rename};
use wire::{AsksUser, WireTask};
pub(crate) use wire::{TaskListing, add_capability};

const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
/// Text for the model of a client that goes on while the task runs.
const IMMEDIATE: &str = "io.modelcontextprotocol/model-immediate-response";
/// The number of tasks in one page of the list; each is read.
const PAGE: u32 = 50;
/// The minimum time between two notifications about one task.
const AT_LEAST_APART: Duration = Duration::from_secs(1);

impl Server {
    /// Answers a request that was renamed; `method` is its original name.
    pub(crate) async fn answer_renamed(
        &self,
        method: &str,
        params: Option<Value>,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let params = params.unwrap_or_default();
        // The list is renamed for every revision before the newest.
        if method == "tools/list" {
            return self.list_with_execution(context).await;
        }
        if context.protocol_version() != Some(ProtocolVersion::V_2025_11_25) {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method.to_owned(), None));
        }
        let id = || params["taskId"].as_str().unwrap_or_default().to_owned();
        match method {
            "tools/call" => self.call_as_task(params, &context).await,
            "tasks/get" => {
                let caller = self.caller(&context);
                let reading = self.face.task_job(&caller, &id()).await?;
                self.face.follow_up_read_task(&reading.job);
                to_result(&WireTask::new(&reading, &caller))
            }
            "tasks/result" => self.task_result(&id(), &context).await,
            "tasks/cancel" => self.cancel_old_task(&id(), &context).await,
            "tasks/list" if caller::is_identified(&context) => {
                self.list_tasks(params["cursor"].as_str(), &context).await
            }
            _ => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method.to_owned(), None)),
        }
    }

    /// Lists the tools; in this revision, each tool says if it can be called as a task.
    async fn list_with_execution(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let has_tasks = context.protocol_version() == Some(ProtocolVersion::V_2025_11_25);
        let listed = rmcp::ServerHandler::list_tools(self, None, context).await?;
        let mut listed = serde_json::to_value(listed).map_err(|_| internal())?;
        if let Some(tools) = listed["tools"].as_array_mut().filter(|_| has_tasks) {
            for tool in tools {
                if tool["name"].as_str().is_some_and(|name| self.offers_tasks(name)) {
                    tool["execution"] = json!({ "taskSupport": "optional" });
                }
            }
        }
        Ok(CustomResult::new(listed))
    }

    fn offers_tasks(&self, name: &str) -> bool {
        self.find_tool(name).is_some_and(|listed| listed.offers_tasks)
    }

    /// Serves `tools/call` with `task`. The requested `ttl` is not used: tasks are kept as long as their jobs.
    async fn call_as_task(
        &self,
        params: Value,
        context: &RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let request: CallToolRequestParams = serde_json::from_value(params)
            .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
        let CallToolRequestParams { name, arguments, .. } = request;
        caller::check_access(context, access_for_tool(&name))?;
        let Some(listed) = self.find_tool(&name) else {
            return Err(ErrorData::invalid_params("there is no such tool", None));
        };
        if !listed.offers_tasks {
            let sentence = "this tool cannot be called as a task; leave out `task`";
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, sentence, None));
        }
        let arguments = arguments.unwrap_or_default();
        let answer = self
            .serve_call(context, &name, |caller| {
                caller.takes_tasks = true;
                caller.needs_task = true;
                (listed.call)(caller, arguments)
            })
            .await?;
        let id = match answer {
            CallToolResponse::Task(created) => created.task.task_id,
            CallToolResponse::Complete(result) => return Err(refusal_of(&result)),
            _ => return Err(internal()),
        };
        let caller = self.caller(context);
        let reading = self.face.task_job(&caller, &id).await?;
        self.notify_of_changes(&caller, reading.job.id, context.peer.clone());
        let mut meta = json!({
            IMMEDIATE: format!("The work goes on as task {id}. Its result is there when the task has ended.")
        });
        if let Some(wait) = &self.face.wait {
            let command = notified::wait_meta(wait, &reading.job.id);
            if let (Some(meta), Ok(Value::Object(command))) =
                (meta.as_object_mut(), serde_json::to_value(command))
            {
                meta.extend(command);
            }
        }
        Ok(CustomResult::new(json!({ "task": WireTask::new(&reading, &caller), "_meta": meta })))
    }

    /// Serves `tasks/result`: waits for the end and returns the answer that the call would have got.
    async fn task_result(
        &self,
        id: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let _under_way = self.calls.token();
        let mut caller = self.caller(context);
        caller.is_of_task = true;
        let job = self.face.task_job(&caller, id).await?.job;
        self.face.follow_up_read_task(&job);
        let (engine, origin) = (&self.face.engine, IdOrigin::Any);
        let waited = tokio::select! {
            biased;
            () = context.ct.cancelled() => {
                return Err(ErrorData::internal_error("the call was cancelled", None));
            }
            waited = wait::for_job(engine, &mut caller, &job.id, None, origin, OnQuestion::AskUser) => waited,
        };
        let job =
            waited.map_err(|error| report_refusal(error.into()))?.ok_or_else(report_unknown)?.job;
        let Some(outcome) = self.face.outcome(&job) else {
            let sentence = "SERVICE_UNAVAILABLE: this server is stopping; ask for the result again";
            return Err(ErrorData::internal_error(sentence, None));
        };
        self.face.engine.record_answer_soon(&job.id);
        let mut result = serde_json::to_value(outcome).map_err(|_| internal())?;
        result["_meta"][RELATED_TASK] = json!({ "taskId": job.id.to_string() });
        Ok(CustomResult::new(result))
    }

    /// Serves `tasks/cancel`: an ended task is refused.
    async fn cancel_old_task(
        &self,
        id: &str,
        context: &RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        caller::check_access(context, Access::Run)?;
        let (caller, engine) = (self.caller(context), &self.face.engine);
        let id = self.face.task_job(&caller, id).await?.job.id;
        let cancelled = engine.cancel(&caller.scope(), &id).await;
        match cancelled.map_err(|error| report_refusal(error.into()))? {
            None => Err(report_unknown()),
            Some(CancelOutcome::Already(_)) => {
                let sentence = "the task has ended, so it cannot be cancelled";
                Err(ErrorData::invalid_params(sentence, None))
            }
            Some(CancelOutcome::Now(job)) => {
                let reading = JobSnapshot { job, now: engine.now(), waits: None };
                to_result(&WireTask::new(&reading, &caller))
            }
        }
    }

    /// Serves `tasks/list`: every job of the caller, newest first, because `tasks/get` finds all of them.
    async fn list_tasks(
        &self,
        cursor: Option<&str>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let after = match cursor.map(str::parse) {
            None => None,
            Some(Ok(number)) => Some(Cursor(number)),
            Some(Err(_)) => return Err(ErrorData::invalid_params("unknown cursor", None)),
        };
        let (caller, engine) = (self.caller(context), &self.face.engine);
        let query = JobQuery { limit: PAGE, after, ..JobQuery::default() };
        let page = engine.list(&caller.scope(), &query).await;
        let page = page.map_err(|error| report_refusal(error.into()))?;
        let mut tasks = Vec::new();
        for job in page.jobs {
            let reading = engine.read(&caller.scope(), &job.id).await;
            // A job that was removed in the meantime is left out.
            if let Some(reading) = reading.map_err(|error| report_refusal(error.into()))? {
                tasks.push(WireTask::new(&reading, &caller));
            }
        }
        let mut listed = json!({ "tasks": tasks });
        if let Some(Cursor(next)) = page.next {
            listed["nextCursor"] = json!(next.to_string());
        }
        Ok(CustomResult::new(listed))
    }

    /// Notifies the client of changes of its task, until the task ends or the client is gone. Clients must not rely on it.
    fn notify_of_changes(&self, caller: &Caller, id: JobId, peer: Peer<RoleServer>) {
        let (engine, scope) = (self.face.engine.clone(), caller.scope());
        let asks = AsksUser::of(caller);
        drop(outlast_engine::spawn(async move {
            let Ok(Some((mut reading, mut watch))) = engine.watch(&scope, &id).await else {
                return;
            };
            while !reading.job.state.kind().is_terminal() {
                reading = tokio::select! {
                    changed = watch.next_change() => match changed {
                        Ok(Some(changed)) => changed,
                        Ok(None) | Err(_) => return,
                    },
                    () = engine.begin_leaving() => return,
                };
                let Ok(status) = serde_json::to_value(WireTask::with(&reading, asks)) else {
                    return;
                };
                let status = CustomNotification::new("notifications/tasks/status", Some(status));
                let sent = peer.send_notification(ServerNotification::CustomNotification(status));
                if sent.await.is_err() {
                    return;
                }
                tokio::time::sleep(AT_LEAST_APART).await;
            }
        }));
    }
}

/// Returns the JSON-RPC error for a call that was refused before there was a job.
fn refusal_of(result: &CallToolResult) -> ErrorData {
    let text = result.content.iter().find_map(|block| block.as_text());
    let sentence = text.map_or_else(|| "the call was refused".to_owned(), |text| text.text.clone());
    ErrorData::invalid_params(sentence, None)
}

fn to_result(value: &impl Serialize) -> Result<CustomResult, ErrorData> {
    serde_json::to_value(value).map(CustomResult::new).map_err(|_| internal())
}

fn internal() -> ErrorData {
    report_refusal(Refusal::internal())
}
