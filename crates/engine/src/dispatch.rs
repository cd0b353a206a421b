//! Decides which process runs a job: this one, or a detached worker that outlives it. A job is dispatched in the step
//! that inserts it, and again when this process finds it waiting.

use std::sync::Arc;

use outlast_core::{Insert, InsertOutcome, Store, StoreError, StoreEvent};

use crate::handover::{DetachedWorkers, Handover, JobRunner};
use crate::observers::{Observers, follow_up};

/// The process that runs the jobs of an engine.
#[derive(Clone, Debug, Default)]
pub enum Dispatch {
    /// This process runs them.
    #[default]
    Here,
    /// A detached worker runs them, except for quick answers.
    Detached(Arc<Handover>),
}

impl Dispatch {
    /// Leaves jobs to detached workers. If none can be started, this process runs its jobs itself.
    pub fn with_detached_workers(workers: Arc<dyn DetachedWorkers>) -> Self {
        Self::Detached(Arc::new(Handover::new(workers, JobRunner::DetachedWorker)))
    }

    /// Runs jobs here until the configuration changes. Then they are left to a worker of the present configuration.
    pub fn here_while_current(workers: Arc<dyn DetachedWorkers>) -> Self {
        Self::Detached(Arc::new(Handover::new(workers, JobRunner::ThisProcess)))
    }

    /// Makes a job durable or finds it, notifies the observers, and dispatches the job. Returns after a detached worker
    /// knows of the job: a client that leaves at once must not take the job with it.
    pub(crate) async fn insert(
        &self,
        store: &dyn Store,
        observers: &Observers,
        mut insert: Insert,
    ) -> Result<InsertOutcome, StoreError> {
        let handover = self.handover();
        if handover.is_some_and(|handover| !handover.runs_here(&insert.job)) {
            insert.initial_worker = None;
        }
        let inserted = store.insert(insert).await;
        let event = match &inserted {
            Ok(inserted) => StoreEvent::Inserted(inserted),
            Err(error) => StoreEvent::WriteFailed(error),
        };
        let work = observers.begin(event);
        if let Some(handover) = handover
            && let Ok(InsertOutcome::New(job) | InsertOutcome::Existing { job, .. }) = &inserted
        {
            handover.leave_job(job).await;
        }
        follow_up(work).await;
        inserted
    }

    /// Returns the handover of jobs to detached workers; `None` if this process runs all its jobs.
    pub(crate) fn handover(&self) -> Option<&Handover> {
        match self {
            Self::Here => None,
            Self::Detached(handover) => Some(handover),
        }
    }
}
