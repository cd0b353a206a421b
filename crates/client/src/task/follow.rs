//! Polling a task until it ends. The limits of the call hold for the whole.

use std::time::Duration;

use rmcp::model::{
    CallToolResult, ClientRequest, DetailedTask, GetTaskParams, GetTaskRequest, ServerResult, Task,
    TaskPayload, TaskStatus,
};
use serde_json::Value;

use super::{TaskGuard, unknown};
use crate::call::{CallTimer, Connection};
use crate::error::{ClientError, TimedOut};
use crate::progress::Progress;

/// How often to poll where the server does not say.
const POLL_EVERY: Duration = Duration::from_secs(1);
/// The server's own interval is kept within these bounds.
const POLL_BOUNDS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));
/// How many polls may fail in a row: a restart of the server must not cost an hour's work.
const MAX_FAILED_POLLS: u32 = 5;

impl Connection {
    /// Follows a task to its end. One of which nothing was seen yet is polled at once.
    pub(super) async fn follow(
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
                    let error = unknown(error, &guard.id);
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
                TaskPayload::Failed { error } => Err(failed(&error)),
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

/// What a task last said of itself. Only a change is progress: some servers touch the date at every poll.
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

/// The number and the text in `40 %: Reading sources`.
fn percent(message: &str) -> Option<(f64, &str)> {
    let (number, text) = message.split_once('%')?;
    let number = number.trim().parse().ok().filter(|percent| (0.0..=100.0).contains(percent))?;
    Some((number, text.trim_start_matches([':', ' '])))
}

fn interval(task: &Task) -> Duration {
    let asked = task.poll_interval_ms.map_or(POLL_EVERY, Duration::from_millis);
    asked.clamp(POLL_BOUNDS.0, POLL_BOUNDS.1)
}

fn failed(error: &serde_json::Map<String, Value>) -> ClientError {
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
    fn a_percentage_is_read_from_the_front_of_the_words() {
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
