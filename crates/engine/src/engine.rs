//! The engine's handle, which every interface has: starts and cancels jobs. Cheap to clone; every call names the
//! owner.

use std::sync::Arc;

use outlast_core::rules::{self, Replay};
use outlast_core::{
    Cancelled, InitialWorker, Insert, Inserted, Job, JobId, Key, NewJob, RemoteRun, Rev, Scope,
    Store, StoreError,
};
use tokio::task::JoinHandle;

use crate::options::{Options, Providers};
pub(crate) use crate::shared::Shared;
use crate::shutdown::Shutdown;
use crate::wakeups::Wakeups;
use crate::{follower, remote_stops};

/// Starts, polls, cancels and reads jobs.
#[derive(Clone)]
pub struct Engine {
    pub(crate) shared: Arc<Shared>,
}

/// The result of a start.
#[derive(Clone, Debug)]
pub struct Started {
    /// The job, created or found.
    pub job: Job,
    /// True if the caller's key already named the job.
    pub existed: bool,
    /// The time range of the replay, if a call was answered with this outcome before.
    pub replay: Option<Replay>,
}

impl Engine {
    /// Creates an engine over an open store. The returned task follows the store's changes and ends when `stop` is
    /// asked.
    pub async fn new(
        store: Arc<dyn Store>,
        providers: Providers,
        options: Options,
        stop: Shutdown,
    ) -> Result<(Self, JoinHandle<()>), StoreError> {
        // Read before a caller can wait for a job, so that no change is missed in between.
        let rev: Rev = store.rev().await?;
        let wakeups = Arc::new(Wakeups::default());
        let follower = crate::spawn(follower::follow(
            Arc::clone(&store),
            Arc::clone(&wakeups),
            rev,
            stop.clone(),
        ));
        providers.values().for_each(|provider| provider.keep_ids_in(&store));
        let shared = Shared { store, providers, options, wakeups, stop };
        Ok((Self { shared: Arc::new(shared) }, follower))
    }

    /// Makes a job durable and notifies a worker at once. Never waits for a provider.
    pub async fn start(&self, job: NewJob, key: Option<Key>) -> Result<Started, StoreError> {
        self.insert(job, key, None, None).await
    }

    /// Does the same for a job that resumes the run that `failed` left behind, if it left one.
    pub async fn start_after(
        &self,
        failed: &Job,
        job: NewJob,
        key: Option<Key>,
    ) -> Result<Started, StoreError> {
        self.insert(job, key, failed.run_left().cloned(), None).await
    }

    pub(crate) async fn insert(
        &self,
        job: NewJob,
        key: Option<Key>,
        takes_up: Option<RemoteRun>,
        carrier: Option<InitialWorker>,
    ) -> Result<Started, StoreError> {
        let Options { max_unfinished, max_bytes, dispatch, observers, .. } = &self.shared.options;
        let reservation = self.shared.reservation(&job);
        let insert = Insert {
            job,
            key,
            max_unfinished: *max_unfinished,
            max_bytes: *max_bytes,
            resumed_run: takes_up,
            reservation,
            initial_worker: carrier,
        };
        let inserted = dispatch.insert(&*self.shared.store, observers, insert).await?;
        let started = match inserted {
            Inserted::New(job) => {
                tracing::info!(
                    job.id = %job.id,
                    conversation.id = job.new.conversation_id(),
                    tool = job.new.tool(),
                    "Job enqueued"
                );
                self.shared.warn_of_cost(&job);
                Started { job, existed: false, replay: None }
            }
            Inserted::Existing { job, key } => {
                Started { replay: rules::replay(&key, &job), job, existed: true }
            }
        };
        Ok(started)
    }

    /// Ends an unfinished job; `None` if the caller has no such job.
    pub async fn cancel(&self, scope: &Scope, id: &JobId) -> Result<Option<Cancelled>, StoreError> {
        match self.shared.cancel(scope, id).await {
            Ok(Cancelled::Now(job)) => {
                tracing::info!(
                    job.id = %job.id,
                    conversation.id = job.new.conversation_id(),
                    tool = job.new.tool(),
                    "Job cancelled"
                );
                Ok(Some(Cancelled::Now(remote_stops::without_vain_stop(&self.shared, job).await)))
            }
            Ok(Cancelled::Already(job)) => Ok(Some(Cancelled::Already(job))),
            Err(StoreError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
