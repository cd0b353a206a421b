//! The store of a process that may leave its jobs to a detached worker. It looks like any other store, so that the
//! engine does not depend on it. A stdio server leaves all jobs except quick answers to its worker (H1); if no worker
//! can be started, it runs them itself. Other processes run their jobs themselves. Once the configuration file has
//! changed, no process claims a job any more: jobs are left to a worker of the present file.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{
    AskKind, Claimed, Insert, Inserted, Job, JobId, NewJob, Profile, Scope, StateKind, Store,
    StoreError, StoreMethod, StoreWrapper, WorkerId,
};
use tokio::sync::Notify;

use crate::detached::Workers;
use crate::detached::socket::Message;

/// By this time a running worker has taken the job that it was notified of, or has it in its queue.
const TAKEN_BY_NOW: Duration = Duration::from_secs(1);
/// The pause after a job that no worker could take.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// The store of a front.
pub(crate) struct FrontStore {
    store: Arc<dyn Store>,
    workers: Workers,
    /// True if this process runs its jobs itself, by its nature or because no worker can be started.
    carries_itself: AtomicBool,
    /// The last logged reason for leaving jobs to a worker of the present file, or to no one.
    logged: Mutex<String>,
    /// Notified when no worker could be started.
    fell_back: Notify,
    /// Notified when a job was left to the worker.
    left: Notify,
    /// Notified when no worker could take a job.
    left_to_no_one: Notify,
}

/// The process that runs a process's jobs while its configuration is current.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunsJobs {
    InDetachedWorker,
    Here,
}

/// The process that runs a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CarriedBy {
    DetachedWorker,
    ThisProcess,
    /// The job waits until a worker of the present configuration can be started.
    NoOne,
}

impl FrontStore {
    pub(crate) fn new(store: Arc<dyn Store>, workers: Workers, runs: RunsJobs) -> Self {
        Self {
            store,
            workers,
            carries_itself: AtomicBool::new(runs == RunsJobs::Here),
            logged: Mutex::default(),
            fell_back: Notify::new(),
            left: Notify::new(),
            left_to_no_one: Notify::new(),
        }
    }

    /// Waits until the worker of this process should look for jobs again: this process must run them itself, the
    /// detached worker may have been killed before it took its jobs, or no worker could be started.
    pub(crate) async fn must_look_again(&self) {
        tokio::select! {
            () = self.fell_back.notified() => {}
            () = self.lost_its_worker() => {}
            () = self.left_to_no_one.notified() => tokio::time::sleep(TRY_AGAIN).await,
        }
    }

    /// Ends the workers that this process has started and that cannot outlive it.
    pub(crate) async fn close(&self) {
        self.workers.stop_later().await;
    }

    async fn lost_its_worker(&self) {
        loop {
            self.left.notified().await;
            tokio::time::sleep(TAKEN_BY_NOW).await;
            if !self.workers.is_there().await {
                return;
            }
        }
    }

    /// Returns true if this process runs its jobs itself.
    fn runs_jobs_here(&self) -> bool {
        self.carries_itself.load(Ordering::Acquire) && self.workers.is_current()
    }

    /// Notifies the detached worker, and starts it if there is none.
    async fn leave(&self, message: Message) -> CarriedBy {
        if !self.workers.is_current() {
            return self.leave_to_present(message).await;
        }
        if self.carries_itself.load(Ordering::Acquire) {
            return CarriedBy::ThisProcess;
        }
        let Err(error) = self.workers.tell_own(message).await else {
            self.left.notify_one();
            return CarriedBy::DetachedWorker;
        };
        // The worker reads the file itself, and refuses to start if it is no longer the one that this process has read.
        if !self.workers.is_current() {
            return self.leave_to_present(message).await;
        }
        if !self.carries_itself.swap(true, Ordering::AcqRel) {
            let error = format!("{error:#}");
            tracing::warn!(%error, "no worker can be started beside this server; its jobs run here and stop with it");
            self.fell_back.notify_one();
        }
        CarriedBy::ThisProcess
    }

    /// Notifies the worker of the present file. This process must not run the job: its command lines and settings are
    /// outdated.
    async fn leave_to_present(&self, message: Message) -> CarriedBy {
        match self.workers.tell_present(message).await {
            Ok(()) => {
                self.log_once("the configuration file has changed since this process read it: jobs go to a worker of the present file".to_owned());
                self.left.notify_one();
                CarriedBy::DetachedWorker
            }
            Err(error) => {
                self.log_once(format!("the configuration file has changed since this process read it, and no worker of the present file can be started; jobs wait: {error:#}"));
                self.left_to_no_one.notify_one();
                CarriedBy::NoOne
            }
        }
    }

    fn log_once(&self, message: String) {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if *logged != message {
            tracing::warn!("{message}");
            *logged = message;
        }
    }

    /// Leaves a waiting job to the worker.
    async fn leave_job(&self, job: &Job) -> CarriedBy {
        let is_ours = is_quick(&job.new) && self.workers.is_current();
        if job.state.kind() != StateKind::Queued || is_ours {
            return CarriedBy::ThisProcess;
        }
        self.leave(match job.new.visibility.goes_through_queue() {
            true => Message::Look,
            false => Message::Carry(job.id),
        })
        .await
    }
}

/// Returns true if the answer takes only seconds, which is not worth a second process.
fn is_quick(job: &NewJob) -> bool {
    if job.profile.provider() == Profile::WORKFLOW || job.visibility.goes_through_queue() {
        return false;
    }
    match job.ask.kind() {
        AskKind::Search | AskKind::Ask | AskKind::Reason | AskKind::Results => true,
        AskKind::Research => false,
    }
}

#[async_trait]
impl StoreWrapper for FrontStore {
    fn inner(&self) -> &dyn Store {
        &*self.store
    }

    fn after(&self, method: StoreMethod, _: Option<&StoreError>) {
        match method {
            // See below.
            StoreMethod::Insert | StoreMethod::Claim | StoreMethod::Take => {}
            // A front may do with these what a worker would do.
            StoreMethod::Rev
            | StoreMethod::Orphans
            | StoreMethod::Renew
            | StoreMethod::Checkpoint
            | StoreMethod::Note
            | StoreMethod::ShowText
            | StoreMethod::Settle
            | StoreMethod::Cancel
            | StoreMethod::Rescue
            | StoreMethod::RecordLateRun
            | StoreMethod::OwedStops
            | StoreMethod::RecordStop
            | StoreMethod::ClaimNotice
            | StoreMethod::RecordNotice
            | StoreMethod::RecordAnswer
            | StoreMethod::HasWorker
            | StoreMethod::Queued
            | StoreMethod::Ahead
            | StoreMethod::Dismiss
            | StoreMethod::Prune
            | StoreMethod::Job
            | StoreMethod::List
            | StoreMethod::Turns
            | StoreMethod::Conversations
            | StoreMethod::LedgerRows
            | StoreMethod::Spend
            | StoreMethod::Counts
            | StoreMethod::Kept
            | StoreMethod::Keep
            | StoreMethod::Changes => {}
        }
    }

    /// Answers the caller after a worker knows of the job: a client that leaves at once must not take the job with it.
    async fn insert(&self, mut insert: Insert) -> Result<Inserted, StoreError> {
        let is_run_here =
            self.runs_jobs_here() || is_quick(&insert.job) && self.workers.is_current();
        insert.carrier = insert.carrier.filter(|_| is_run_here);
        let inserted = self.store.insert(insert).await?;
        match &inserted {
            Inserted::New(job) | Inserted::Existing { job, .. } => self.leave_job(job).await,
        };
        Ok(inserted)
    }

    async fn claim(
        &self,
        worker: &WorkerId,
        profiles: &[Profile],
        lease: Duration,
    ) -> Result<Option<Claimed>, StoreError> {
        if self.runs_jobs_here() {
            return self.store.claim(worker, profiles, lease).await;
        }
        if self.store.queued(profiles).await? == 0 {
            return Ok(None);
        }
        match self.leave(Message::Look).await {
            CarriedBy::DetachedWorker | CarriedBy::NoOne => Ok(None),
            CarriedBy::ThisProcess => self.store.claim(worker, profiles, lease).await,
        }
    }

    async fn take(
        &self,
        worker: &WorkerId,
        profiles: &[Profile],
        id: &JobId,
        lease: Duration,
    ) -> Result<Option<Claimed>, StoreError> {
        if self.runs_jobs_here() {
            return self.store.take(worker, profiles, id, lease).await;
        }
        let job = self.store.job(&Scope::Operator, id).await?;
        let Some(job) = job else { return Ok(None) };
        match self.leave_job(&job).await {
            CarriedBy::DetachedWorker | CarriedBy::NoOne => Ok(None),
            CarriedBy::ThisProcess => self.store.take(worker, profiles, id, lease).await,
        }
    }
}
