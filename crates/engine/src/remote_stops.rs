//! Stops the remote runs of cancelled jobs, and records the outcome of each. The store records which runs to stop, so
//! a crash does not lose them. A second stop does no harm.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use outlast_core::{
    Checkpoint, Cost, Job, JobId, JobState, Provider, RemoteRun, RemoteStop, Scope, StopOutcome,
    StoreError,
};

use crate::shared::Shared;
use crate::wakeups::WorkerSignals;

/// The number of runs stopped in one round.
const ROUND: usize = 16;
/// The first wait after a round that left something undone; doubles.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// The time that a provider may take to stop one run.
const STOPPING: Duration = Duration::from_secs(30);
/// The number of refused stops after which a run is left to continue: the provider refuses to stop it.
const MAX_REFUSALS: u32 = 5;

/// The number of times that each run to stop was still running after a stop request. Another process starts its own
/// count.
type Refusals = HashMap<JobId, u32>;

/// Performs pending stops as they arrive. Runs until dropped.
pub(crate) async fn run(shared: &Shared, signals: &WorkerSignals) {
    let mut wait = FIRST_WAIT;
    let mut refusals = Refusals::new();
    loop {
        match stop_owed(shared, &mut refusals).await {
            Ok(UnfinishedStops::Nothing) => {
                wait = FIRST_WAIT;
                refusals.clear();
                signals.cancels.notified().await;
                continue;
            }
            Ok(UnfinishedStops::Something) => {}
            Err(error) => {
                tracing::warn!(%error, "failed to read or record pending stops; will try again")
            }
        }
        tokio::select! {
            () = tokio::time::sleep(wait) => wait = (wait * 2).min(LONGEST_WAIT),
            () = signals.cancels.notified() => {}
        }
    }
}

/// Records at once that a run cannot be stopped, if its provider has no way to. The cancel's answer then says so, and
/// no worker tries without effect. A request that is still on its way has no run yet: its worker records the outcome
/// later.
pub(crate) async fn without_vain_stop(shared: &Shared, mut job: Job) -> Job {
    let JobState::Cancelled { remote: RemoteStop::Owed, .. } = job.state else { return job };
    let Some(provider) = shared.providers.get(&job.new.profile) else { return job };
    let semantics = provider.recovery_semantics(&job.new.request);
    if semantics.can_stop {
        return job;
    }
    let is_resumable =
        matches!(&job.checkpoint, Checkpoint::Running(run) if semantics.resume.can_resume(run));
    let stop = if is_resumable { RemoteStop::GoesOn } else { RemoteStop::Unsupported };
    if let JobState::Cancelled { remote, .. } = &mut job.state {
        *remote = stop;
    }
    if let Err(error) = shared.record_stop(&job.id, stop, Cost::Unknown).await {
        tracing::warn!(job.id = %job.id, %error, "that a run cannot be stopped is not stored; a worker will record it");
    }
    job
}

/// Performs the pending stop of a cancelled job, if this process has its provider. Returns the job after that.
pub(crate) async fn settle_stop(shared: &Shared, job: Job) -> Result<Job, StoreError> {
    let JobState::Cancelled { remote: RemoteStop::Owed, .. } = job.state else {
        return Ok(job);
    };
    let (Checkpoint::Running(run), Some(provider)) =
        (&job.checkpoint, shared.providers.get(&job.new.profile))
    else {
        return Ok(job);
    };
    if let Some(outcome) = ask_to_stop(&**provider, &job.id, run).await {
        record(shared, &job.id, outcome).await?;
    }
    let scope = Scope::Owner(job.new.owner.clone());
    Ok(shared.store.job(&scope, &job.id).await?.unwrap_or(job))
}

/// The work that a round left undone.
enum UnfinishedStops {
    Nothing,
    Something,
}

async fn stop_owed(
    shared: &Shared,
    refusals: &mut Refusals,
) -> Result<UnfinishedStops, StoreError> {
    let mut left = UnfinishedStops::Nothing;
    // A run can be stopped only with the key that it was begun with, so each profile asks for its own.
    for (profile, provider) in &shared.providers {
        let owed = shared.store.pending_stops(std::slice::from_ref(profile), ROUND).await?;
        if owed.len() == ROUND {
            left = UnfinishedStops::Something;
        }
        // Concurrently: a provider call that hangs must not delay the others.
        let stops = owed.iter().map(|(id, run)| ask_to_stop(&**provider, id, run));
        for ((id, _), outcome) in owed.iter().zip(join_all(stops).await) {
            match outcome {
                Some(StopOutcome::StillRunning) if is_worth_another_try(refusals, id) => {
                    left = UnfinishedStops::Something;
                }
                Some(outcome) => record(shared, id, outcome).await?,
                None => left = UnfinishedStops::Something,
            }
        }
    }
    Ok(left)
}

/// Counts a refusal to stop the run of this job. Returns whether another request may help.
fn is_worth_another_try(refusals: &mut Refusals, id: &JobId) -> bool {
    let refused = refusals.entry(*id).or_default();
    *refused += 1;
    *refused < MAX_REFUSALS
}

async fn record(shared: &Shared, id: &JobId, outcome: StopOutcome) -> Result<(), StoreError> {
    let (remote, cost) = outcome.to_record();
    match shared.record_stop(id, remote, cost).await {
        // Pruned by its owner, or settled by another process: nothing is left to record.
        Err(StoreError::NotFound) => Ok(()),
        recorded => recorded,
    }
}

/// Asks to stop one run; `None` if the outcome is not known and the stop has to be repeated.
async fn ask_to_stop(provider: &dyn Provider, id: &JobId, run: &RemoteRun) -> Option<StopOutcome> {
    // The adapter's code is not ours: neither its panic nor its silence may end the worker.
    let stopping = AssertUnwindSafe(stop(provider, id, run)).catch_unwind();
    match tokio::time::timeout(STOPPING, stopping).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_)) => {
            tracing::error!(job.id = %id, remote.id = run.short_id(), "the provider panicked while it stopped a run");
            None
        }
        Err(_) => {
            tracing::warn!(job.id = %id, remote.id = run.short_id(), "the provider did not stop a run in time");
            None
        }
    }
}

async fn stop(provider: &dyn Provider, id: &JobId, run: &RemoteRun) -> Option<StopOutcome> {
    match provider.stop(run).await {
        Ok(outcome @ (StopOutcome::Ended { .. } | StopOutcome::Completed { .. })) => {
            tracing::info!(job.id = %id, remote.id = run.short_id(), ?outcome, "remote run of a cancelled job has ended");
            Some(outcome)
        }
        Ok(outcome) => {
            tracing::warn!(job.id = %id, remote.id = run.short_id(), ?outcome, "remote run of a cancelled job is not stopped");
            Some(outcome)
        }
        Err(error) if error.kind.is_permanent() => {
            // Logged without upstream's text, which may repeat the request of the run. That request is not known
            // here.
            tracing::warn!(job.id = %id, remote.id = run.short_id(), %error, "remote run cannot be stopped");
            Some(StopOutcome::Unknown)
        }
        Err(error) => {
            tracing::warn!(job.id = %id, remote.id = run.short_id(), %error, "remote run not stopped yet");
            None
        }
    }
}
