//! Asking after a task until it ends. The patience of the call covers the whole of it.

use std::time::Duration;

use rmcp::model::{
    CallToolResult, ClientRequest, GetTaskParams, GetTaskRequest, ServerResult, Task, TaskPayload,
    TaskStatus,
};
use serde_json::Value;

use super::{Abandoned, unknown};
use crate::call::{CallTimer, Ended, Link};
use crate::error::{ClientError, TimedOut};
use crate::progress::Progress;

/// How often to ask where the server does not say.
const POLL_EVERY: Duration = Duration::from_secs(1);
/// However often the server says, no more and no less often than this.
const POLL_BOUNDS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(60));
/// So many polls may fail in a row: a server that is started again must not cost an hour's work.
const FAILED_POLLS: u32 = 5;

impl Link {
    /// Follows a task to its end. One of which nothing was seen yet is looked at first.
    pub(super) async fn follow(
        &self,
        vigil: &CallTimer,
        abandoned: Abandoned,
        seen: Option<Task>,
    ) -> Result<CallToolResult, ClientError> {
        let mut standing = Standing::default();
        let mut failures = 0;
        let mut pause = Duration::ZERO;
        if let Some(task) = &seen {
            standing.changed(task, vigil);
            pause = interval(task);
        }
        loop {
            match vigil.wait(&self.board, tokio::time::sleep(pause)).await {
                Ok(()) => {}
                Err(Ended::Broken) => return Err(self.broken()),
                Err(Ended::TimedOut(timed_out)) => {
                    let task = Some(abandoned.give_up().await);
                    return Err(TimedOut { task, ..timed_out }.into());
                }
            }
            let get = GetTaskRequest::new(GetTaskParams::new(abandoned.id.clone()));
            let detailed = match self.ask(ClientRequest::GetTaskRequest(get), vigil).await {
                Ok(ServerResult::GetTaskResult(got)) => got.task,
                Ok(_) => return Err(ClientError::Unexpected("not a task".to_owned())),
                Err(ClientError::TimedOut(timed_out)) => {
                    let task = Some(abandoned.give_up().await);
                    return Err(TimedOut { task, ..timed_out }.into());
                }
                Err(ClientError::Gone { .. })
                    if failures < FAILED_POLLS && !self.peer.is_transport_closed() =>
                {
                    failures += 1;
                    pause = pause.max(POLL_BOUNDS.0);
                    continue;
                }
                Err(error) => {
                    let error = unknown(error, &abandoned.id);
                    if let ClientError::TaskUnknown { .. } = error {
                        abandoned.ended();
                    }
                    return Err(error);
                }
            };
            failures = 0;
            vigil.watch.answered_about();
            match detailed.payload {
                TaskPayload::Working => {
                    standing.changed(&detailed.task, vigil);
                    pause = interval(&detailed.task);
                }
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
                    let task = abandoned.id.clone();
                    abandoned.ended();
                    return Err(ClientError::TaskCancelled { task });
                }
                _ => {
                    abandoned.stuck();
                    return Err(ClientError::NeedsInput);
                }
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
    fn changed(&mut self, task: &Task, vigil: &CallTimer) {
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
                Progress { value, total: Some(100.0), message, meta: None }
            }
            None => Progress { value: f64::from(self.changes), total: None, message, meta: None },
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
