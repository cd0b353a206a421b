//! One attempt at a job: begin or resume at the provider, follow the run, settle. The order of the steps guarantees
//! "never paid twice", so all of it is here, from top to bottom.

mod limits;
mod notes;
mod settled;
mod writes;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use outlast_core::rules::{self, Approach, End};
use outlast_core::{
    BeginError, Checkpoint, Job, Provider, RecoverySemantics, RemoteRun, Run, Settlement, Step,
};

use crate::engine::Engine;
use crate::lease_renewer::RenewedLease;
use crate::shared::Shared;
use crate::wind_downs::WIND_DOWN;
use limits::AttemptLimits;
use notes::Notes;

/// The state in which an attempt finds its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// As the last worker left it.
    Claimed,
    /// Just created, and recorded as about to be sent; nothing was sent.
    AboutToSend,
}

/// Works on a claimed job until its attempt is settled or its lease is lost.
pub(crate) async fn work(shared: Arc<Shared>, mut job: Job, lease: RenewedLease, start: Start) {
    let Some(provider) = shared.providers.get(&job.new.profile).cloned() else {
        // Claims name the profiles of these providers, so this is a defect. The job is free again when the lease
        // ends.
        tracing::error!(job.id = %job.id, profile = %job.new.profile, "claimed a job of an unknown profile");
        return;
    };
    let prepared = match (start, &mut job.checkpoint) {
        (Start::AboutToSend, checkpoint @ Checkpoint::Beginning { .. }) => {
            // Nothing was sent, so the attempt begins like a new one; only its record exists already.
            Some(std::mem::replace(checkpoint, Checkpoint::NotBegun))
        }
        (Start::AboutToSend | Start::Claimed, _) => None,
    };
    let attempt = Attempt {
        shared: &shared,
        provider: &*provider,
        lease: &lease,
        job,
        semantics: None,
        prepared,
        not_begun: false,
    };
    let ended = attempt.run().await;
    shared.wakeups.try_is_over(&lease.lease().job);
    if let Some(report) = ended.filter(|_| shared.options.check_reports) {
        Engine { shared: Arc::clone(&shared) }.check_new_report(&report).await;
    }
}

struct Attempt<'a> {
    shared: &'a Shared,
    provider: &'a dyn Provider,
    lease: &'a RenewedLease,
    job: Job,
    /// The recovery semantics of the request, once the provider has stated them.
    semantics: Option<RecoverySemantics>,
    /// The checkpoint of the next send, if it was recorded together with the job.
    prepared: Option<Checkpoint>,
    /// True if the request is known to have begun nothing.
    not_begun: bool,
}

/// The attempt is over and there is nothing to settle: another worker has the job or may have it, or it has ended.
struct LeaseLost;

impl Attempt<'_> {
    /// Returns the job as it was settled.
    async fn run(mut self) -> Option<Job> {
        let settlement = match AssertUnwindSafe(self.try_once()).catch_unwind().await {
            Ok(Ok(settlement)) => settlement,
            Ok(Err(LeaseLost)) => {
                tracing::info!(job.id = %self.job.id, "another worker has the job or may have it, or it has ended; this try stops");
                return None;
            }
            Err(panic) => self.settle_panic(&*panic),
        };
        // The checkpoint says that the request is about to be sent, but it was not sent.
        if self.prepared.take().is_some() && self.record(Checkpoint::NotBegun).await.is_err() {
            return None;
        }
        self.settle(settlement).await
    }

    async fn try_once(&mut self) -> Result<Settlement, LeaseLost> {
        let semantics =
            *self.semantics.insert(self.provider.recovery_semantics(&self.job.new.request));
        let end = match rules::approach(&self.job, semantics, self.shared.store.now()) {
            Approach::GiveUp(failure) => return Ok(Settlement::Fail { failure, raw: None }),
            Approach::Begin { key } => self.begin(key).await?,
            Approach::Resume(run) => self.resume(run, semantics).await?,
        };
        Ok(self.verdict(semantics, end))
    }

    /// Sends the request. The records before and after it decide the cost of a crash here.
    async fn begin(&mut self, key: String) -> Result<End, LeaseLost> {
        // Nothing is bought during a shutdown, nor for a job whose time is over.
        if self.shared.stop.is_asked() {
            return Ok(End::Interrupted);
        }
        if rules::life_ends_at(&self.job).is_some_and(|end| end <= self.shared.store.now()) {
            return Ok(End::LifeEnded);
        }
        // Written before anything is sent: after a crash no worker may send it a second time by accident.
        let beginning = Checkpoint::Beginning { key: key.clone() };
        match self.prepared.take() {
            Some(prepared) if prepared == beginning => self.job.checkpoint = beginning,
            Some(_) | None => self.record(beginning).await?,
        }
        // Never dropped half-way, not even by a cancel or a stop: it may have bought something.
        let run = match self.provider.begin(&self.shared.capped_request(&self.job), &key).await {
            Ok(run) => run,
            Err(error) => {
                self.not_begun = matches!(error, BeginError::NotSent(_) | BeginError::Refused(_));
                return Ok(End::NotBegun(error));
            }
        };
        let remote = run.remote();
        // Logged before it is stored, so that a person can find a paid run whatever happens next.
        tracing::info!(job.id = %self.job.id, remote.id = remote.short_id(), "remote run begun");
        match self.record(Checkpoint::Running(remote.clone())).await {
            Ok(()) => {
                let limits = AttemptLimits::new(&self.job, limits::RunOrigin::Fresh, self.shared);
                self.follow(run, limits).await
            }
            Err(LeaseLost) => {
                self.record_late_run(&remote).await;
                Err(LeaseLost)
            }
        }
    }

    async fn resume(
        &mut self,
        remote: RemoteRun,
        semantics: RecoverySemantics,
    ) -> Result<End, LeaseLost> {
        tracing::info!(job.id = %self.job.id, remote.id = remote.short_id(), "remote run resumed");
        let limits = AttemptLimits::new(&self.job, limits::RunOrigin::Resumed, self.shared);
        let request = self.shared.capped_request(&self.job);
        // Unlike a begin it buys nothing, so a worker that is shutting down does not wait for it.
        let resumed = tokio::select! {
            resumed = self.provider.resume(&request, &remote) => resumed,
            () = self.lease.wait_until_lost() => return Err(LeaseLost),
            () = self.shared.stop.wait() => return Ok(End::Interrupted),
            end = limits.wait_for_limit() => return Ok(end),
        };
        match resumed {
            Ok(run) => self.follow(run, limits).await,
            Err(error) if rules::may_begin_again(semantics, &error) => {
                tracing::warn!(job.id = %self.job.id, %error, "the provider no longer knows the run, a new one is begun");
                self.begin(remote.id).await
            }
            Err(error) => Ok(End::Broken(error)),
        }
    }

    /// Follows the run to its end, or until something else ends the attempt.
    async fn follow(
        &mut self,
        mut run: Box<dyn Run>,
        mut limits: AttemptLimits,
    ) -> Result<End, LeaseLost> {
        run.set_journal(self.shared.journal(self.lease.lease()));
        let mut notes = Notes::new();
        loop {
            // A run that is done in this process and could go on elsewhere must not outlast the lease. If the
            // provider cannot stop the run, ending the attempt gains nothing: its answer may still be recorded.
            let is_fenced = self.semantics.is_some_and(|semantics| {
                semantics.can_stop && semantics.resume.works_here(&run.remote())
            });
            let step = {
                let next = run.next();
                tokio::pin!(next);
                loop {
                    tokio::select! {
                        step = &mut next => break Ok(step),
                        () = notes.due() => self.note(&mut notes).await?,
                        () = self.lease.wait_until_lost() => return Err(LeaseLost),
                        () = self.lease.wait_until_expired(), if is_fenced => return Err(LeaseLost),
                        () = self.shared.stop.wait() => break Err(End::Interrupted),
                        () = limits.nearly_reached() => limits.warn_of_timeout(&self.job),
                        end = limits.wait_for_limit() => match next.as_mut().now_or_never() {
                            // The step was ready in time, and is only seen late.
                            Some(step) => break Ok(step),
                            None => break Err(end),
                        },
                    }
                }
            };
            let step = match step {
                Ok(step) => step,
                Err(end) => {
                    self.wind_down(&mut *run, is_fenced).await?;
                    return Ok(end);
                }
            };
            match step {
                Ok(Step::Progress(progress)) => {
                    notes.latest = Some(progress);
                    // Only between steps: a step that is dropped to read the text may be the one that costs money.
                    if let Some(text) = notes.text_to_show(self.lease.count_held(), || run.text()) {
                        self.show_text(&text).await?;
                    }
                }
                Ok(Step::Moved) => self.record(Checkpoint::Running(run.remote())).await?,
                Ok(Step::Wait) => return Ok(End::Waiting),
                Ok(Step::Cancel) => return self.cancel().await,
                Ok(Step::Done { output, raw }) => {
                    // Shows the last progress before the end, which would replace it before anyone has seen it.
                    if notes.has_begun() {
                        self.note(&mut notes).await?;
                    }
                    return Ok(End::Done { output, raw });
                }
                Err(error) => return Ok(End::Broken(error)),
            }
        }
    }

    /// Lets the run record its steps in flight before it is dropped, as long as this worker has the lease.
    async fn wind_down(&self, run: &mut dyn Run, is_fenced: bool) -> Result<(), LeaseLost> {
        let _counted = self.shared.wind_downs.begin();
        tokio::select! {
            () = run.wind_down(WIND_DOWN) => Ok(()),
            () = self.lease.wait_until_lost() => Err(LeaseLost),
            () = self.lease.wait_until_expired(), if is_fenced => Err(LeaseLost),
            () = tokio::time::sleep(WIND_DOWN) => Ok(()),
        }
    }
}
