//! Leaves jobs to detached workers. If no worker can be started, the jobs are run here. Once the configuration has
//! changed, no process claims a job any more: jobs are left to a worker of the present configuration.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use outlast_core::{
    BoxError, Job, JobId, NewJob, Profile, ResearchKind, Scope, StateKind, Store, StoreError,
};
use tokio::sync::Notify;

use crate::wakeups::lock;

/// By this time a running worker has taken the job that it was notified of, or has it in its queue.
const TAKEN_BY_NOW: Duration = Duration::from_secs(1);
/// The pause after a job that no worker could take.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// Starts detached workers, and notifies them of waiting jobs.
pub trait DetachedWorkers: Send + Sync {
    /// Returns true while the configuration is the one that this process has read.
    fn is_current(&self) -> bool;

    /// Notifies the worker of the configuration that this process has read, and starts it if there is none.
    fn notify_own(&self, jobs: WaitingJobs) -> BoxFuture<'_, Result<(), BoxError>>;

    /// Notifies the worker of the present configuration, and starts it if there is none.
    fn notify_present(&self, jobs: WaitingJobs) -> BoxFuture<'_, Result<(), BoxError>>;

    /// Returns true while the worker that was last notified is running.
    fn is_running(&self) -> BoxFuture<'_, bool>;
}

/// The jobs that a worker is notified of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitingJobs {
    /// Those in the queue.
    Queue,
    /// A held call, which is not in the queue.
    HeldCall(JobId),
}

/// The process that runs a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobRunner {
    DetachedWorker,
    ThisProcess,
    /// The job waits until a worker of the present configuration can be started.
    None,
}

/// Leaves the jobs of one process to detached workers.
pub struct Handover {
    workers: Arc<dyn DetachedWorkers>,
    /// True if this process runs its jobs itself, by its configuration or because no worker can be started.
    runs_here: AtomicBool,
    /// The last logged reason for leaving jobs to a worker of the present configuration, or to no one.
    logged: Mutex<String>,
    /// Notified when no worker could be started.
    fell_back: Notify,
    /// Notified when a job was left to the worker.
    left: Notify,
    /// Notified when no worker could take a job.
    left_to_no_one: Notify,
}

impl Handover {
    /// Creates the handover of a process whose jobs are run by `runner` while the configuration is current.
    pub(crate) fn new(workers: Arc<dyn DetachedWorkers>, runner: JobRunner) -> Self {
        Self {
            workers,
            runs_here: AtomicBool::new(runner == JobRunner::ThisProcess),
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
            () = self.has_lost_worker() => {}
            () = self.left_to_no_one.notified() => tokio::time::sleep(TRY_AGAIN).await,
        }
    }

    async fn has_lost_worker(&self) {
        loop {
            self.left.notified().await;
            tokio::time::sleep(TAKEN_BY_NOW).await;
            if !self.workers.is_running().await {
                return;
            }
        }
    }

    fn is_current(&self) -> bool {
        self.workers.is_current()
    }

    /// Returns true if this process runs its jobs itself.
    fn runs_jobs_here(&self) -> bool {
        self.runs_here.load(Ordering::Acquire) && self.is_current()
    }

    /// Returns whether this process runs a new job.
    pub(crate) fn runs_here(&self, job: &NewJob) -> bool {
        self.runs_jobs_here() || is_quick(job) && self.is_current()
    }

    /// Returns whether this process may claim jobs from the queue. If not, it leaves waiting jobs to a worker.
    pub(crate) async fn may_claim(
        &self,
        store: &dyn Store,
        profiles: &[Profile],
    ) -> Result<bool, StoreError> {
        Ok(self.runs_jobs_here()
            || store.count_queued(profiles).await? > 0
                && self.leave(WaitingJobs::Queue).await == JobRunner::ThisProcess)
    }

    /// Returns whether this process may claim this job. If not, it leaves the job to a worker.
    pub(crate) async fn may_take(&self, store: &dyn Store, id: &JobId) -> Result<bool, StoreError> {
        if self.runs_jobs_here() {
            return Ok(true);
        }
        let Some(job) = store.job(&Scope::Operator, id).await? else { return Ok(false) };
        Ok(self.leave_job(&job).await == JobRunner::ThisProcess)
    }

    /// Leaves a job to the worker if it waits, except for quick answers.
    pub(crate) async fn leave_job(&self, job: &Job) -> JobRunner {
        if is_quick(&job.new) && self.is_current() || job.state.kind() != StateKind::Queued {
            return JobRunner::ThisProcess;
        }
        self.leave(match job.new.visibility.goes_through_queue() {
            true => WaitingJobs::Queue,
            false => WaitingJobs::HeldCall(job.id),
        })
        .await
    }

    /// Notifies the detached worker, and starts it if there is none.
    async fn leave(&self, jobs: WaitingJobs) -> JobRunner {
        if !self.is_current() {
            return self.leave_to_present(jobs).await;
        }
        if self.runs_here.load(Ordering::Acquire) {
            return JobRunner::ThisProcess;
        }
        let Err(error) = self.workers.notify_own(jobs).await else {
            self.left.notify_one();
            return JobRunner::DetachedWorker;
        };
        // The worker reads the file itself, and refuses to start if it is no longer the one that this process has read.
        if !self.is_current() {
            return self.leave_to_present(jobs).await;
        }
        if !self.runs_here.swap(true, Ordering::AcqRel) {
            let error = format!("{error:#}");
            tracing::warn!(%error, "no worker can be started beside this server; its jobs run here and stop with it");
            self.fell_back.notify_one();
        }
        JobRunner::ThisProcess
    }

    /// Notifies the worker of the present configuration. This process must not run the job: its command lines and
    /// settings are outdated.
    async fn leave_to_present(&self, jobs: WaitingJobs) -> JobRunner {
        match self.workers.notify_present(jobs).await {
            Ok(()) => {
                self.log_once("the configuration file has changed since this process read it: jobs go to a worker of the present file".to_owned());
                self.left.notify_one();
                JobRunner::DetachedWorker
            }
            Err(error) => {
                self.log_once(format!("the configuration file has changed since this process read it, and no worker of the present file can be started; jobs wait: {error:#}"));
                self.left_to_no_one.notify_one();
                JobRunner::None
            }
        }
    }

    fn log_once(&self, message: String) {
        let mut logged = lock(&self.logged);
        if *logged != message {
            tracing::warn!("{message}");
            *logged = message;
        }
    }
}

impl fmt::Debug for Handover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handover").field("runs_here", &self.runs_here).finish_non_exhaustive()
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
