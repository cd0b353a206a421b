//! One try at one job: begin or resume at the provider, follow the run, settle. The order of the steps is what
//! makes "never paid twice" true, so it is all here, from top to bottom.

mod limits;
mod notes;
mod settled;

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use outlast_core::rules::{self, Approach, End, Retrying};
use outlast_core::{
    Again, BeginError, Checkpoint, Job, Nature, Provider, RemoteRun, RemoteStop, Resumes, Run,
    Settlement, Step, StoreError,
};

use crate::engine::Shared;
use crate::keeper::Kept;
use limits::{Limits, Start};
use notes::Notes;
use settled::log_settled;

/// After a write the store could not do, before it is tried again; doubles.
const WRITE_AGAIN: Duration = Duration::from_millis(500);
const WRITE_AGAIN_LONGEST: Duration = Duration::from_secs(2);

/// Works on a claimed job until its try is settled or its lease is lost.
pub(crate) async fn work(shared: Arc<Shared>, job: Job, kept: Kept) {
    let Some(provider) = shared.providers.get(&job.new.profile).cloned() else {
        // Claims name the profiles of these providers, so this is a defect; the lease's end will free the job.
        tracing::error!(job.id = %job.id, profile = %job.new.profile, "claimed a job of an unknown profile");
        return;
    };
    let attempt = Attempt {
        shared: &shared,
        provider: &*provider,
        kept: &kept,
        job,
        nature: None,
        not_begun: false,
    };
    attempt.run().await;
}

struct Attempt<'a> {
    shared: &'a Shared,
    provider: &'a dyn Provider,
    kept: &'a Kept,
    job: Job,
    /// What the provider said of the work, once it has.
    nature: Option<Nature>,
    /// Whether the request is known to have begun nothing.
    not_begun: bool,
}

/// The try is over and there is nothing to settle: somebody else has the job, or it has ended.
struct LeaseLost;

impl Attempt<'_> {
    async fn run(mut self) {
        let settlement = match AssertUnwindSafe(self.try_once()).catch_unwind().await {
            Ok(Ok(settlement)) => settlement,
            Ok(Err(LeaseLost)) => {
                return tracing::info!(job.id = %self.job.id, "the job was taken or has ended; this try stops");
            }
            Err(panic) => self.panicked(&*panic),
        };
        self.settle(settlement).await;
    }

    async fn try_once(&mut self) -> Result<Settlement, LeaseLost> {
        let nature = *self.nature.insert(self.provider.nature(&self.job.new.ask));
        let end = match rules::approach(&self.job, nature, self.shared.store.now()) {
            Approach::GiveUp(failure) => return Ok(Settlement::Fail { failure, raw: None }),
            Approach::Begin { key } => self.begin(key).await?,
            Approach::Resume(run) => self.resume(run, nature).await?,
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
            Err(error) => {
                self.not_begun = matches!(error, BeginError::NotSent(_) | BeginError::Refused(_));
                return Ok(End::NotBegun(error));
            }
        };
        let remote = run.remote();
        // Logged before it is stored, so that a run paid for can be found by hand whatever happens next.
        tracing::info!(job.id = %self.job.id, remote.id = remote.short_id(), "remote run begun");
        match self.record(Checkpoint::Running(remote.clone())).await {
            Ok(()) => {
                let limits = Limits::new(&self.job, Start::Fresh, self.shared);
                self.follow(run, limits).await
            }
            Err(LeaseLost) => {
                self.record_late_run(&remote).await;
                Err(LeaseLost)
            }
        }
    }

    async fn resume(&mut self, remote: RemoteRun, nature: Nature) -> Result<End, LeaseLost> {
        tracing::info!(job.id = %self.job.id, remote.id = remote.short_id(), "remote run resumed");
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
            Err(error) if rules::may_begin_again(nature, &error) => {
                tracing::warn!(job.id = %self.job.id, %error, "the remote run is begun anew");
                self.begin(remote.id).await
            }
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
                Ok(Step::Done { output, raw }) => {
                    // The last word before the end, which would replace it before anyone has seen it.
                    self.note(&mut notes).await?;
                    return Ok(End::Done { output, raw });
                }
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
        let mut wait = WRITE_AGAIN;
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
                        () = tokio::time::sleep(wait) => wait = (wait * 2).min(WRITE_AGAIN_LONGEST),
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
    async fn record_late_run(&self, remote: &RemoteRun) {
        let mut wait = WRITE_AGAIN;
        loop {
            match self.shared.store.record_late_run(&self.job.id, remote).await {
                Ok(()) => {
                    return tracing::info!(job.id = %self.job.id, remote.id = remote.short_id(), "cancelled run will be stopped");
                }
                Err(StoreError::LeaseLost | StoreError::NotFound) => {
                    return tracing::error!(job.id = %self.job.id, remote.id = remote.short_id(), "a remote run is left without a job");
                }
                Err(error) => {
                    tracing::error!(job.id = %self.job.id, remote.id = remote.short_id(), %error, "an owed stop is not stored, will try again");
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(WRITE_AGAIN_LONGEST);
                }
            }
        }
    }

    /// The job was cancelled while its request was on the way, and nothing came of it: then there is no run to speak of.
    async fn nothing_to_stop(&self) {
        if !self.not_begun {
            return;
        }
        match self.shared.store.record_stop(&self.job.id, RemoteStop::NotNeeded).await {
            // Not cancelled, but taken by another worker: that one knows better.
            Ok(()) | Err(StoreError::NotFound) => {}
            Err(error) => {
                tracing::warn!(job.id = %self.job.id, %error, "that a cancelled job began no run is not stored")
            }
        }
    }

    /// The adapter's own code failed, perhaps before it said of what nature the work is; then none is assumed.
    fn panicked(&self, panic: &(dyn Any + Send)) -> Settlement {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        tracing::error!(job.id = %self.job.id, panic = text, "the provider panicked");
        let none = Nature { again: Again::Never, resumes: Resumes::Never, stops: false };
        self.verdict(self.nature.unwrap_or(none), End::Panicked)
    }

    fn verdict(&self, nature: Nature, end: End) -> Settlement {
        let retrying = Retrying { base: self.shared.options.retry_base, jitter: fastrand::f64() };
        rules::verdict(&self.job, nature, end, retrying, self.shared.store.now())
    }

    /// Writes the end of the try; repeats while the store cannot and the lease lasts.
    async fn settle(&self, settlement: Settlement) {
        let mut wait = WRITE_AGAIN;
        loop {
            match self.shared.store.settle(self.kept.lease(), settlement.clone()).await {
                Ok(job) => return log_settled(&job, &settlement),
                Err(StoreError::LeaseLost | StoreError::NotFound) => {
                    tracing::warn!(job.id = %self.job.id, "the job was taken or cancelled before this try ended");
                    return self.nothing_to_stop().await;
                }
                Err(error) => {
                    tracing::error!(job.id = %self.job.id, %error, "the end of a try is not stored, will try again");
                    tokio::select! {
                        () = tokio::time::sleep(wait) => wait = (wait * 2).min(WRITE_AGAIN_LONGEST),
                        () = self.kept.lost() => {
                            return tracing::warn!(job.id = %self.job.id, "the job was taken or cancelled before its end was stored");
                        }
                    }
                }
            }
        }
    }
}
