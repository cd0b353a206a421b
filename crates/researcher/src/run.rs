//! A run as the engine sees it: a task that works, and the channel on which it reports.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use outlast_core::{ProviderError, ProviderErrorKind, RemoteRun, Request, Run, RunJournal, Step};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::Shared;

/// A run that is under way.
pub(crate) struct ResearchRun {
    remote: RemoteRun,
    /// The sections that are finished.
    text: Arc<Mutex<String>>,
    state: RunState,
}

enum RunState {
    New { shared: Arc<Shared>, request: Request, journal: Option<RunJournal> },
    Running { steps: mpsc::UnboundedReceiver<Result<Step, ProviderError>>, _work: AbortOnDrop },
}

/// A task that ends with its run.
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ResearchRun {
    pub(crate) fn new(shared: Arc<Shared>, request: Request, remote: RemoteRun) -> Self {
        let state = RunState::New { shared, request, journal: None };
        Self { remote, text: Arc::default(), state }
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

    async fn next(&mut self) -> Result<Step, ProviderError> {
        if let RunState::New { shared, request, journal } = &mut self.state {
            let (sender, steps) = mpsc::unbounded_channel();
            let (shared, request) = (Arc::clone(shared), request.clone());
            let journal = journal.take();
            let work = tokio::spawn(async move {
                let _ = (shared, request, journal);
                let sentence = "this version of the researcher cannot run yet";
                let error = ProviderError::new(ProviderErrorKind::Misconfigured, sentence);
                drop(sender.send(Err(error)));
            });
            self.state = RunState::Running { steps, _work: AbortOnDrop(work) };
        }
        match &mut self.state {
            RunState::Running { steps, .. } => steps.recv().await.unwrap_or_else(|| Err(failed())),
            RunState::New { .. } => Err(failed()),
        }
    }
}

fn failed() -> ProviderError {
    let sentence = "the research failed unexpectedly; the log of the server has the details";
    ProviderError::new(ProviderErrorKind::RunFailed, sentence)
}
