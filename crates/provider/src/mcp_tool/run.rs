//! A call under way, as the engine sees it. Dropping the run closes its channel, which ends the drive: a plain call is
//! cancelled, a task that was recorded goes on at its server.

use async_trait::async_trait;
use outlast_core::{ProviderError, ProviderErrorKind, RemoteRun, Run, Step};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::drive::{Drive, ToolEvent, ToolWork};

/// Events that the engine has not taken yet; more progress than that is not worth keeping.
const MAX_UNTAKEN: usize = 64;

/// A call that is under way.
pub(super) struct ToolRun {
    remote: RemoteRun,
    upstream: String,
    events: mpsc::Receiver<ToolEvent>,
    /// The event that confirmed a resumed run, until it is passed on.
    first: Option<ToolEvent>,
    /// Notifies the drive that the task's id was recorded.
    recorded: Option<oneshot::Sender<()>>,
    /// Kept so that the task has an owner; it is never waited for.
    _task: JoinHandle<()>,
}

impl ToolRun {
    /// Begins to drive and returns at once.
    pub(super) fn start(remote: RemoteRun, drive: Drive, work: ToolWork) -> Self {
        let upstream = drive.upstream.name().to_owned();
        let (sender, events) = mpsc::channel(MAX_UNTAKEN);
        let task = tokio::spawn(drive.run(work, sender));
        Self { remote, upstream, events, first: None, recorded: None, _task: task }
    }

    /// Waits for the first event, which shows whether there is anything to follow.
    pub(super) async fn confirm(mut self) -> Result<Self, ProviderError> {
        match self.event().await {
            ToolEvent::Step(step) if step.is_err() => step.map(|_| self),
            event => {
                self.first = Some(event);
                Ok(self)
            }
        }
    }

    async fn event(&mut self) -> ToolEvent {
        if let Some(first) = self.first.take() {
            return first;
        }
        self.events.recv().await.unwrap_or_else(|| {
            let sentence = "the call was lost; the log of the server has the details";
            ToolEvent::Step(Err(ProviderError::new(ProviderErrorKind::Unreachable, sentence)))
        })
    }
}

#[async_trait]
impl Run for ToolRun {
    fn remote(&self) -> RemoteRun {
        self.remote.clone()
    }

    async fn next(&mut self) -> Result<Step, ProviderError> {
        if let Some(recorded) = self.recorded.take() {
            // The engine asks for the next step after it recorded the id. A drive that has ended reports that by its last event.
            let _ = recorded.send(());
        }
        match self.event().await {
            ToolEvent::Step(step) => step,
            ToolEvent::Became { task, recorded } => {
                self.remote.cursor = Some(cursor(&self.upstream, &task));
                self.recorded = Some(recorded);
                Ok(Step::Moved)
            }
        }
    }
}

/// For a task of this server.
fn cursor(upstream: &str, task: &str) -> String {
    format!("{upstream}/{task}")
}

/// The task, if it is this server's.
pub(super) fn task_of<'a>(cursor: &'a str, upstream: &str) -> Option<&'a str> {
    cursor.strip_prefix(upstream)?.strip_prefix('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_found_at_its_own_server_only() {
        let cursor = cursor("github", "a/b");
        assert_eq!(task_of(&cursor, "github"), Some("a/b"));
        assert_eq!(task_of(&cursor, "git"), None);
        assert_eq!(task_of(&cursor, "gitlab"), None);
    }
}
