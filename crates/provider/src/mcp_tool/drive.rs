//! Makes a call, or resumes the task that an earlier one has become, and follows it to its end. A task does not end
//! with its connection: when that breaks, the task is resumed over a new one.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outlast_client::{CallOptions, ClientError, StartedCall, ToolAnswer};
use outlast_core::{Body, Cost, Output, Progress, ProviderError, Step, Usage};
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::provider_error::call_error;
use super::upstream::{Upstream, UpstreamConnection};

/// The number of characters relayed of a message.
const MAX_MESSAGE_CHARS: usize = 200;

/// The work of a run.
pub(super) enum ToolWork {
    /// To call the tool.
    Call { tool: String, arguments: Map<String, Value>, trace: Option<String> },
    /// To resume a task.
    Task { id: String },
}

/// An event of a call.
pub(super) enum ToolEvent {
    /// The call has become a task. Until its id is recorded, the task is cancelled with its run.
    Became { task: String, recorded: oneshot::Sender<()> },
    /// Anything else.
    Step(Result<Step, ProviderError>),
}

/// One call, from its start to its end.
pub(super) struct Drive {
    pub(super) upstream: Arc<Upstream>,
    pub(super) connected: Arc<UpstreamConnection>,
    pub(super) patience: ToolLimits,
    /// The time since the call was made.
    pub(super) elapsed: Duration,
}

impl Drive {
    /// Runs until the call has ended or its run was dropped.
    pub(super) async fn run(self, work: ToolWork, events: mpsc::Sender<ToolEvent>) {
        let step = tokio::select! {
            step = self.finish(work, &events) => step,
            () = events.closed() => return,
        };
        if let Some(step) = step {
            // Fails only when the run was dropped.
            drop(events.send(ToolEvent::Step(step)).await);
        }
    }

    /// The end of the call; `None` when its run was dropped.
    async fn finish(
        mut self,
        work: ToolWork,
        events: &mpsc::Sender<ToolEvent>,
    ) -> Option<Result<Step, ProviderError>> {
        let began = Instant::now();
        let heard = Arc::new(Mutex::new(began));
        let options = |elapsed| forward_progress(self.patience.after(elapsed), events, &heard);
        let (id, mut answer) = match work {
            ToolWork::Task { id } => {
                let answer = follow(&self.connected, &id, options(self.elapsed)).await;
                (id, answer)
            }
            ToolWork::Call { tool, arguments, trace } => {
                let arguments = Value::Object(arguments);
                let client = &self.connected.client;
                let options = options(self.elapsed);
                let options = match trace {
                    Some(trace) => options.traceparent(trace),
                    None => options,
                };
                match client.start_tool(&tool, arguments, options).await {
                    Ok(StartedCall::Task(task)) => {
                        let id = task.id().to_owned();
                        let (sender, recorded) = oneshot::channel();
                        let became = ToolEvent::Became { task: id.clone(), recorded: sender };
                        // A task that is not recorded could not be found again: dropped here, it is cancelled.
                        events.send(became).await.ok()?;
                        recorded.await.ok()?;
                        (id, task.leave_running().finish().await)
                    }
                    Ok(StartedCall::Answered(answer)) => return Some(Ok(final_step(answer))),
                    Err(error) => {
                        self.drop_lost_connection(&error).await;
                        return Some(Err(call_error(&error)));
                    }
                }
            }
        };
        // Only a connection that broke; and an upstream that stays away as long as a tool may be silent is gone.
        while let Err(error @ ClientError::Gone { .. }) = &answer
            && silence(&heard) < self.patience.idle
        {
            self.drop_lost_connection(error).await;
            match self.upstream.connect().await {
                Ok(connected) => self.connected = connected,
                Err(error) if error.kind.is_permanent() => return Some(Err(error)),
                Err(_) => continue,
            }
            let options = forward_progress(
                self.patience.after(self.elapsed + began.elapsed()),
                events,
                &heard,
            );
            answer = follow(&self.connected, &id, options).await;
        }
        if let Err(error) = &answer {
            self.drop_lost_connection(error).await;
        }
        Some(answer.map(final_step).map_err(|error| call_error(&error)))
    }

    async fn drop_lost_connection(&self, error: &ClientError) {
        if let ClientError::Gone { .. } | ClientError::TooLong { .. } = error {
            self.upstream.drop_connection(&self.connected).await;
        }
    }
}

async fn follow(
    connected: &UpstreamConnection,
    id: &str,
    options: CallOptions,
) -> Result<ToolAnswer, ClientError> {
    connected.client.resume_task(id, options)?.leave_running().finish().await
}

/// Passes progress on, and remembers when there was some.
fn forward_progress(
    options: CallOptions,
    events: &mpsc::Sender<ToolEvent>,
    heard: &Arc<Mutex<Instant>>,
) -> CallOptions {
    let (told, heard) = (events.downgrade(), Arc::clone(heard));
    options.on_progress(move |progress| {
        *heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        if let Some(told) = told.upgrade() {
            // The engine keeps only the newest, so what does not fit may be lost.
            drop(told.try_send(ToolEvent::Step(Ok(Step::Progress(relay(progress))))));
        }
    })
}

fn silence(heard: &Mutex<Instant>) -> Duration {
    heard.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
}

/// The answer as it came, also one that its tool calls an error.
fn final_step(answer: ToolAnswer) -> Step {
    let ToolAnswer { content, structured, is_error, .. } = answer;
    let output = Output {
        body: Body::Tool { content, structured, is_error },
        model: None,
        usage: Usage::default(),
        cost: Cost::Unknown,
    };
    Step::Done { output: Box::new(output), raw: None }
}

fn relay(progress: &outlast_client::Progress) -> Progress {
    let message = progress.message.as_deref().unwrap_or_default();
    Progress {
        percent: progress.percent().map(|percent| percent as u8),
        message: message.chars().take(MAX_MESSAGE_CHARS).collect(),
    }
}

/// A task that is resumed after its time has run out gets this long for one look at it.
const LAST_LOOK: Duration = Duration::from_secs(20);

/// The limits of a tool.
#[derive(Clone, Copy, Debug)]
pub(super) struct ToolLimits {
    /// The time it may be silent.
    pub(super) idle: Duration,
    pub(super) reset_on_progress: bool,
    /// Its total time limit.
    pub(super) total: Option<Duration>,
}

impl ToolLimits {
    /// The limits that are left this long after the call was made.
    pub(super) fn after(self, elapsed: Duration) -> CallOptions {
        // The job owns the task: a limit of the workflow ends it.
        let mut options = CallOptions::default().timeout(self.idle).cancel_on_give_up();
        if self.reset_on_progress {
            options = options.reset_timeout_on_progress();
        }
        match self.total {
            Some(total) if elapsed.is_zero() => options.max_total_timeout(total),
            Some(total) => {
                options.max_total_timeout(total.saturating_sub(elapsed).max(LAST_LOOK.min(total)))
            }
            None => options,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d13_the_total_timeout_continues_from_the_call() {
        let seconds = Duration::from_secs;
        let patience =
            ToolLimits { idle: seconds(60), reset_on_progress: true, total: Some(seconds(100)) };
        for (elapsed, left) in [(0, 100), (30, 70), (95, 20), (1_000, 20)] {
            let expected = CallOptions::default().timeout(seconds(60)).cancel_on_give_up();
            let expected = expected.reset_timeout_on_progress().max_total_timeout(seconds(left));
            let got = patience.after(seconds(elapsed));
            assert_eq!(format!("{got:?}"), format!("{expected:?}"), "after {elapsed} s");
        }
    }
}
