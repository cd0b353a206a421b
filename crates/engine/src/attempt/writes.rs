//! The writes of an attempt: checkpoints, progress and its end, all under its lease. If the job was cancelled while
//! the request was on its way, also the outcome of the request.

use std::time::Duration;

use outlast_core::{
    CancelOutcome, Checkpoint, Cost, Job, RemoteRun, RemoteStop, Scope, Settlement, StoreError,
};

use super::notes::Notes;
use super::settled::log_settled;
use super::{Attempt, LeaseLost};
use crate::shared::log_job;

/// The wait before a failed write is repeated; doubles.
const WRITE_AGAIN: Duration = Duration::from_millis(500);
const WRITE_AGAIN_AT_MOST: Duration = Duration::from_secs(2);

impl Attempt<'_> {
    /// Makes a checkpoint durable.
    pub(super) async fn record(&mut self, checkpoint: Checkpoint) -> Result<(), LeaseLost> {
        let write = || self.shared.checkpoint(self.lease.lease(), &checkpoint);
        self.write_until_lost("a checkpoint", self.lease.wait_until_lost(), write).await?;
        self.job.checkpoint = checkpoint;
        Ok(())
    }

    /// Shows the latest progress, if there is some.
    pub(super) async fn note(&self, notes: &mut Notes) -> Result<(), LeaseLost> {
        let Some(progress) = notes.take(self.lease.count_held()) else { return Ok(()) };
        let noted = self.shared.note(self.lease.lease(), &progress).await;
        self.may_be_lost("progress", noted)
    }

    /// Shows the text so far.
    pub(super) async fn show_text(&self, text: &str) -> Result<(), LeaseLost> {
        let shown = self.shared.store.show_text(self.lease.lease(), text).await;
        self.may_be_lost("the text so far", shown)
    }

    /// Tolerates a failed write of progress or text, which may be lost. A lost lease still ends the attempt.
    fn may_be_lost(&self, what: &str, written: Result<(), StoreError>) -> Result<(), LeaseLost> {
        match written {
            Ok(()) => Ok(()),
            Err(StoreError::LeaseLost | StoreError::NotFound) => Err(LeaseLost),
            Err(error) => {
                tracing::warn!(job.id = %self.job.id, %error, "{what} is not stored");
                Ok(())
            }
        }
    }

    /// Writes the end of the attempt, and returns the job after it.
    pub(super) async fn settle(&self, settlement: Settlement) -> Option<Job> {
        let write = || self.shared.settle(self.lease.lease(), &settlement);
        match self.write_until_lost("the end of a try", self.lease.wait_until_lost(), write).await {
            Ok(job) => {
                if job.state.kind().is_terminal() {
                    self.shared.wakeups.publish_end(&job);
                }
                log_settled(&job, &settlement);
                Some(job)
            }
            Err(LeaseLost) => {
                tracing::warn!(job.id = %self.job.id, "the job was taken or cancelled before this try ended, or its end is stored and was not confirmed");
                self.record_no_run().await;
                None
            }
        }
    }

    /// Cancels the job, whose owner has declined to continue (M4).
    pub(super) async fn cancel<T>(&self) -> Result<T, LeaseLost> {
        let (scope, id) = (Scope::Operator, &self.job.id);
        let write = || self.shared.cancel(&scope, id);
        let lost = self.lease.wait_until_lost();
        if let CancelOutcome::Now(job) = self.write_until_lost("a cancel", lost, write).await? {
            log_job(&job, "Job cancelled: its owner declined to continue");
            self.shared.wakeups.publish_end(&job);
        }
        Err(LeaseLost)
    }

    /// Records that the request became a run, which must be stopped.
    pub(super) async fn record_late_run(&self, remote: &RemoteRun) {
        let write = || self.shared.record_late_run(&self.job.id, remote);
        // Repeated until it is recorded, whatever the lease: no other process knows of this run.
        let recorded = self.write_until_lost("a pending stop", std::future::pending(), write).await;
        match recorded {
            Ok(()) => {
                tracing::info!(job.id = %self.job.id, remote.id = remote.short_id(), "cancelled run will be stopped");
            }
            Err(LeaseLost) => {
                tracing::error!(job.id = %self.job.id, remote.id = remote.short_id(), "a remote run is left without a job");
            }
        }
    }

    /// Records that the request did not become a run, so there is nothing to stop.
    pub(super) async fn record_no_run(&self) {
        if !self.not_begun {
            return;
        }
        match self.shared.record_stop(&self.job.id, RemoteStop::NotNeeded, Cost::Unknown).await {
            // The job was not cancelled but claimed by another worker, which knows better.
            Ok(()) | Err(StoreError::NotFound) => {}
            Err(error) => {
                tracing::warn!(job.id = %self.job.id, %error, "that a cancelled job began no run is not stored");
            }
        }
    }

    /// Repeats a write while the store cannot perform it, until this attempt loses the job.
    async fn write_until_lost<T, W>(
        &self,
        what: &str,
        lost: impl Future<Output = ()>,
        write: impl Fn() -> W,
    ) -> Result<T, LeaseLost>
    where
        W: Future<Output = Result<T, StoreError>>,
    {
        tokio::pin!(lost);
        let mut wait = WRITE_AGAIN;
        loop {
            match write().await {
                Ok(written) => return Ok(written),
                Err(StoreError::LeaseLost | StoreError::NotFound) => return Err(LeaseLost),
                Err(error) => {
                    tracing::error!(job.id = %self.job.id, %error, "{what} is not stored, will try again");
                }
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => wait = (wait * 2).min(WRITE_AGAIN_AT_MOST),
                () = &mut lost => return Err(LeaseLost),
            }
        }
    }
}
