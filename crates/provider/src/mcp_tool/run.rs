//! A call under way, as the engine sees it. Dropping the run closes its channel, and whoever drives the call lets go of
//! it: a plain call is taken back, a task that was written down goes on without us.

use async_trait::async_trait;
use outlast_core::{ProviderError, RemoteRun, Run, Step, Trouble};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::cursor;
use super::drive::{Drive, Event, Work};

/// Events that nobody has taken yet; more progress than that is not worth keeping.
const UNTAKEN: usize = 64;

/// A call that is under way.
pub(super) struct ToolRun {
    remote: RemoteRun,
    upstream: String,
    events: mpsc::Receiver<Event>,
    /// Heard while the run was taken up, and not passed on yet.
    first: Option<Event>,
    /// Who waits for the task's name to be written down.
    recorded: Option<oneshot::Sender<()>>,
    /// Kept so that the task has an owner; it is never waited for.
    _task: JoinHandle<()>,
}

impl ToolRun {
    /// Begins to drive and returns at once.
    pub(super) fn start(remote: RemoteRun, drive: Drive, work: Work) -> Self {
        let upstream = drive.upstream.name().to_owned();
        let (sender, events) = mpsc::channel(UNTAKEN);
        let task = tokio::spawn(drive.run(work, sender));
        Self { remote, upstream, events, first: None, recorded: None, _task: task }
    }

    /// Waits for the first thing to happen, which tells whether there is anything to follow.
    pub(super) async fn confirmed(mut self) -> Result<Self, ProviderError> {
        match self.event().await {
            Event::Step(step) if step.is_err() => step.map(|_| self),
            event => {
                self.first = Some(event);
                Ok(self)
            }
        }
    }

    async fn event(&mut self) -> Event {
        if let Some(first) = self.first.take() {
            return first;
        }
        self.events.recv().await.unwrap_or_else(|| {
            Event::Step(Err(ProviderError {
                trouble: Trouble::Unreachable,
                sentence: "the call was lost; the log of the server has the details".to_owned(),
                detail: None,
            }))
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
            // Whoever asks on has written the name down. If nobody drives any more, the next event says so.
            let _ = recorded.send(());
        }
        match self.event().await {
            Event::Step(step) => step,
            Event::Became { task, recorded } => {
                self.remote.cursor = Some(cursor::of(&self.upstream, &task));
                self.recorded = Some(recorded);
                Ok(Step::Moved)
            }
        }
    }
}
