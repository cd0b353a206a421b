//! Decides which process runs a job: this one, or a detached worker that outlives it. A job is dispatched in the step
//! that inserts it, and again when this process finds it waiting.

use std::sync::Arc;

use outlast_core::{
    Insert, Inserted, Job, JobId, NewJob, Profile, ResearchKind, Scope, Store, StoreError,
    StoreEvent,
};

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
    pub fn detached(workers: Arc<dyn DetachedWorkers>) -> Self {
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
    ) -> Result<Inserted, StoreError> {
        insert.initial_worker = insert.initial_worker.filter(|_| self.runs_here(&insert.job));
        let inserted = store.insert(insert).await;
        let event = match &inserted {
            Ok(inserted) => StoreEvent::Inserted(inserted),
            Err(error) => StoreEvent::WriteFailed(error),
        };
        let work = observers.begin(event);
        if let Ok(Inserted::New(job) | Inserted::Existing { job, .. }) = &inserted {
            self.dispatch(job).await;
        }
        follow_up(work).await;
        inserted
    }

    /// Returns whether this process may claim jobs from the queue. If not, it leaves waiting jobs to a worker.
    pub(crate) async fn may_claim(
        &self,
        store: &dyn Store,
        profiles: &[Profile],
    ) -> Result<bool, StoreError> {
        match self {
            Self::Here => Ok(true),
            Self::Detached(handover) if handover.runs_jobs_here() => Ok(true),
            Self::Detached(handover) => Ok(store.count_queued(profiles).await? > 0
                && handover.leave_queue().await == JobRunner::ThisProcess),
        }
    }

    /// Returns whether this process may claim this job. If not, it leaves the job to a worker.
    pub(crate) async fn may_take(&self, store: &dyn Store, id: &JobId) -> Result<bool, StoreError> {
        match self {
            Self::Here => return Ok(true),
            Self::Detached(handover) if handover.runs_jobs_here() => return Ok(true),
            Self::Detached(_) => {}
        }
        let Some(job) = store.job(&Scope::Operator, id).await? else { return Ok(false) };
        Ok(self.dispatch(&job).await == JobRunner::ThisProcess)
    }

    /// Waits until the worker of this process should look for jobs again, because a detached worker may not run them.
    /// Cancel-safe.
    pub(crate) async fn must_look_again(&self) {
        match self {
            Self::Here => std::future::pending().await,
            Self::Detached(handover) => handover.must_look_again().await,
        }
    }

    /// Returns whether this process runs a new job.
    fn runs_here(&self, job: &NewJob) -> bool {
        match self {
            Self::Here => true,
            Self::Detached(handover) => {
                handover.runs_jobs_here() || is_quick(job) && handover.is_current()
            }
        }
    }

    /// Leaves a waiting job to the process that runs it.
    async fn dispatch(&self, job: &Job) -> JobRunner {
        match self {
            Self::Here => JobRunner::ThisProcess,
            Self::Detached(handover) if is_quick(&job.new) && handover.is_current() => {
                JobRunner::ThisProcess
            }
            Self::Detached(handover) => handover.leave_job(job).await,
        }
    }
}

/// Returns true if the answer takes only seconds, which is not worth a second process.
fn is_quick(job: &NewJob) -> bool {
    if job.profile.provider() == Profile::WORKFLOW || job.visibility.goes_through_queue() {
        return false;
    }
    match job.request.kind() {
        ResearchKind::Search | ResearchKind::Ask | ResearchKind::Reason | ResearchKind::Results => {
            true
        }
        ResearchKind::Research => false,
    }
}
