//! The store of a stdio server that leaves its jobs to a detached worker (H1). It looks like any other store, so that the engine
//! knows nothing of it: what the engine's own worker asks for goes to the detached one, except quick answers. Where no worker can
//! be started, everything goes through from then on, and this process carries its jobs itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{
    AskKind, Claimed, Insert, Inserted, Job, JobId, NewJob, Profile, Scope, StateKind, Store,
    StoreError, StoreMethod, StoreWrapper, WorkerId,
};
use serde::Deserialize as _;
use tokio::sync::Notify;

use crate::detached::WorkerStarter;
use crate::detached::socket::Message;

/// A worker that lives has taken by then what it was told of, or has it in its queue.
const TAKEN_BY_NOW: Duration = Duration::from_secs(1);

/// The store of a front.
pub(crate) struct FrontStore {
    store: Arc<dyn Store>,
    starter: WorkerStarter,
    /// No worker can be started: this process carries its jobs itself.
    carries_itself: AtomicBool,
    /// Rung when that was found out.
    fell_back: Notify,
    /// Rung when something was left to the worker.
    left: Notify,
}

/// Who carries a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CarriedBy {
    DetachedWorker,
    ThisProcess,
}

impl FrontStore {
    pub(crate) fn new(store: Arc<dyn Store>, starter: WorkerStarter) -> Self {
        let (fell_back, left) = (Notify::new(), Notify::new());
        Self { store, starter, carries_itself: AtomicBool::new(false), fell_back, left }
    }

    /// Waits until the worker of this process should look for jobs again: it turned out that this process must carry them
    /// itself, or the detached worker may have been killed before it took what was left to it.
    pub(crate) async fn must_look_again(&self) {
        tokio::select! {
            () = self.fell_back.notified() => {}
            () = self.lost_its_worker() => {}
        }
    }

    async fn lost_its_worker(&self) {
        loop {
            self.left.notified().await;
            tokio::time::sleep(TAKEN_BY_NOW).await;
            if !self.starter.is_there() {
                return;
            }
        }
    }

    /// Tells the detached worker; it is started if there is none.
    async fn leave(&self, message: Message) -> CarriedBy {
        if self.carries_itself.load(Ordering::Acquire) {
            return CarriedBy::ThisProcess;
        }
        let Err(error) = self.starter.tell(message).await else {
            self.left.notify_one();
            return CarriedBy::DetachedWorker;
        };
        if !self.carries_itself.swap(true, Ordering::AcqRel) {
            let error = format!("{error:#}");
            tracing::warn!(%error, "no worker can be started beside this server; its jobs are carried here and stop with it");
            self.fell_back.notify_one();
        }
        CarriedBy::ThisProcess
    }

    /// Leaves a job that waits to the worker.
    async fn leave_job(&self, job: &Job) -> CarriedBy {
        if job.state.kind() != StateKind::Queued || is_quick(&job.new) {
            return CarriedBy::ThisProcess;
        }
        self.leave(match job.new.visibility.goes_through_queue() {
            true => Message::Look,
            false => Message::Carry(job.id),
        })
        .await
    }
}

/// Whether the answer comes in seconds: not worth a second process.
fn is_quick(job: &NewJob) -> bool {
    if job.profile.provider() == Profile::WORKFLOW || job.visibility.goes_through_queue() {
        return false;
    }
    match job.ask.get("kind").map(AskKind::deserialize) {
        Some(Ok(AskKind::Search | AskKind::Ask | AskKind::Reason | AskKind::Results)) => true,
        Some(Ok(AskKind::Research) | Err(_)) | None => false,
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
            // What a worker would do with these, a front may do.
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

    /// The caller is answered when a worker knows of the job: a client that leaves at once must not take it along.
    async fn insert(&self, mut insert: Insert) -> Result<Inserted, StoreError> {
        let carries_itself = self.carries_itself.load(Ordering::Acquire);
        insert.carrier = insert.carrier.filter(|_| carries_itself || is_quick(&insert.job));
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
        let carries_itself = self.carries_itself.load(Ordering::Acquire);
        if !carries_itself && self.store.queued(profiles).await? == 0 {
            return Ok(None);
        }
        match self.leave(Message::Look).await {
            CarriedBy::DetachedWorker => Ok(None),
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
        let job = self.store.job(&Scope::Operator, id).await?;
        let Some(job) = job else { return Ok(None) };
        match self.leave_job(&job).await {
            CarriedBy::DetachedWorker => Ok(None),
            CarriedBy::ThisProcess => self.store.take(worker, profiles, id, lease).await,
        }
    }
}
