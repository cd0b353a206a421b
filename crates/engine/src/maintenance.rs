//! The parts of [`Engine`] that serve no job: looks, removals, pending stops, dead workers.

use std::time::Duration;

use outlast_core::{Job, Profile, Prune, Pruned, RescueBy, Scope, StoreError};

use crate::engine::Engine;
use crate::{idle, remote_stops};

/// The maximum delay with which a process without a worker notices that another process has crashed.
const LOOK_EVERY: Duration = Duration::from_secs(2);

impl Engine {
    /// Looks for changes now, because another process reported one.
    pub fn look_now(&self) {
        self.shared.wakeups.look_now();
    }

    /// Makes this process's worker look for jobs again, whatever it found before.
    pub fn look_for_jobs(&self) {
        self.shared.wakeups.publish_due();
    }

    /// Returns whether neither a job nor a pending stop is left for a worker with this engine's providers.
    pub async fn is_idle(&self) -> bool {
        let profiles: Vec<Profile> = self.shared.providers.keys().cloned().collect();
        idle::nothing_left(&self.shared, &profiles).await
    }

    /// Removes finished jobs for good.
    pub async fn prune(&self, scope: &Scope, prune: &Prune) -> Result<Pruned, StoreError> {
        self.shared.prune(scope, prune).await
    }

    /// Performs the pending stop of a cancelled job, if this process has its provider: asks once, checks the run and
    /// records the outcome. A run that the provider does not stop continues, so that another job may resume it.
    /// Returns the job after that.
    pub async fn settle_stop(&self, job: Job) -> Result<Job, StoreError> {
        remote_stops::settle_stop(&self.shared, job).await
    }

    /// Returns the jobs of workers that are known to be dead to the queue, so that later reads are correct. Best
    /// effort: a store that cannot be written is read as it is.
    pub async fn find_dead_workers(&self) {
        if let Err(error) = self.shared.store.rescue(&RescueBy::DeadProcess).await {
            tracing::warn!(%error, "dead workers cannot be looked for");
        }
    }

    /// Repeats [`Engine::find_dead_workers`] in a process whose workers do not do so. Never ends.
    pub async fn keep_finding_dead_workers(&self) {
        loop {
            self.find_dead_workers().await;
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
