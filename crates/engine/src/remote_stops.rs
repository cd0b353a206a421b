//! Stops the remote runs of cancelled jobs. Which runs is recorded in the store, so a crash does not lose it; stopping
//! twice does no harm.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use outlast_core::{Job, JobId, JobState, Provider, RemoteRun, RemoteStop, StoreError};

use crate::shared::Shared;
use crate::wakeups::WorkerSignals;

/// Runs stopped in one round.
const ROUND: usize = 16;
/// The first wait after a round that left something undone; doubles.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// How long a provider may take to stop one run.
const STOPPING: Duration = Duration::from_secs(30);

/// Does owed stops as they come up. Runs until dropped.
pub(crate) async fn run(shared: &Shared, signals: &WorkerSignals) {
    let mut wait = FIRST_WAIT;
    loop {
        match stop_owed(shared).await {
            Ok(Left::Nothing) => {
                wait = FIRST_WAIT;
                signals.cancels.notified().await;
                continue;
            }
            Ok(Left::Something) => {}
            Err(error) => {
                tracing::warn!(%error, "owed stops cannot be read or recorded, will try again")
            }
        }
        tokio::select! {
            () = tokio::time::sleep(wait) => wait = (wait * 2).min(LONGEST_WAIT),
            () = signals.cancels.notified() => {}
        }
    }
}

/// Where a run is on record that its provider cannot stop, the cancel's answer says so at once, and no worker tries in
/// vain. A request that is still on its way has no run yet: what its worker finds out is recorded then.
pub(crate) async fn without_vain_stop(shared: &Shared, mut job: Job) -> Job {
    let JobState::Cancelled { at, remote: RemoteStop::Owed } = job.state else { return job };
    let provider = shared.providers.get(&job.new.profile);
    if provider.is_none_or(|provider| provider.nature(&job.new.ask).stops) {
        return job;
    }
    job.state = JobState::Cancelled { at, remote: RemoteStop::Unsupported };
    if let Err(error) = shared.store.record_stop(&job.id, RemoteStop::Unsupported).await {
        tracing::warn!(job.id = %job.id, %error, "that a run cannot be stopped is not stored; a worker will record it");
    }
    job
}

/// Whether a round left anything undone.
enum Left {
    Nothing,
    Something,
}

async fn stop_owed(shared: &Shared) -> Result<Left, StoreError> {
    let mut left = Left::Nothing;
    // A run can be stopped only with the key it was begun with, so each profile asks for its own.
    for (profile, provider) in &shared.providers {
        let owed = shared.store.owed_stops(std::slice::from_ref(profile), ROUND).await?;
        if owed.len() == ROUND {
            left = Left::Something;
        }
        // Side by side: one that hangs must not keep the others waiting.
        let stops = owed.iter().map(|(id, run)| stop_one(shared, &**provider, id, run));
        for stopped in join_all(stops).await {
            if let Left::Something = stopped? {
                left = Left::Something;
            }
        }
    }
    Ok(left)
}

async fn stop_one(
    shared: &Shared,
    provider: &dyn Provider,
    id: &JobId,
    run: &RemoteRun,
) -> Result<Left, StoreError> {
    // The adapter's code is not ours: neither its panic nor its silence may end the worker.
    let stopping = AssertUnwindSafe(stop(provider, id, run)).catch_unwind();
    match tokio::time::timeout(STOPPING, stopping).await {
        Ok(Ok(Some(outcome))) => {
            shared.store.record_stop(id, outcome).await?;
            return Ok(Left::Nothing);
        }
        Ok(Ok(None)) => {}
        Ok(Err(_)) => {
            tracing::error!(job.id = %id, remote.id = run.short_id(), "the provider panicked while it stopped a run")
        }
        Err(_) => {
            tracing::warn!(job.id = %id, remote.id = run.short_id(), "the provider did not stop a run in time")
        }
    }
    Ok(Left::Something)
}

/// Stops one run; `None` when it has to be tried again.
async fn stop(provider: &dyn Provider, id: &JobId, run: &RemoteRun) -> Option<RemoteStop> {
    match provider.stop(run).await {
        Ok(outcome) => {
            tracing::info!(job.id = %id, remote.id = run.short_id(), ?outcome, "remote run stopped");
            Some(outcome)
        }
        Err(error) if error.trouble.is_permanent() => {
            // Without what upstream said: it may repeat what the run was asked, which is not known here.
            tracing::warn!(job.id = %id, remote.id = run.short_id(), %error, "remote run cannot be stopped");
            Some(RemoteStop::Unsupported)
        }
        Err(error) => {
            tracing::warn!(job.id = %id, remote.id = run.short_id(), %error, "remote run not stopped yet");
            None
        }
    }
}
