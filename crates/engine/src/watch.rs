//! Watches: a caller follows one job change by change, to show its progress. [`crate::Engine::poll`] is for callers
//! that want its end alone.

use outlast_core::{JobId, Scope};

use crate::engine::Engine;
use crate::poll::PollError;
use crate::reads::Reading;
use crate::wakeups::Watcher;

/// One caller's view of one job; counts as a waiting poll until it is dropped.
pub struct JobWatch {
    engine: Engine,
    scope: Scope,
    id: JobId,
    watcher: Option<Watcher>,
    /// True if a change was received but not read yet: a caller that drops the read must not lose it, least of all
    /// the end.
    unread: bool,
}

impl Engine {
    /// Returns the job and a watch of its later changes; `None` if the caller has no such job.
    pub async fn watch(
        &self,
        scope: &Scope,
        id: &JobId,
    ) -> Result<Option<(Reading, JobWatch)>, PollError> {
        let watcher = self.shared.wakeups.watch(scope, *id, self.shared.options.polls);
        let Some(reading) = self.reading(scope, id).await? else { return Ok(None) };
        // A finished job is returned however many callers wait: nothing will change, so nothing is watched.
        if watcher.is_none() && !reading.job.state.kind().is_terminal() {
            return Err(PollError::TooManyPolls);
        }
        let watch = JobWatch {
            engine: self.clone(),
            scope: scope.clone(),
            id: *id,
            watcher,
            unread: false,
        };
        Ok(Some((reading, watch)))
    }

    /// Waits until the shutdown is requested. Cancel-safe.
    pub async fn leaving(&self) {
        self.shared.stop.asked().await;
    }
}

impl JobWatch {
    /// Waits until the job has changed and reads it; `None` if it was removed. Cancel-safe: a change is not lost,
    /// only read again.
    pub async fn changed(&mut self) -> Result<Option<Reading>, PollError> {
        if !self.unread {
            match &mut self.watcher {
                Some(watcher) => watcher.changed().await,
                None => std::future::pending().await,
            }
            self.unread = true;
        }
        let end = self.watcher.as_ref().and_then(|watcher| watcher.end.get().cloned());
        let reading = match end {
            Some(job) => Some(Reading { job, now: self.engine.now(), waits: None }),
            None => self.engine.reading(&self.scope, &self.id).await?,
        };
        self.unread = false;
        Ok(reading)
    }
}
