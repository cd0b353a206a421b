//! Stops the remote runs of cancelled jobs. The duty is in the store, so a crash does not lose it; stopping twice
//! does no harm.

use std::time::Duration;

use outlast_core::{JobId, Profile, RemoteRun, RemoteStop, StoreError};

use crate::engine::Shared;
use crate::hub::Desk;

/// Runs stopped in one round.
const ROUND: usize = 16;
/// The first wait after a round that left something undone; doubles.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(60);

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
    for (id, run) in &owed {
        match stop(shared, id, run).await {
            Some(outcome) => shared.store.stopped(id, outcome).await?,
            None => left = Left::Something,
        }
    }
    Ok(left)
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
