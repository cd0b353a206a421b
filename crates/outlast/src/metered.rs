//! Counts the calls of providers and the writes to the store, so that the path itself does not depend on metrics.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{
    AnswerOutcome, BeginError, CancelOutcome, Cost, Fence, FollowUp, InsertOutcome, Job, JobId,
    NanoUsd, Observer, Provider, ProviderError, ProviderErrorKind, QuestionEvent,
    RecoverySemantics, RemoteRun, Request, Run, RunJournal, Settlement, StateKind, Step,
    StopOutcome, Store, StoreEvent,
};
use outlast_engine::Providers;
use outlast_server::{Metrics, citation_check};
use tokio::time::Instant;

/// Returns the same providers, with their calls counted.
pub(crate) fn providers(providers: Providers, metrics: &Arc<Metrics>) -> Providers {
    let metered = |provider: Arc<dyn Provider>| -> Arc<dyn Provider> {
        Arc::new(MeteredProvider { provider, metrics: Arc::clone(metrics) })
    };
    providers.into_iter().map(|(profile, provider)| (profile, metered(provider))).collect()
}

/// Counts the writes to the store, and the jobs that begin and end here.
pub(crate) struct WriteCounter {
    metrics: Arc<Metrics>,
    /// The times at which running jobs were claimed here.
    claimed: Mutex<HashMap<JobId, Instant>>,
}

/// The maximum number of running jobs that are timed: a job whose lease is lost unnoticed leaves its entry behind.
const MAX_TIMED: usize = 20_000;

impl WriteCounter {
    pub(crate) fn new(metrics: Arc<Metrics>) -> Self {
        Self { metrics, claimed: Mutex::default() }
    }

    fn lock_claims(&self) -> MutexGuard<'_, HashMap<JobId, Instant>> {
        self.claimed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start_timer(&self, id: JobId) {
        let mut claimed = self.lock_claims();
        if claimed.len() < MAX_TIMED {
            claimed.insert(id, Instant::now());
        }
    }

    fn count_settlement(&self, job: &Job, settlement: &Settlement) {
        let (attempt, cost) = match settlement {
            Settlement::Succeed { output, .. } => ("succeeded", output.cost),
            Settlement::Retry { .. } => ("retried", Cost::Unknown),
            Settlement::Fail { .. } => ("failed", Cost::Unknown),
            Settlement::Release | Settlement::Wait => ("given_back", Cost::Unknown),
        };
        if let Some(claimed) = self.lock_claims().remove(&job.id) {
            self.metrics.ran(&job.new.workflow, claimed.elapsed());
        }
        self.metrics.count_attempt(&job.new.owner, attempt);
        self.metrics.count_spend(&job.new.owner, job.new.profile.provider(), cost);
        if let Some(check) = citation_check(job) {
            self.metrics.count_citation_check(&job.new.owner, &check);
        }
        self.count_end(job);
    }

    fn count_end(&self, job: &Job) {
        let state = job.state.kind();
        if state.is_terminal() {
            self.metrics.job_ended(&job.new.owner, &job.new.workflow, state);
        }
    }
}

impl Observer for WriteCounter {
    fn observe<'a>(&'a self, event: &StoreEvent<'a>) -> Option<FollowUp<'a>> {
        match *event {
            StoreEvent::Inserted(InsertOutcome::New(job)) => {
                self.metrics.job_started(&job.new.owner, &job.new.workflow);
                if job.state.kind() == StateKind::Running {
                    self.start_timer(job.id);
                }
            }
            StoreEvent::Claimed { job, now } => {
                self.start_timer(job.id);
                if job.fence == Fence(1) {
                    self.metrics.queue_waited(&job.new.workflow, now.since(job.created_at));
                }
            }
            StoreEvent::Renewed { lost } => self.lock_claims().retain(|id, _| !lost.contains(id)),
            StoreEvent::Settled { job, settlement } => self.count_settlement(job, settlement),
            StoreEvent::Cancelled(CancelOutcome::Now(job)) => {
                self.lock_claims().remove(&job.id);
                self.count_end(job);
            }
            StoreEvent::Inserted(InsertOutcome::Existing { .. })
            | StoreEvent::Cancelled(CancelOutcome::Already(_))
            | StoreEvent::Checkpointed
            | StoreEvent::Answered(AnswerOutcome::Refused(_))
            | StoreEvent::StopRecorded => {}
            StoreEvent::Asked { job, event } => {
                let outcome = match event {
                    QuestionEvent::Asked => "asked",
                    QuestionEvent::TimedOut => "timed_out",
                };
                self.metrics.count_question(&job.new.owner, &job.new.workflow, outcome);
            }
            StoreEvent::Answered(AnswerOutcome::Accepted(job)) => {
                self.metrics.count_question(&job.new.owner, &job.new.workflow, "answered");
            }
            // Not counted as writes: other writes follow.
            StoreEvent::Taken(job) => {
                self.start_timer(job.id);
                return None;
            }
            StoreEvent::Noted | StoreEvent::Deleting { .. } | StoreEvent::Deleted { .. } => {
                return None;
            }
            StoreEvent::WriteFailed(error) => {
                self.metrics.store_refused(error);
                return None;
            }
        }
        self.metrics.store_wrote();
        None
    }
}

/// A provider whose calls are counted.
struct MeteredProvider {
    provider: Arc<dyn Provider>,
    metrics: Arc<Metrics>,
}

impl MeteredProvider {
    fn run(&self, run: Box<dyn Run>) -> Box<dyn Run> {
        let provider = self.provider.name();
        Box::new(MeteredRun { run, provider, metrics: Arc::clone(&self.metrics) })
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods, reason = "a default would answer for the provider within")]
impl Provider for MeteredProvider {
    fn name(&self) -> &'static str {
        self.provider.name()
    }

    fn recovery_semantics(&self, request: &Request) -> RecoverySemantics {
        self.provider.recovery_semantics(request)
    }

    fn expected_model(&self, request: &Request) -> Option<String> {
        self.provider.expected_model(request)
    }

    fn typical_cost(&self, request: &Request) -> Cost {
        self.provider.typical_cost(request)
    }

    fn default_cap(&self, request: &Request) -> Option<NanoUsd> {
        self.provider.default_cap(request)
    }

    fn attempt_time(&self, request: &Request) -> Option<Duration> {
        self.provider.attempt_time(request)
    }

    fn set_id_store(&self, store: &Arc<dyn Store>) {
        self.provider.set_id_store(store);
    }

    async fn begin(&self, request: &Request, key: &str) -> Result<Box<dyn Run>, BeginError> {
        let begun = self.provider.begin(request, key).await;
        let outcome = match &begun {
            Ok(_) => "ok",
            Err(
                BeginError::NotSent(error)
                | BeginError::Refused(error)
                | BeginError::Unknown(error),
            ) => word(&error.kind),
        };
        self.metrics.provider_called(self.name(), "begin", outcome);
        begun.map(|run| self.run(run))
    }

    async fn resume(
        &self,
        request: &Request,
        run: &RemoteRun,
    ) -> Result<Box<dyn Run>, ProviderError> {
        let resumed = self.provider.resume(request, run).await;
        self.metrics.provider_called(self.name(), "resume", outcome(&resumed));
        resumed.map(|run| self.run(run))
    }

    async fn stop(&self, run: &RemoteRun) -> Result<StopOutcome, ProviderError> {
        let stopped = self.provider.stop(run).await;
        self.metrics.provider_called(self.name(), "stop", outcome(&stopped));
        stopped
    }
}

/// A run whose end is counted, successful or not.
struct MeteredRun {
    run: Box<dyn Run>,
    provider: &'static str,
    metrics: Arc<Metrics>,
}

#[async_trait]
#[deny(clippy::missing_trait_methods, reason = "a default would answer for the run within")]
impl Run for MeteredRun {
    fn remote(&self) -> RemoteRun {
        self.run.remote()
    }

    fn set_journal(&mut self, journal: RunJournal) {
        self.run.set_journal(journal);
    }

    fn text(&self) -> Option<String> {
        self.run.text()
    }

    async fn next(&mut self) -> Result<Step, ProviderError> {
        let step = self.run.next().await;
        match &step {
            Ok(Step::Progress(_) | Step::Moved | Step::Wait | Step::Cancel) => {}
            Ok(Step::Done { .. }) | Err(_) => {
                self.metrics.provider_called(self.provider, "follow", outcome(&step));
            }
        }
        step
    }

    async fn wind_down(&mut self, at_most: Duration) {
        self.run.wind_down(at_most).await;
    }
}

fn outcome<T>(called: &Result<T, ProviderError>) -> &'static str {
    called.as_ref().map_or_else(|error| word(&error.kind), |_| "ok")
}

fn word(kind: &ProviderErrorKind) -> &'static str {
    match kind {
        ProviderErrorKind::RateLimited { .. } => "rate_limited",
        ProviderErrorKind::Unauthorized => "unauthorized",
        ProviderErrorKind::QuotaExhausted => "quota_exhausted",
        ProviderErrorKind::Retired => "retired",
        ProviderErrorKind::Misconfigured => "misconfigured",
        ProviderErrorKind::Rejected => "rejected",
        ProviderErrorKind::Unavailable { .. } => "unavailable",
        ProviderErrorKind::Unreachable => "unreachable",
        ProviderErrorKind::TimedOut => "timed_out",
        ProviderErrorKind::Malformed => "malformed",
        ProviderErrorKind::RunFailed => "run_failed",
        ProviderErrorKind::TooLarge => "too_large",
        ProviderErrorKind::RunLost => "run_lost",
        ProviderErrorKind::RunStopped => "run_stopped",
        ProviderErrorKind::RunTimedOut => "run_timed_out",
        ProviderErrorKind::StepUnknown => "step_unknown",
        ProviderErrorKind::NotAnswered => "not_answered",
    }
}
