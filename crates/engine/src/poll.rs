//! Polls: a poll of a job answers when the job ends, or when the time limit of the poll is over.

use std::time::Duration;

use outlast_core::{JobId, Scope, StoreError};

use crate::engine::Engine;
use crate::handle::{JobSnapshot, PollError};
use crate::wakeups::Watcher;

impl Engine {
    /// Answers when the job ends, or after `budget` with the present job; `None` if the caller has no such job.
    /// Dropping the call ends the wait and nothing else.
    pub async fn poll(
        &self,
        scope: &Scope,
        id: &JobId,
        budget: Duration,
    ) -> Result<Option<JobSnapshot>, PollError> {
        self.wait(scope, id, budget, false).await
    }

    pub(crate) async fn wait(
        &self,
        scope: &Scope,
        id: &JobId,
        budget: Duration,
        is_own: bool,
    ) -> Result<Option<JobSnapshot>, PollError> {
        let over = tokio::time::sleep(budget);
        tokio::pin!(over);
        let mut watcher = self.shared.wakeups.watch(scope, *id, self.shared.options.polls);
        if let Some(watcher) = watcher.as_mut().filter(|watcher| is_own && watcher.is_carried) {
            tokio::select! {
                has_ended = watcher.wait_for_end_or_release() => if has_ended {
                    return self.end(watcher, scope, id).await;
                },
                () = &mut over => {}
                () = self.shared.stop.wait() => {}
            }
        }
        let Some(job) = self.job(scope, id).await? else { return Ok(None) };
        if job.state.kind().is_terminal() {
            return Ok(Some(JobSnapshot { job, now: self.now(), waits: None }));
        }
        // A finished job, which needs no waiting, was answered above, however many callers wait.
        let mut watcher = watcher.ok_or(PollError::TooManyPolls)?;
        tokio::select! {
            () = watcher.wait_for_end() => return self.end(&watcher, scope, id).await,
            () = &mut over => {}
            () = self.shared.stop.wait() => {}
        }
        Ok(self.read(scope, id).await?)
    }

    /// Returns the job as it ended. A hundred callers that wait for it cost one read, because an end never changes.
    async fn end(
        &self,
        watcher: &Watcher,
        scope: &Scope,
        id: &JobId,
    ) -> Result<Option<JobSnapshot>, PollError> {
        let read = async || self.job(scope, id).await?.ok_or(StoreError::NotFound);
        match watcher.end.get_or_try_init(read).await {
            Ok(job) => Ok(Some(JobSnapshot { job: job.clone(), now: self.now(), waits: None })),
            Err(StoreError::NotFound) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
