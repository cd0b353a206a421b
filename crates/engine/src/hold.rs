//! Held calls: a caller waits for the result of its own call, and may give up and call again. The same call (owner,
//! tool, input) is the same job until somebody has received its outcome. It is carried by the process that took it,
//! whatever is in the queue.

use outlast_core::{JobId, Key, NewJob, StoreError};

use crate::engine::{Engine, Started};

impl Engine {
    /// Starts a held call, or attaches to the same call made before: while its job runs, and for a while after its
    /// end as long as nobody was answered with it.
    pub async fn hold(
        &self,
        job: NewJob,
        tool: &str,
        input_hash: [u8; 32],
    ) -> Result<Started, StoreError> {
        self.hold_under(job, Key::held(tool, input_hash)).await
    }

    /// The same under a key of the caller's own, which holds as long as such keys do.
    pub async fn hold_under(&self, job: NewJob, key: Key) -> Result<Started, StoreError> {
        let started = self.start(job, Some(key)).await?;
        if started.existed {
            // Whoever carried it may have died with its process; then it is in the queue from now on, and ours.
            self.find_dead_workers().await;
        }
        self.shared.hub.carry(started.job.id);
        Ok(started)
    }

    /// Carries this job in this process, now and beside the queue, whoever may wait for it.
    pub fn carry(&self, id: &JobId) {
        self.shared.hub.carry(*id);
    }

    /// Records that a caller has received the outcome of a held call; the same call from now on is a new one.
    pub async fn answered(&self, id: &JobId) -> Result<(), StoreError> {
        self.shared.store.answered(id).await
    }
}
