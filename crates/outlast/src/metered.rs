//! Counts the calls through the ports. Wrappers do this, so that the path itself does not depend on metrics.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{
    BeginError, Cancelled, Claimed, Cost, Fence, Insert, Inserted, Job, JobId, Lease, NanoUsd,
    Nature, Profile, Provider, ProviderError, RemoteRun, Run, Scope, Settlement, StateKind, Step,
    StopOutcome, Store, StoreError, StoreMethod, StoreWrapper, Trouble, WorkerId,
};
use outlast_engine::Providers;
use outlast_server::Metrics;
use serde_json::Value;
use tokio::time::Instant;

/// Returns the same providers, with their calls counted.
pub(crate) fn providers(providers: Providers, metrics: &Arc<Metrics>) -> Providers {
    let metered = |provider: Arc<dyn Provider>| -> Arc<dyn Provider> {
        Arc::new(MeteredProvider { provider, metrics: Arc::clone(metrics) })
    };
    providers.into_iter().map(|(profile, provider)| (profile, metered(provider))).collect()
}

/// A store whose writes are counted.
pub(crate) struct MeteredStore {
    store: Arc<dyn Store>,
    metrics: Arc<Metrics>,
    /// The times at which running jobs were claimed here.
    claimed: Mutex<HashMap<JobId, Instant>>,
}

/// The maximum number of running jobs that are timed: a job whose lease is lost unnoticed leaves its entry behind.
const MAX_TIMED: usize = 20_000;

impl MeteredStore {
    pub(crate) fn new(store: Arc<dyn Store>, metrics: Arc<Metrics>) -> Self {
        Self { store, metrics, claimed: Mutex::default() }
    }

    fn claimed(&self) -> MutexGuard<'_, HashMap<JobId, Instant>> {
        self.claimed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn takes_in_hand(&self, id: JobId) {
        let mut claimed = self.claimed();
        if claimed.len() < MAX_TIMED {
            claimed.insert(id, Instant::now());
        }
    }

    fn wrote(&self, error: Option<&StoreError>) {
        match error {
            None => self.metrics.store_wrote(),
            Some(error) => self.metrics.store_refused(error),
        }
    }

    fn ended(&self, job: &Job) {
        let state = job.state.kind();
        if state.is_terminal() {
            self.metrics.job_ended(&job.new.owner, &job.new.workflow, state);
        }
    }
}

#[async_trait]
impl StoreWrapper for MeteredStore {
    fn inner(&self) -> &dyn Store {
        &*self.store
    }

    fn after(&self, method: StoreMethod, error: Option<&StoreError>) {
        match method {
            StoreMethod::Insert
            | StoreMethod::Checkpoint
            | StoreMethod::Settle
            | StoreMethod::Cancel
            | StoreMethod::RecordLateRun
            | StoreMethod::RecordStop => self.wrote(error),
            // Written only if there is something to claim or to renew, and counted there.
            StoreMethod::Claim | StoreMethod::Renew => {}
            // Reads, and writes that follow one of the counted ones.
            StoreMethod::Rev
            | StoreMethod::Take
            | StoreMethod::Orphans
            | StoreMethod::Note
            | StoreMethod::ShowText
            | StoreMethod::Rescue
            | StoreMethod::OwedStops
            | StoreMethod::ClaimNotice
            | StoreMethod::RecordNotice
            | StoreMethod::RecordAnswer
            | StoreMethod::Kept
            | StoreMethod::Keep
            | StoreMethod::HasWorker
            | StoreMethod::Queued
            | StoreMethod::Ahead
            | StoreMethod::Dismiss
            | StoreMethod::Prune
            | StoreMethod::Job
            | StoreMethod::List
            | StoreMethod::Turns
            | StoreMethod::Conversations
            | StoreMethod::Counts
            | StoreMethod::LedgerRows
            | StoreMethod::Spend
            | StoreMethod::Changes => {}
        }
    }

    async fn insert(&self, insert: Insert) -> Result<Inserted, StoreError> {
        let inserted = self.store.insert(insert).await?;
        if let Inserted::New(job) = &inserted {
            self.metrics.job_started(&job.new.owner, &job.new.workflow);
            if job.state.kind() == StateKind::Running {
                self.takes_in_hand(job.id);
            }
        }
        Ok(inserted)
    }

    async fn claim(
        &self,
        worker: &WorkerId,
        profiles: &[Profile],
        lease: Duration,
    ) -> Result<Option<Claimed>, StoreError> {
        let claimed = self.store.claim(worker, profiles, lease).await;
        if !matches!(claimed, Ok(None)) {
            self.wrote(claimed.as_ref().err());
        }
        if let Ok(Some(Claimed { job, .. })) = &claimed {
            self.takes_in_hand(job.id);
            if job.fence == Fence(1) {
                let wait = self.store.now().since(job.created_at);
                self.metrics.queue_waited(&job.new.workflow, wait);
            }
        }
        claimed
    }

    async fn take(
        &self,
        worker: &WorkerId,
        profiles: &[Profile],
        id: &JobId,
        lease: Duration,
    ) -> Result<Option<Claimed>, StoreError> {
        let taken = self.store.take(worker, profiles, id, lease).await?;
        if taken.is_some() {
            self.takes_in_hand(*id);
        }
        Ok(taken)
    }

    async fn renew(&self, leases: &[Lease], lease: Duration) -> Result<Vec<JobId>, StoreError> {
        let renewed = self.store.renew(leases, lease).await;
        if !leases.is_empty() {
            self.wrote(renewed.as_ref().err());
        }
        if let Ok(lost) = &renewed {
            self.claimed().retain(|id, _| !lost.contains(id));
        }
        renewed
    }

    async fn settle(&self, lease: &Lease, settlement: Settlement) -> Result<Job, StoreError> {
        let (attempt, cost) = match &settlement {
            Settlement::Succeed { output, .. } => ("succeeded", output.cost),
            Settlement::Retry { .. } => ("retried", Cost::Unknown),
            Settlement::Fail { .. } => ("failed", Cost::Unknown),
            Settlement::Release => ("given_back", Cost::Unknown),
        };
        let job = self.store.settle(lease, settlement).await?;
        if let Some(claimed) = self.claimed().remove(&job.id) {
            self.metrics.ran(&job.new.workflow, claimed.elapsed());
        }
        self.metrics.attempted(&job.new.owner, attempt);
        self.metrics.spent(&job.new.owner, job.new.profile.provider(), cost);
        self.ended(&job);
        Ok(job)
    }

    async fn cancel(&self, scope: &Scope, id: &JobId) -> Result<Cancelled, StoreError> {
        let cancelled = self.store.cancel(scope, id).await?;
        if let Cancelled::Now(job) = &cancelled {
            self.claimed().remove(id);
            self.ended(job);
        }
        Ok(cancelled)
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

    fn nature(&self, ask: &Value) -> Nature {
        self.provider.nature(ask)
    }

    fn expected_model(&self, ask: &Value) -> Option<String> {
        self.provider.expected_model(ask)
    }

    fn typical_cost(&self, ask: &Value) -> Cost {
        self.provider.typical_cost(ask)
    }

    fn default_cap(&self, ask: &Value) -> Option<NanoUsd> {
        self.provider.default_cap(ask)
    }

    fn keep_ids_in(&self, store: &Arc<dyn Store>) {
        self.provider.keep_ids_in(store);
    }

    async fn begin(&self, ask: &Value, key: &str) -> Result<Box<dyn Run>, BeginError> {
        let begun = self.provider.begin(ask, key).await;
        let outcome = match &begun {
            Ok(_) => "ok",
            Err(
                BeginError::NotSent(error)
                | BeginError::Refused(error)
                | BeginError::Unknown(error),
            ) => word(&error.trouble),
        };
        self.metrics.provider_called(self.name(), "begin", outcome);
        begun.map(|run| self.run(run))
    }

    async fn resume(&self, ask: &Value, run: &RemoteRun) -> Result<Box<dyn Run>, ProviderError> {
        let resumed = self.provider.resume(ask, run).await;
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

    fn text(&self) -> Option<String> {
        self.run.text()
    }

    async fn next(&mut self) -> Result<Step, ProviderError> {
        let step = self.run.next().await;
        match &step {
            Ok(Step::Progress(_) | Step::Moved) => {}
            Ok(Step::Done { .. }) | Err(_) => {
                self.metrics.provider_called(self.provider, "follow", outcome(&step));
            }
        }
        step
    }
}

fn outcome<T>(called: &Result<T, ProviderError>) -> &'static str {
    called.as_ref().map_or_else(|error| word(&error.trouble), |_| "ok")
}

fn word(trouble: &Trouble) -> &'static str {
    match trouble {
        Trouble::RateLimited { .. } => "rate_limited",
        Trouble::Unauthorized => "unauthorized",
        Trouble::QuotaExhausted => "quota_exhausted",
        Trouble::Retired => "retired",
        Trouble::Misconfigured => "misconfigured",
        Trouble::Rejected => "rejected",
        Trouble::Unavailable { .. } => "unavailable",
        Trouble::Unreachable => "unreachable",
        Trouble::TimedOut => "timed_out",
        Trouble::Malformed => "malformed",
        Trouble::RunFailed => "run_failed",
        Trouble::TooLarge => "too_large",
        Trouble::RunLost => "run_lost",
        Trouble::RunStopped => "run_stopped",
        Trouble::RunTimedOut => "run_timed_out",
        Trouble::StepUnknown => "step_unknown",
    }
}
