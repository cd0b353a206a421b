//! Finds jobs whose worker died and puts them back: at once on this machine, when the lease ends elsewhere.

use std::time::Duration;

use outlast_core::{Dead, Rescued, StoreError};
use tokio::time::Instant;

use crate::engine::Shared;
use crate::hub::Desk;

/// How often the liveness of other workers is looked at while they hold jobs.
const ROUND: Duration = Duration::from_secs(1);

/// Puts back whatever dead workers left. Called before the first claim, and by [`watch`].
pub(crate) async fn rescue(shared: &Shared) -> Result<Rescued, StoreError> {
    let proven = shared.store.rescue(&Dead::Proven).await?;
    let expired = shared.store.rescue(&Dead::LeasesExpired).await?;
    let jobs = proven.jobs + expired.jobs;
    if jobs > 0 {
        tracing::info!(jobs, "took over the jobs of a worker that died");
    }
    Ok(Rescued { jobs, watched: proven.watched.max(expired.watched) })
}

/// Watches over other workers for as long as they hold jobs. Runs until dropped.
pub(crate) async fn watch(shared: &Shared, desk: &Desk) {
    loop {
        let watched = match rescue(shared).await {
            Ok(rescued) => rescued.watched,
            Err(error) => {
                tracing::warn!(%error, "dead workers cannot be looked for, will try again");
                1
            }
        };
        let next_round = Instant::now() + ROUND;
        tokio::select! {
            () = desk.lapses.notified() => {}
            () = tokio::time::sleep_until(next_round), if watched > 0 => {}
            () = a_claim_and_then(desk, next_round) => {}
        }
    }
}

/// Waits until somebody claimed something. Progress notes ring here too: however many there are, one round a
/// second is enough. Cancel-safe as long as a round follows.
async fn a_claim_and_then(desk: &Desk, next_round: Instant) {
    desk.claims.notified().await;
    tokio::time::sleep_until(next_round).await;
}
