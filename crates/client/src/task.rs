//! A call that was answered with a task: asked after until it ends. The patience of the call covers the whole of it.

use std::time::Duration;

use rmcp::model::{
    CallToolResult, CancelTaskParams, CancelTaskRequest, ClientRequest, GetTaskParams,
    GetTaskRequest, ServerResult, Task, TaskPayload, TaskStatus,
};
use rmcp::service::ServiceError;
use serde_json::Value;

use crate::call::{Ended, FAREWELL, Link, Vigil};
use crate::error::{ClientError, TimedOut};
use crate::progress::Progress;

/// How often to ask where the server does not say.
const POLL_EVERY: Duration = Duration::from_secs(1);
/// However often the server says, no more and no less often than this.
const POLL_BOUNDS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));
/// So many polls may fail in a row: a server that is started again must not cost an hour's work.
const FAILED_POLLS: u32 = 5;

impl Link {
    /// Follows a task to its end.
    pub(crate) async fn follow(
        &self,
        mut task: Task,
        vigil: &Vigil,
    ) -> Result<CallToolResult, ClientError> {
        let abandoned = Abandoned { link: self, id: Some(task.task_id.clone()) };
        let mut standing = Standing::default();
        let mut failures = 0;
        loop {
            standing.changed(&task, vigil);
            let pause = tokio::time::sleep(interval(&task));
            match vigil.wait(&self.board, pause).await {
                Ok(()) => {}
                Err(Ended::Broken) => return Err(self.broken()),
                Err(Ended::TimedOut(timed_out)) => {
                    let told = abandoned.cancel().await;
                    return Err(TimedOut { told, ..timed_out }.into());
                }
            }
            let get = GetTaskRequest::new(GetTaskParams::new(task.task_id.clone()));
            let detailed = match self.ask(ClientRequest::GetTaskRequest(get), vigil).await {
                Ok(ServerResult::GetTaskResult(got)) => got.task,
                Ok(_) => return Err(ClientError::Unexpected("not a task".to_owned())),
                Err(ClientError::TimedOut(timed_out)) => {
                    let told = abandoned.cancel().await;
                    return Err(TimedOut { told, ..timed_out }.into());
                }
                Err(ClientError::Gone { .. })
                    if failures < FAILED_POLLS && !self.peer.is_transport_closed() =>
                {
                    failures += 1;
                    continue;
                }
                Err(error) => return Err(error),
            };
            failures = 0;
            task = detailed.task;
            match detailed.payload {
                TaskPayload::Working => {}
                TaskPayload::Completed { result } => {
                    abandoned.ended();
                    return serde_json::from_value(Value::Object(result))
                        .map_err(|error| ClientError::Unexpected(error.to_string()));
                }
                TaskPayload::Failed { error } => {
                    abandoned.ended();
                    return Err(failed(&error));
                }
                TaskPayload::Cancelled => {
                    abandoned.ended();
                    return Err(ClientError::TaskCancelled { task: task.task_id });
                }
                _ => return Err(ClientError::NeedsInput),
            }
        }
    }
}

/// What a task last said of itself. Only a change is progress: some servers touch the date at every look.
#[derive(Default)]
struct Standing {
    said: Option<(TaskStatus, Option<String>)>,
    changes: u32,
}

impl Standing {
    fn changed(&mut self, task: &Task, vigil: &Vigil) {
        let says = Some((task.status, task.status_message.clone()));
        if self.said == says {
            return;
        }
        self.said = says;
        self.changes += 1;
        let message = task.status_message.clone().filter(|message| !message.is_empty());
        vigil.watch.status(match message.as_deref().and_then(percent) {
            Some((value, words)) => {
                let message = (!words.is_empty()).then(|| words.to_owned());
                Progress { value, total: Some(100.0), message }
            }
            None => Progress { value: f64::from(self.changes), total: None, message },
        });
    }
}

/// The number and the words in `40 %: Reading sources`.
fn percent(message: &str) -> Option<(f64, &str)> {
    let (number, words) = message.split_once('%')?;
    let number = number.trim().parse().ok().filter(|percent| (0.0..=100.0).contains(percent))?;
    Some((number, words.trim_start_matches([':', ' '])))
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

/// A task somebody waits for. Dropped before its end, it is cancelled.
struct Abandoned<'a> {
    link: &'a Link,
    id: Option<String>,
}

impl Abandoned<'_> {
    fn ended(mut self) {
        self.id = None;
    }

    /// Cancels it; whether the server could be told in time.
    async fn cancel(mut self) -> bool {
        let Some(id) = self.id.take() else { return true };
        matches!(tokio::time::timeout(FAREWELL, cancel(self.link.clone(), id)).await, Ok(Ok(_)))
    }
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let link = self.link.clone();
        self.link.later(async move {
            // Whoever has stopped listening need not hear it.
            drop(tokio::time::timeout(FAREWELL, cancel(link, id)).await);
        });
    }
}

async fn cancel(link: Link, id: String) -> Result<ServerResult, ServiceError> {
    let request = CancelTaskRequest::new(CancelTaskParams::new(id));
    link.peer.send_request(ClientRequest::CancelTaskRequest(request)).await
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
