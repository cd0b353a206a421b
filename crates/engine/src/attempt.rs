//! One try at one job: begin or resume at the provider, follow the run, settle. The order of the steps is what
//! makes "never paid twice" true, so it is all here, from top to bottom.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use outlast_core::rules::{self, Approach, End, Retrying};
use outlast_core::{
    Again, Checkpoint, Cost, Failure, Job, JobState, Nature, Progress, Provider, RemoteRun, Run,
    Settlement, Step, StoreError,
};
use tokio::time::Instant;

use crate::engine::Shared;
use crate::keeper::Kept;

/// Progress is written at most this often for each job; the last word wins.
const NOTE_EVERY: Duration = Duration::from_millis(250);
/// A job resumed after its life has run out gets this long for one look at its run.
const LAST_LOOK: Duration = Duration::from_secs(20);
/// After a settlement that could not be written, before it is written again; doubles.
const SETTLE_AGAIN: Duration = Duration::from_millis(500);
const SETTLE_AGAIN_LONGEST: Duration = Duration::from_secs(10);

/// Works on a claimed job until its try is settled or its lease is lost.
pub(crate) async fn work(shared: Arc<Shared>, job: Job, kept: Kept) {
    let Some(provider) = shared.providers.get(&job.new.profile).cloned() else {
        // Claims name the profiles of these providers, so this is a defect; the lease's end will free the job.
        tracing::error!(job.id = %job.id, profile = %job.new.profile, "claimed a job of an unknown profile");
        return;
    };
    let attempt = Attempt { shared: &shared, provider: &*provider, kept: &kept, job };
    attempt.run().await;
}

struct Attempt<'a> {
    shared: &'a Shared,
    provider: &'a dyn Provider,
    kept: &'a Kept,
    job: Job,
}

/// The try is over and there is nothing to settle: somebody else has the job, or it has ended.
struct LeaseLost;

impl Attempt<'_> {
    async fn run(mut self) {
        let settlement = match AssertUnwindSafe(self.try_once()).catch_unwind().await {
            Ok(Ok(settlement)) => settlement,
            Ok(Err(LeaseLost)) => return,
            Err(panic) => self.panicked(&*panic),
        };
        self.settle(settlement).await;
    }

    async fn try_once(&mut self) -> Result<Settlement, LeaseLost> {
        let nature = self.provider.nature(&self.job.new.ask);
        let end = match rules::approach(&self.job, nature, self.shared.store.now()) {
            Approach::GiveUp(failure) => return Ok(Settlement::Fail { failure, raw: None }),
            Approach::Begin { key } => self.begin(key).await?,
            Approach::Resume(run) => self.resume(run).await?,
        };
        Ok(self.verdict(nature, end))
    }

    /// Sends the request. What is recorded before and after it decides what a crash here costs.
    async fn begin(&mut self, key: String) -> Result<End, LeaseLost> {
        // Nothing is bought on the way out, nor for a job whose time is up.
        if self.shared.stop.is_asked() {
            return Ok(End::Interrupted);
        }
        if rules::life_ends_at(&self.job).is_some_and(|end| end <= self.shared.store.now()) {
            return Ok(End::LifeEnded);
        }
        // Written before anything is sent: after a crash nobody may send it again by accident.
        self.record(Checkpoint::Beginning { key: key.clone() }).await?;
        // Never dropped half-way, not by a cancel and not by a stop: it may have bought something.
        let run = match self.provider.begin(&self.job.new.ask, &key).await {
            Ok(run) => run,
            Err(error) => return Ok(End::NotBegun(error)),
        };
        let remote = run.remote();
        // Logged before it is stored, so that a run paid for can be found by hand whatever happens next.
        tracing::info!(job.id = %self.job.id, remote.id = remote.id, "remote run begun");
        match self.record(Checkpoint::Running(remote.clone())).await {
            Ok(()) => {
                let limits = Limits::new(&self.job, Start::Fresh, self.shared);
                self.follow(run, limits).await
            }
            Err(LeaseLost) => {
                self.owe(&remote).await;
                Err(LeaseLost)
            }
        }
    }

    async fn resume(&mut self, remote: RemoteRun) -> Result<End, LeaseLost> {
        tracing::info!(job.id = %self.job.id, remote.id = remote.id, "remote run resumed");
        let limits = Limits::new(&self.job, Start::Resumed, self.shared);
        // Unlike a begin it buys nothing, so nobody has to wait for it.
        let resumed = tokio::select! {
            resumed = self.provider.resume(&remote) => resumed,
            () = self.kept.lost() => return Err(LeaseLost),
            () = self.shared.stop.asked() => return Ok(End::Interrupted),
            end = limits.reached() => return Ok(end),
        };
        match resumed {
            Ok(run) => self.follow(run, limits).await,
            Err(error) => Ok(End::Broken(error)),
        }
    }

    /// Follows the run to its end, or to whatever ends the try first.
    async fn follow(
        &mut self,
        mut run: Box<dyn Run>,
        mut limits: Limits,
    ) -> Result<End, LeaseLost> {
        let mut notes = Notes::default();
        loop {
            let step = {
                let next = run.next();
                tokio::pin!(next);
                loop {
                    tokio::select! {
                        step = &mut next => break step,
                        () = notes.due() => self.note(&mut notes).await?,
                        () = self.kept.lost() => return Err(LeaseLost),
                        () = self.shared.stop.asked() => return Ok(End::Interrupted),
                        () = limits.nearly_reached() => self.warn_of_timeout(&mut limits),
                        end = limits.reached() => match next.as_mut().now_or_never() {
                            // It was there in time, and is only seen late.
                            Some(step) => break step,
                            None => return Ok(end),
                        },
                    }
                }
            };
            match step {
                Ok(Step::Progress(progress)) => notes.latest = Some(progress),
                Ok(Step::Moved) => self.record(Checkpoint::Running(run.remote())).await?,
                Ok(Step::Done { output, raw }) => return Ok(End::Done { output, raw }),
                Err(error) => return Ok(End::Broken(error)),
            }
        }
    }

    fn warn_of_timeout(&self, limits: &mut Limits) {
        limits.warn = None;
        let timeout_ms = self.job.new.attempt_timeout.as_millis();
        tracing::warn!(job.id = %self.job.id, timeout_ms, "80 % of the time for this try is used up");
    }

    /// Makes a checkpoint durable; repeats while the store cannot and the lease lasts.
    async fn record(&mut self, checkpoint: Checkpoint) -> Result<(), LeaseLost> {
        let mut wait = SETTLE_AGAIN;
        loop {
            match self.shared.store.checkpoint(self.kept.lease(), &checkpoint).await {
                Ok(()) => {
                    self.job.checkpoint = checkpoint;
                    return Ok(());
                }
                Err(StoreError::LeaseLost | StoreError::NotFound) => return Err(LeaseLost),
                Err(error) => {
                    tracing::error!(job.id = %self.job.id, %error, "checkpoint not stored, will try again");
                    tokio::select! {
                        () = tokio::time::sleep(wait) => wait = (wait * 2).min(SETTLE_AGAIN_LONGEST),
                        () = self.kept.lost() => return Err(LeaseLost),
                    }
                }
            }
        }
    }

    async fn note(&self, notes: &mut Notes) -> Result<(), LeaseLost> {
        let Some(progress) = notes.take() else { return Ok(()) };
        match self.shared.store.note(self.kept.lease(), &progress).await {
            Ok(()) => Ok(()),
            Err(StoreError::LeaseLost | StoreError::NotFound) => Err(LeaseLost),
            Err(error) => {
                // Progress may be lost; the run may not.
                tracing::warn!(job.id = %self.job.id, %error, "progress not stored");
                Ok(())
            }
        }
    }

    /// The job was cancelled while its request was on the way: the run that came of it must be stopped.
    async fn owe(&self, remote: &RemoteRun) {
        let mut wait = SETTLE_AGAIN;
        loop {
            match self.shared.store.owe(&self.job.id, remote).await {
                Ok(()) => {
                    return tracing::info!(job.id = %self.job.id, remote.id = remote.id, "cancelled run will be stopped");
                }
                Err(StoreError::LeaseLost | StoreError::NotFound) => {
                    return tracing::error!(job.id = %self.job.id, remote.id = remote.id, "a remote run is left without a job");
                }
                Err(error) => {
                    tracing::error!(job.id = %self.job.id, remote.id = remote.id, %error, "an owed stop is not stored, will try again");
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(SETTLE_AGAIN_LONGEST);
                }
            }
        }
    }

    /// The adapter's own code failed, perhaps before it said of what nature it is, so none is assumed.
    fn panicked(&self, panic: &(dyn Any + Send)) -> Settlement {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        tracing::error!(job.id = %self.job.id, panic = text, "the provider panicked");
        let nature = Nature { again: Again::Never, resumes: false, stops: false };
        self.verdict(nature, End::Panicked)
    }

    fn verdict(&self, nature: Nature, end: End) -> Settlement {
        let retrying = Retrying { base: self.shared.options.retry_base, jitter: fastrand::f64() };
        rules::verdict(&self.job, nature, end, retrying, self.shared.store.now())
    }

    /// Writes the end of the try; repeats while the store cannot and the lease lasts.
    async fn settle(&self, settlement: Settlement) {
        let mut wait = SETTLE_AGAIN;
        loop {
            match self.shared.store.settle(self.kept.lease(), settlement.clone()).await {
                Ok(job) => return log_settled(&job, &settlement),
                Err(StoreError::LeaseLost | StoreError::NotFound) => {
                    return tracing::warn!(job.id = %self.job.id, "the job was taken or cancelled before this try ended");
                }
                Err(error) => {
                    tracing::error!(job.id = %self.job.id, %error, "the end of a try is not stored, will try again");
                    tokio::select! {
                        () = tokio::time::sleep(wait) => wait = (wait * 2).min(SETTLE_AGAIN_LONGEST),
                        () = self.kept.lost() => {
                            return tracing::warn!(job.id = %self.job.id, "the job was taken or cancelled before its end was stored");
                        }
                    }
                }
            }
        }
    }
}

/// Whether a run was just begun or taken up from an earlier process.
#[derive(Clone, Copy)]
enum Start {
    Fresh,
    Resumed,
}

/// The two clocks over a try.
struct Limits {
    attempt: Option<Instant>,
    /// When to warn; once.
    warn: Option<Instant>,
    life: Option<Instant>,
}

impl Limits {
    fn new(job: &Job, start: Start, shared: &Shared) -> Self {
        let now = Instant::now();
        let life = rules::life_ends_at(job).and_then(|end| {
            let left = end.since(shared.store.now());
            now.checked_add(match start {
                Start::Fresh => left,
                Start::Resumed => left.max(LAST_LOOK),
            })
        });
        let timeout = job.new.attempt_timeout;
        let warn = now.checked_add(timeout.mul_f64(0.8));
        Self { attempt: now.checked_add(timeout), warn, life }
    }

    /// Waits until it is time to warn. Cancel-safe.
    async fn nearly_reached(&self) {
        until(self.warn).await;
    }

    /// Waits until one of them ends the try. Cancel-safe.
    async fn reached(&self) -> End {
        tokio::select! {
            biased;
            () = until(self.life) => End::LifeEnded,
            () = until(self.attempt) => End::AttemptTimedOut,
        }
    }
}

/// Waits until then, or for ever.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// Progress that waits to be written.
#[derive(Default)]
struct Notes {
    latest: Option<Progress>,
    not_before: Option<Instant>,
}

impl Notes {
    /// Waits until there is something to write and it is time. Cancel-safe.
    async fn due(&self) {
        match (&self.latest, self.not_before) {
            (Some(_), None) => {}
            (Some(_), moment) => until(moment).await,
            (None, _) => until(None).await,
        }
    }

    fn take(&mut self) -> Option<Progress> {
        self.not_before = Some(Instant::now() + NOTE_EVERY);
        self.latest.take()
    }
}

fn log_settled(job: &Job, settlement: &Settlement) {
    let retries = job.failures.len();
    match settlement {
        Settlement::Succeed { output, raw: _ } => {
            let cost = match output.cost {
                Cost::Reported(cost) | Cost::Computed(cost) | Cost::Estimate(cost) => {
                    Some(cost.to_string())
                }
                Cost::Unknown => None,
            };
            let duration_ms = job.ended_at().map(|end| end.since(job.created_at).as_millis());
            tracing::info!(job.id = %job.id, duration_ms, tokens = output.usage.total_tokens, cost, retries, "Job completed");
        }
        Settlement::Retry { failure, wait, checkpoint: _ } => {
            let wait_ms = wait.as_millis();
            log_failure(job, failure);
            tracing::info!(job.id = %job.id, retries, wait_ms, "Job will be retried");
        }
        Settlement::Fail { failure, raw: _ } => log_failure(job, failure),
        Settlement::Release => tracing::info!(job.id = %job.id, "Job given back"),
    }
}

fn log_failure(job: &Job, failure: &Failure) {
    let outcome = if matches!(job.state, JobState::Failed { .. }) { "permanent" } else { "retry" };
    tracing::warn!(
        job.id = %job.id, code = %failure.code, error = failure.message, detail = failure.detail, outcome,
        "Job failed"
    );
}
