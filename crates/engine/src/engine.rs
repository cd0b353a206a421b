//! The engine's handle, which every interface has: starts and cancels jobs. Cheap to clone; every call names the
//! owner.

use std::sync::Arc;

use outlast_core::rules::{self, Replay};
use outlast_core::{
    AnswerOutcome, CancelOutcome, InitialWorker, Insert, InsertOutcome, Job, JobId, Key, NewJob,
    RemoteRun, Scope, StoreError, Takeover,
};

use crate::options::Options;
use crate::remote_stops;
use crate::shared::{Shared, log_job};

/// Starts, polls, cancels and reads jobs.
#[derive(Clone)]
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
}

/// The result of a start.
#[derive(Clone, Debug)]
pub struct StartOutcome {
    /// The job, created or found.
    pub job: Job,
    /// True if the caller's key already named the job.
    pub existed: bool,
    /// The time range of the replay, if a call was answered with this outcome before.
    pub replay: Option<Replay>,
}

/// The part of an ended job that a new job continues.
pub(crate) enum Predecessor {
    None,
    /// Its run at the provider.
    Run(RemoteRun),
    /// Its run with the journal.
    Journal(Takeover),
}

impl Engine {
    /// Makes a job durable and notifies a worker at once. Never waits for a provider.
    pub async fn start(&self, job: NewJob, key: Option<Key>) -> Result<StartOutcome, StoreError> {
        self.insert(job, key, Predecessor::None, None).await
    }

    pub(crate) async fn insert(
        &self,
        job: NewJob,
        key: Option<Key>,
        predecessor: Predecessor,
        initial_worker: Option<InitialWorker>,
    ) -> Result<StartOutcome, StoreError> {
        let Options { max_unfinished, max_bytes, dispatch, observers, .. } = &self.shared.options;
        let mut job = job;
        if let Some(time) = self.shared.attempt_time(&job) {
            job.attempt_timeout = time;
            // The whole run fits into one attempt.
            job.life = job.life.map(|life| life.max(time));
        }
        let reservation = self.shared.reservation(&job);
        let (resumed_run, takeover) = match predecessor {
            Predecessor::None => (None, None),
            Predecessor::Run(run) => (Some(run), None),
            Predecessor::Journal(takeover) => (None, Some(takeover)),
        };
        let insert = Insert {
            job,
            key,
            max_unfinished: *max_unfinished,
            max_bytes: *max_bytes,
            resumed_run,
            takeover,
            reservation,
            initial_worker,
        };
        let inserted = dispatch.insert(&*self.shared.store, observers, insert).await?;
        Ok(match inserted {
            InsertOutcome::New(job) => {
                log_job(&job, "Job enqueued");
                self.shared.warn_of_cost(&job);
                StartOutcome { job, existed: false, replay: None }
            }
            InsertOutcome::Existing { job, key } => {
                StartOutcome { replay: rules::replay(&key, &job), job, existed: true }
            }
        })
    }

    /// Answers the open question of a job (M4); `None` if the caller has no such job. `question` is the id of the question,
    /// if the caller knows which one it answers. A worker continues the job.
    pub async fn answer(
        &self,
        scope: &Scope,
        id: &JobId,
        question: Option<&str>,
        text: &str,
    ) -> Result<Option<AnswerOutcome>, StoreError> {
        let outcome = match self.shared.answer(scope, id, question, text).await {
            Ok(outcome) => outcome,
            Err(StoreError::NotFound) => return Ok(None),
            Err(error) => return Err(error),
        };
        if let AnswerOutcome::Accepted(job) = &outcome {
            log_job(job, "Question answered");
            if let Some(handover) = self.shared.options.dispatch.handover() {
                handover.leave_job(job).await;
            }
        }
        Ok(Some(outcome))
    }

    /// Ends an unfinished job; `None` if the caller has no such job.
    pub async fn cancel(
        &self,
        scope: &Scope,
        id: &JobId,
    ) -> Result<Option<CancelOutcome>, StoreError> {
        match self.shared.cancel(scope, id).await {
            Ok(CancelOutcome::Now(job)) => {
                log_job(&job, "Job cancelled");
                Ok(Some(CancelOutcome::Now(
                    remote_stops::without_vain_stop(&self.shared, job).await,
                )))
            }
            Ok(CancelOutcome::Already(job)) => Ok(Some(CancelOutcome::Already(job))),
            Err(StoreError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
