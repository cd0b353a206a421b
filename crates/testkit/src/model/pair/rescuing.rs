//! Jobs of crashed workers: facts that the model cannot know, and a rescue that may need several attempts.

use std::time::Duration;

use outlast_core::{
    Checkpoint, Job, JobState, Lease, RescueBy, RescueOutcome, Scope, Store, StoreError,
};

use super::{StorePair, TRIES};
use crate::model::TestedStore;
use crate::model::operation::WORKERS;

impl<S: TestedStore> StorePair<'_, S> {
    /// Rescues until as many jobs were requeued as by the model, or until the limit: a store may skip a job
    /// whose row is locked at the moment.
    pub(super) async fn rescue(
        &self,
        via: usize,
        dead: &RescueBy,
        model: &Result<RescueOutcome, StoreError>,
    ) -> Result<RescueOutcome, StoreError> {
        let expected = model.as_ref().map_or(0, |rescued| rescued.jobs);
        let mut rescued = self.handles[via].rescue(dead).await?;
        for _ in 0..TRIES {
            if rescued.jobs >= expected {
                break;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
            let again = self.handles[via].rescue(dead).await?;
            rescued = RescueOutcome { jobs: rescued.jobs + again.jobs, ..again };
        }
        Ok(rescued)
    }

    /// Returns true if a worker of a closed handle has a request in flight.
    pub(super) async fn killed_worker_has_request_in_flight(&self) -> bool {
        let living: Vec<_> = (0..WORKERS).map(|number| self.name(number)).collect();
        for lease in self.latest.values().filter(|lease| !living.contains(&lease.worker)) {
            let job = self.held_by(lease).await;
            if job.is_some_and(|job| matches!(job.checkpoint, Checkpoint::Beginning { .. })) {
                return true;
            }
        }
        false
    }

    /// Counts live workers of the other handle that hold jobs.
    pub(super) async fn count_other_holders(&self, via: usize) -> u32 {
        let mut watched = 0;
        for (number, worker) in self.workers.iter().enumerate() {
            let mut holds = false;
            for lease in self.latest.values().filter(|lease| lease.worker == self.name(number)) {
                holds |= self.held_by(lease).await.is_some();
            }
            watched += u32::from(worker.alive && worker.handle != via && holds);
        }
        watched
    }

    /// Returns the job if it runs under this lease.
    async fn held_by(&self, lease: &Lease) -> Option<Job> {
        let job = self.model.job(&Scope::Operator, &lease.job).await.unwrap()?;
        let is_held = job.fence == lease.fence && matches!(job.state, JobState::Running { .. });
        is_held.then_some(job)
    }
}
