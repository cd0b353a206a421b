//! A caller asks after a job, and waits a while for its end.

use std::time::Duration;

use outlast_core::{Job, JobId, Scope, StoreError, Timestamp};

use crate::engine::Engine;

/// A job at the moment it was read.
#[derive(Clone, Debug)]
pub struct Reading {
    /// The job.
    pub job: Job,
    /// The store's clock at that moment.
    pub now: Timestamp,
}

impl Engine {
    /// Answers when the job ends, or after `budget` with the job as it stands; `None` when the caller has no such
    /// job. Dropping the call ends the wait and nothing else.
    pub async fn poll(
        &self,
        scope: &Scope,
        id: &JobId,
        budget: Duration,
    ) -> Result<Option<Reading>, StoreError> {
        let over = tokio::time::sleep(budget);
        let mut watcher = self.shared.hub.watch(*id);
        let Some(reading) = self.reading(scope, id).await? else { return Ok(None) };
        if reading.job.state.kind().is_terminal() {
            return Ok(Some(reading));
        }
        tokio::select! {
            () = watcher.ended() => {}
            () = over => {}
            () = self.shared.stop.asked() => {}
        }
        self.reading(scope, id).await
    }

    async fn reading(&self, scope: &Scope, id: &JobId) -> Result<Option<Reading>, StoreError> {
        let job = self.job(scope, id).await?;
        Ok(job.map(|job| Reading { job, now: self.now() }))
    }
}
