//! Finds jobs whose worker died and puts them back: at once on this machine, when the lease ends elsewhere.

use std::time::Duration;

use outlast_core::{Dead, Rescued, StoreError};

use crate::engine::Shared;
use crate::hub::Desk;
use crate::worker::wait_for;

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
    let mut next_due = desk.next_due.subscribe();
    loop {
        let looked_at = shared.store.now();
        let watched = match rescue(shared).await {
            Ok(rescued) => rescued.watched,
            Err(error) => {
                tracing::warn!(%error, "dead workers cannot be looked for, will try again");
                1
            }
        };
        let due = wait_for(*next_due.borrow_and_update(), looked_at, shared.store.now());
        tokio::select! {
            () = tokio::time::sleep(ROUND), if watched > 0 => {}
            () = tokio::time::sleep(due.unwrap_or_default()), if due.is_some() => {}
            // Progress notes come here too: however many there are, one round a second is enough.
            () = desk.claims.notified() => tokio::time::sleep(ROUND).await,
        }
    }
}
