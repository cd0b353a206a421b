//! Held calls: a caller waits for the result of its own call, and may give up and call again. The same call (owner,
//! tool, input) is the same job for as long as its key holds ([`outlast_core::KeyLife`]). It is carried by the process
//! that took it, whatever is in the queue.

use outlast_core::{Job, JobId, Key, NewJob, StoreError};

use crate::engine::{Engine, Started};

impl Engine {
    /// Starts a held call, or attaches to the same call made before: while its job runs, and for a while after its end.
    pub async fn start_held(&self, job: NewJob, key: Key) -> Result<Started, StoreError> {
        let started = self.start(job, Some(key)).await?;
        if started.job.state.kind().is_terminal() {
            return Ok(started);
        }
        if started.existed {
            // The process that carried it may have died; then it is in the queue from now on, and ours.
            self.find_dead_workers().await;
        }
        // A caller waits for it here, whichever call made it: it does not wait for a slot of the queue.
        self.carry(&started.job.id);
        Ok(started)
    }

    /// Carries a held call in this process, beside the queue. A job of the queue is left there: it waits for its slot.
    pub fn carry_if_held(&self, job: &Job) {
        if !job.new.visibility.goes_through_queue() {
            self.carry(&job.id);
        }
    }

    /// Carries this job in this process, now, also past the queue: for a caller who waits for it here.
    pub fn carry(&self, id: &JobId) {
        self.shared.hub.carry(*id);
    }

    /// Records that a call was answered with the outcome of this job.
    pub async fn record_answer(&self, id: &JobId) -> Result<(), StoreError> {
        self.shared.store.record_answer(id).await
    }
}
