//! A caller asks after a job, and waits a while for its end.

use std::time::Duration;

use outlast_core::{
    Job, JobId, JobState, Scope, Standing, StoreError, Timestamp, Visibility, Waits,
};
use thiserror::Error;

use crate::engine::Engine;
use crate::wakeups::Watcher;

/// A job at the moment it was read.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The job.
    pub job: Job,
    /// The store's clock at that moment.
    pub now: Timestamp,
    /// Why it is queued, if it is.
    pub waits: Option<Waits>,
}

impl Reading {
    /// Where the job stands, in words (P4).
    pub fn standing(&self) -> Standing<'_> {
        Standing::of(&self.job, self.waits)
    }
}

/// Why a poll has no answer.
#[derive(Debug, Error)]
pub enum PollError {
    /// Too many callers wait already, in all or for this job; ask again in a while.
    #[error("too many polls are waiting")]
    TooManyPolls,
    /// The job cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Engine {
    /// Answers when the job ends, or after `budget` with the job as it stands; `None` when the caller has no such
    /// job. Dropping the call ends the wait and nothing else.
    pub async fn poll(
        &self,
        scope: &Scope,
        id: &JobId,
        budget: Duration,
    ) -> Result<Option<Reading>, PollError> {
        let over = tokio::time::sleep(budget);
        let watcher = self.shared.hub.watch(scope, *id, self.shared.options.polls);
        let Some(reading) = self.reading(scope, id).await? else { return Ok(None) };
        if reading.job.state.kind().is_terminal() {
            return Ok(Some(reading));
        }
        // What needs no waiting was answered above, however many wait.
        let mut watcher = watcher.ok_or(PollError::TooManyPolls)?;
        tokio::select! {
            () = watcher.ended() => return self.end(&watcher, scope, id).await,
            () = over => {}
            () = self.shared.stop.asked() => {}
        }
        Ok(self.reading(scope, id).await?)
    }

    /// The job as it ended. A hundred who wait for it cost one read: an end never changes.
    async fn end(
        &self,
        watcher: &Watcher,
        scope: &Scope,
        id: &JobId,
    ) -> Result<Option<Reading>, PollError> {
        let read = async || self.job(scope, id).await?.ok_or(StoreError::NotFound);
        match watcher.end.get_or_try_init(read).await {
            Ok(job) => Ok(Some(Reading { job: job.clone(), now: self.now(), waits: None })),
            Err(StoreError::NotFound) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The job as it stands, and why it waits if it does; `None` when the caller has no such job. Never waits.
    pub async fn reading(&self, scope: &Scope, id: &JobId) -> Result<Option<Reading>, StoreError> {
        let Some(job) = self.job(scope, id).await? else { return Ok(None) };
        let now = self.now();
        let waits = self.waits(&job, now).await?;
        Ok(Some(Reading { job, now, waits }))
    }

    async fn waits(&self, job: &Job, now: Timestamp) -> Result<Option<Waits>, StoreError> {
        let JobState::Queued { run_at } = job.state else { return Ok(None) };
        if job.new.visibility == Visibility::Unpromised {
            // Not in the queue: the process that took the call carries it, whatever workers there are.
            return Ok(None);
        }
        Ok(Some(if !self.shared.store.has_worker(&job.new.profile).await? {
            Waits::ForAWorker
        } else if run_at > now {
            Waits::Until(run_at)
        } else {
            Waits::ForItsTurn { ahead: self.shared.store.ahead(&job.id).await? }
        }))
    }
}
