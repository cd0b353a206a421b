//! A run: the worker on a thread that may block, and the one who waits for it.
//!
//! The worker looks at a shared flag between files and passages; dropping the run raises it, and that is how a cancel
//! ends the work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use outlast_core::{ProviderError, RemoteRun, Run, Step, Trouble};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::reporter::{Reporter, Stopped};
use super::research::Research;

/// A search of the library that is under way.
pub(super) struct LibraryRun {
    remote: RemoteRun,
    steps: mpsc::UnboundedReceiver<Result<Step, ProviderError>>,
    stop: Arc<AtomicBool>,
    /// Kept so that the worker has an owner; it is never waited for.
    _worker: JoinHandle<()>,
}

impl LibraryRun {
    /// Starts the work and returns at once.
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
        Err(Stopped) => return tracing::debug!("a search of the library was stopped"),
    };
    reporter.end(end);
}

#[async_trait]
impl Run for LibraryRun {
    fn remote(&self) -> RemoteRun {
        self.remote.clone()
    }

    async fn next(&mut self) -> Result<Step, ProviderError> {
        self.steps.recv().await.unwrap_or_else(|| {
            let sentence =
                "the search of the library broke off; the log of the server has the details";
            Err(ProviderError::new(Trouble::RunFailed, sentence))
        })
    }
}
