//! Stops the remote runs of cancelled jobs. The duty is in the store, so a crash does not lose it; stopping twice
//! does no harm.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::join_all;
use outlast_core::{JobId, Profile, RemoteRun, RemoteStop, StoreError};

use crate::engine::Shared;
use crate::hub::Desk;

/// Runs stopped in one round.
const ROUND: usize = 16;
/// The first wait after a round that left something undone; doubles.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// How long a provider may take to stop one run.
const STOPPING: Duration = Duration::from_secs(30);

/// Does owed stops as they come up. Runs until dropped.
pub(crate) async fn run(shared: &Shared, desk: &Desk) {
    let profiles: Vec<Profile> = shared.providers.keys().cloned().collect();
    let mut wait = FIRST_WAIT;
    loop {
        match stop_owed(shared, &profiles).await {
            Ok(Left::Nothing) => {
                wait = FIRST_WAIT;
                desk.cancels.notified().await;
                continue;
            }
            Ok(Left::Something) => {}
            Err(error) => {
                tracing::warn!(%error, "owed stops cannot be read or recorded, will try again")
            }
        }
        tokio::select! {
            () = tokio::time::sleep(wait) => wait = (wait * 2).min(LONGEST_WAIT),
            () = desk.cancels.notified() => {}
        }
    }
}

/// Whether a round left anything undone.
enum Left {
    Nothing,
    Something,
}

async fn stop_owed(shared: &Shared, profiles: &[Profile]) -> Result<Left, StoreError> {
    let owed = shared.store.owed_stops(profiles, ROUND).await?;
    let mut left = if owed.len() == ROUND { Left::Something } else { Left::Nothing };
    // Side by side: one that hangs must not keep the others waiting.
    for stopped in join_all(owed.iter().map(|(id, run)| stop_one(shared, id, run))).await {
        if let Left::Something = stopped? {
            left = Left::Something;
        }
    }
    Ok(left)
}

async fn stop_one(shared: &Shared, id: &JobId, run: &RemoteRun) -> Result<Left, StoreError> {
    // The adapter's code is not ours: neither its panic nor its silence may end the worker.
    let stopping = AssertUnwindSafe(stop(shared, id, run)).catch_unwind();
    match tokio::time::timeout(STOPPING, stopping).await {
        Ok(Ok(Some(outcome))) => {
            shared.store.stopped(id, outcome).await?;
            return Ok(Left::Nothing);
        }
        Ok(Ok(None)) => {}
        Ok(Err(_)) => {
            tracing::error!(job.id = %id, remote.id = run.id, "the provider panicked while it stopped a run")
        }
        Err(_) => {
            tracing::warn!(job.id = %id, remote.id = run.id, "the provider did not stop a run in time")
        }
    }
    Ok(Left::Something)
}

/// Stops one run; `None` when it has to be tried again.
async fn stop(shared: &Shared, id: &JobId, run: &RemoteRun) -> Option<RemoteStop> {
    let provider = shared.providers.values().find(|provider| provider.name() == run.provider)?;
    match provider.stop(run).await {
        Ok(outcome) => {
            tracing::info!(job.id = %id, remote.id = run.id, ?outcome, "remote run stopped");
            Some(outcome)
        }
        Err(error) if error.trouble.is_permanent() => {
            tracing::warn!(job.id = %id, remote.id = run.id, %error, detail = error.detail, "remote run cannot be stopped");
            Some(RemoteStop::Unsupported)
        }
        Err(error) => {
            tracing::warn!(job.id = %id, remote.id = run.id, %error, "remote run not stopped yet");
            None
        }
    }
}
