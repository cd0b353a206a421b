//! A run: a worker on a thread that may block, and the task that waits for it.
//!
//! The worker checks a shared flag between files and passages. Dropping the run raises the flag, which is how a
//! cancel ends the work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use outlast_core::{ProviderError, ProviderErrorKind, RemoteRun, Run, Step};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::reporter::{Reporter, ReporterGone};
use super::research::Research;

/// A running search of the library.
pub(super) struct LibraryRun {
    remote: RemoteRun,
    steps: mpsc::UnboundedReceiver<Result<Step, ProviderError>>,
    stop: Arc<AtomicBool>,
    /// Kept so that the thread has an owner; it is never joined.
    _worker: JoinHandle<()>,
}

impl LibraryRun {
    /// Starts the work and returns immediately.
    pub(super) fn start(remote: RemoteRun, research: Research) -> Self {
        let (sender, steps) = mpsc::unbounded_channel();
        let stop = Arc::new(AtomicBool::new(false));
        let reporter = Reporter::new(sender, Arc::clone(&stop));
        let worker = tokio::task::spawn_blocking(move || work(research, reporter));
        Self { remote, steps, stop, _worker: worker }
    }
}

impl Drop for LibraryRun {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn work(research: Research, mut reporter: Reporter) {
    let end = match research.run(&mut reporter) {
        Ok(Ok(output)) => Ok(Step::Done { output: Box::new(output), raw: None }),
        Ok(Err(error)) => Err(error),
        Err(ReporterGone) => return tracing::debug!("stopped a search of the library"),
    };
    reporter.finish(end);
}

#[async_trait]
impl Run for LibraryRun {
    fn remote(&self) -> RemoteRun {
        self.remote.clone()
    }

    async fn next(&mut self) -> Result<Step, ProviderError> {
        self.steps.recv().await.unwrap_or_else(|| {
            let sentence =
                "the search of the library failed unexpectedly; the log of the server has the details";
            Err(ProviderError::new(ProviderErrorKind::RunFailed, sentence))
        })
    }
}
