//! A call that became a task at the server. The task has an id, outlives the connection, and can be resumed
//! over another connection, even by another process.

use std::time::Duration;

use futures_util::future::BoxFuture;
use rmcp::model::{
    CallToolResult, CancelTaskParams, CancelTaskRequest, ClientRequest, DetailedTask,
    GetTaskParams, GetTaskRequest, ServerResult, Task, TaskPayload, TaskStatus,
};
use serde_json::{Map, Value};

use crate::answer::ToolAnswer;
use crate::call::{CallTimer, Connection};
use crate::child::{self, Child};
use crate::error::{ClientError, GivenUpTask, TaskFate, TimedOut};
use crate::options::CANCEL_GRACE;
use crate::progress::Progress;

/// The poll interval if the server does not specify one.
const POLL_EVERY: Duration = Duration::from_secs(1);
/// The bounds of the server's own interval.
const POLL_BOUNDS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));
/// The number of polls that may fail in a row: a restart of the server must not cost an hour's work.
const MAX_FAILED_POLLS: u32 = 5;

/// The result of starting a call: see [`Client::start_tool`](crate::Client::start_tool).
pub enum StartedCall<'a> {
    /// The server answered.
    Answered(ToolAnswer),
    /// The call became a task.
    Task(TaskCall<'a>),
}

impl StartedCall<'_> {
    /// Waits for the answer if it is not there yet.
    pub async fn finish(self) -> Result<ToolAnswer, ClientError> {
        match self {
            Self::Answered(answer) => Ok(answer),
            Self::Task(task) => task.finish().await,
        }
    }
}

/// A task at the server and the limits of its caller. If dropped before its end, the task keeps running unless
/// the caller asked to [cancel it on giving up](crate::CallOptions::cancel_on_give_up).
pub struct TaskCall<'a> {
    connection: &'a Connection,
    child: Option<&'a Child>,
    timer: CallTimer,
    guard: TaskGuard<'a>,
    /// The last status of the task.
    seen: Option<Task>,
}

impl<'a> TaskCall<'a> {
    pub(crate) fn new(
        connection: &'a Connection,
        child: Option<&'a Child>,
        timer: CallTimer,
        id: String,
        seen: Option<Task>,
    ) -> Self {
        let cancels = timer.options.cancel_on_give_up;
        let guard =
            TaskGuard { connection, id, cancels_at_limit: cancels, cancels_on_drop: cancels };
        Self { connection, child, timer, guard, seen }
    }

    /// The task's id at the server, for [`Client::resume_task`](crate::Client::resume_task).
    pub fn id(&self) -> &str {
        &self.guard.id
    }

    /// Leaves the task running at the server when this value is dropped; a limit still cancels it if the caller
    /// asked for that. Use it once the id is recorded, so that the task can be resumed.
    pub fn leave_running(mut self) -> Self {
        self.guard.cancels_on_drop = false;
        self
    }

    /// Polls the task at the server's interval until it has ended.
    pub fn finish(self) -> BoxFuture<'a, Result<ToolAnswer, ClientError>> {
        Box::pin(async move {
            let Self { connection, child, timer, guard, seen } = self;
            match connection.follow(&timer, guard, seen).await {
                Ok(result) => Ok(ToolAnswer::from(result)),
                Err(error) => Err(child::add_child_details(child, error).await),
            }
        })
    }

    /// Asks the server to cancel the task and waits for the confirmation.
    pub async fn cancel(self) -> Result<(), ClientError> {
        let Self { connection, child, timer, mut guard, .. } = self;
        guard.cancels_on_drop = false;
        match connection.ask(cancel_request(&guard.id), &timer).await {
            Ok(_) => Ok(()),
            Err(error) => {
                Err(child::add_child_details(child, explain_unknown_task(error, &guard.id)).await)
            }
        }
    }
}

/// Cancels a task that its caller gives up, if the caller asked for that.
struct TaskGuard<'a> {
    connection: &'a Connection,
    id: String,
    /// True if the task is cancelled at a limit, or when it needs input that this client cannot give.
    cancels_at_limit: bool,
    cancels_on_drop: bool,
}

impl TaskGuard<'_> {
    fn task_ended(mut self) {
        self.cancels_on_drop = false;
    }

    fn needs_input(mut self) {
        self.cancels_on_drop = self.cancels_at_limit;
    }

    /// Handles a limit: cancels the task if the caller asked for that.
    async fn give_up(mut self) -> GivenUpTask {
        self.cancels_on_drop = false;
        let id = self.id.clone();
        if !self.cancels_at_limit {
            return GivenUpTask { id, fate: TaskFate::GoesOn };
        }
        let cancelling = self.connection.peer.send_request(cancel_request(&id));
        let fate = match tokio::time::timeout(CANCEL_GRACE, cancelling).await {
            Ok(Ok(_)) => TaskFate::Cancelled,
            Ok(Err(_)) | Err(_) => TaskFate::CancelUnconfirmed,
        };
        GivenUpTask { id, fate }
    }
}

impl Drop for TaskGuard<'_> {
    fn drop(&mut self) {
        if self.cancels_on_drop {
            let (peer, request) = (self.connection.peer.clone(), cancel_request(&self.id));
            self.connection.cancel_later(async move { peer.send_request(request).await });
        }
    }
}

fn cancel_request(id: &str) -> ClientRequest {
    ClientRequest::CancelTaskRequest(CancelTaskRequest::new(CancelTaskParams::new(id.to_owned())))
}

/// Converts the error of a server that refuses a task's id, or no longer supports tasks, into "unknown task".
fn explain_unknown_task(error: ClientError, id: &str) -> ClientError {
    const METHOD_NOT_FOUND: i32 = -32_601;
    const INVALID_PARAMS: i32 = -32_602;
    match error {
        ClientError::Refused { code: METHOD_NOT_FOUND | INVALID_PARAMS, message } => {
            ClientError::TaskUnknown { task: id.to_owned(), message }
        }
        other => other,
    }
}

impl Connection {
    /// Follows a task to its end. A task without a known status is polled immediately.
    async fn follow(
        &self,
        timer: &CallTimer,
        guard: TaskGuard<'_>,
        seen: Option<Task>,
    ) -> Result<CallToolResult, ClientError> {
        let mut status = SeenStatus::default();
        let mut failures = 0;
        let mut pause = Duration::ZERO;
        if let Some(task) = &seen {
            status.update(task, timer);
            pause = interval(task);
        }
        loop {
            let detailed = match self.poll_task(timer, &guard.id, pause).await {
                Ok(detailed) => detailed,
                Err(ClientError::TimedOut(timed_out)) => {
                    let task = Some(guard.give_up().await);
                    return Err(TimedOut { task, ..timed_out }.into());
                }
                Err(ClientError::Gone { .. })
                    if failures < MAX_FAILED_POLLS && !self.peer.is_transport_closed() =>
                {
                    failures += 1;
                    pause = pause.max(POLL_BOUNDS.0);
                    continue;
                }
                Err(error) => {
                    let error = explain_unknown_task(error, &guard.id);
                    if let ClientError::TaskUnknown { .. } = error {
                        guard.task_ended();
                    }
                    return Err(error);
                }
            };
            failures = 0;
            timer.call.task_answered();
            let end = match detailed.payload {
                TaskPayload::Working => {
                    status.update(&detailed.task, timer);
                    pause = interval(&detailed.task);
                    continue;
                }
                TaskPayload::Completed { result } => serde_json::from_value(Value::Object(result))
                    .map_err(|error| ClientError::Unexpected(error.to_string())),
                TaskPayload::Failed { error } => Err(task_failure(&error)),
                TaskPayload::Cancelled => {
                    Err(ClientError::TaskCancelled { task: guard.id.clone() })
                }
                _ => {
                    guard.needs_input();
                    return Err(ClientError::NeedsInput);
                }
            };
            guard.task_ended();
            return end;
        }
    }

    async fn poll_task(
        &self,
        timer: &CallTimer,
        id: &str,
        pause: Duration,
    ) -> Result<DetailedTask, ClientError> {
        self.wait(timer, tokio::time::sleep(pause)).await?;
        let get = GetTaskRequest::new(GetTaskParams::new(id.to_owned()));
        match self.ask(ClientRequest::GetTaskRequest(get), timer).await? {
            ServerResult::GetTaskResult(got) => Ok(got.task),
            _ => Err(ClientError::Unexpected("not a task".to_owned())),
        }
    }
}

/// The last status of a task. Only a change is progress, because some servers update the date at every poll.
#[derive(Default)]
struct SeenStatus {
    last: Option<(TaskStatus, Option<String>)>,
    changes: u32,
}

impl SeenStatus {
    fn update(&mut self, task: &Task, timer: &CallTimer) {
        let status = Some((task.status, task.status_message.clone()));
        if self.last == status {
            return;
        }
        self.last = status;
        self.changes += 1;
        let message = task.status_message.clone().filter(|message| !message.is_empty());
        timer.call.task_status(match message.as_deref().and_then(percent) {
            Some((value, text)) => {
                let message = (!text.is_empty()).then(|| text.to_owned());
                Progress { value, total: Some(100.0), message, meta: None }
            }
            None => Progress { value: f64::from(self.changes), total: None, message, meta: None },
        });
    }
}

/// Splits `40 %: Reading sources` into the number and the text.
fn percent(message: &str) -> Option<(f64, &str)> {
    let (number, text) = message.split_once('%')?;
    let number = number.trim().parse().ok().filter(|percent| (0.0..=100.0).contains(percent))?;
    Some((number, text.trim_start_matches([':', ' '])))
}

fn interval(task: &Task) -> Duration {
    let asked = task.poll_interval_ms.map_or(POLL_EVERY, Duration::from_millis);
    asked.clamp(POLL_BOUNDS.0, POLL_BOUNDS.1)
}

fn task_failure(error: &Map<String, Value>) -> ClientError {
    let code = error.get("code").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok());
    let message = error.get("message").and_then(Value::as_str);
    ClientError::Refused {
        code: code.unwrap_or_default(),
        message: message.unwrap_or("the task failed").to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d13_the_servers_interval_is_honoured_within_bounds() {
        let task = |millis: Option<u64>| {
            let mut task = Task::new("t", TaskStatus::Working, "", "");
            task.poll_interval_ms = millis;
            task
        };
        let cases = [(None, 1_000), (Some(0), 100), (Some(2_000), 2_000), (Some(u64::MAX), 60_000)];
        for (asked, expected) in cases {
            assert_eq!(interval(&task(asked)), Duration::from_millis(expected), "{asked:?}");
        }
    }

    #[test]
    fn a_percentage_is_read_from_the_start_of_the_message() {
        let cases = [
            ("40 %: Reading sources", Some((40.0, "Reading sources"))),
            ("7%", Some((7.0, ""))),
            ("Reading 40 % of it", None),
            ("140 %", None),
            ("Running", None),
        ];
        for (words, expected) in cases {
            assert_eq!(percent(words), expected, "{words}");
        }
    }
}
