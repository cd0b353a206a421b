//! A run as the engine sees it: a task that works, and the channel on which it reports.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{ProviderError, ProviderErrorKind, RemoteRun, Request, Run, RunJournal, Step};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::SharedState;
use crate::engine_channel::EngineChannel;
use crate::research::research;
use crate::steps::Steps;

/// A run that is under way.
pub(crate) struct ResearchRun {
    remote: RemoteRun,
    /// The sections that are finished.
    text: Arc<Mutex<String>>,
    /// The steps of the attempt, once it has begun.
    steps: Arc<OnceLock<Arc<Steps>>>,
    state: RunState,
}

enum RunState {
    New { shared: Arc<SharedState>, request: Request, journal: Option<RunJournal> },
    Running { steps: mpsc::UnboundedReceiver<Result<Step, ProviderError>>, work: AbortOnDrop },
}

/// A task that ends with its run.
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ResearchRun {
    pub(crate) fn new(shared: Arc<SharedState>, request: Request, remote: RemoteRun) -> Self {
        let state = RunState::New { shared, request, journal: None };
        Self { remote, text: Arc::default(), steps: Arc::default(), state }
    }
}

#[async_trait]
impl Run for ResearchRun {
    fn remote(&self) -> RemoteRun {
        self.remote.clone()
    }

    fn set_journal(&mut self, given: RunJournal) {
        if let RunState::New { journal, .. } = &mut self.state {
            *journal = Some(given);
        }
    }

    fn text(&self) -> Option<String> {
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (!text.is_empty()).then_some(text)
    }

    async fn wind_down(&mut self, at_most: Duration) {
        let RunState::Running { work: AbortOnDrop(work), .. } = &mut self.state else { return };
        if let Some(steps) = self.steps.get().filter(|_| !work.is_finished()) {
            steps.wind_down();
            // The task ends at its next step. Its result is dropped: another attempt continues the run.
            drop(tokio::time::timeout(at_most, work).await);
        }
    }

    async fn next(&mut self) -> Result<Step, ProviderError> {
        if let RunState::New { shared, request, journal } = &mut self.state {
            let (sender, steps) = mpsc::unbounded_channel();
            let reports = Arc::new(EngineChannel::new(sender.clone(), Arc::clone(&self.text)));
            let (shared, request, journal) = (Arc::clone(shared), request.clone(), journal.take());
            let handle = Arc::clone(&self.steps);
            let work = tokio::spawn(async move {
                let end = match journal {
                    Some(journal) => research(shared, &request, journal, handle, reports).await,
                    None => Err(failed()),
                };
                drop(sender.send(end));
            });
            self.state = RunState::Running { steps, work: AbortOnDrop(work) };
        }
        match &mut self.state {
            RunState::Running { steps, .. } => steps.recv().await.unwrap_or_else(|| Err(failed())),
            RunState::New { .. } => Err(failed()),
        }
    }
}

/// Returns the error of a run that ended without a result. The run is kept.
fn failed() -> ProviderError {
    let sentence = "the research failed unexpectedly; the log of the server has the details";
    ProviderError::new(ProviderErrorKind::Unavailable { retry_after: None }, sentence)
}
