//! Removes finished jobs when their retention ends. Readers stop seeing them at that moment. The removal only frees
//! their space, so it may be late, by half the sweep interval at most. There is no tick: the sweeper sleeps while
//! nothing can expire.

use std::time::Duration;

use outlast_core::{Prune, Scope, Timestamp};

use crate::shared::Shared;
use crate::wakeups::WorkerSignals;

/// The least time between two looks for old journals: pages are kept for days.
const LOOK_EVERY: Duration = Duration::from_secs(3600);

/// Sweeps as retentions end. Runs until dropped; keeps no process running.
pub(crate) async fn run(shared: &Shared, signals: &WorkerSignals) {
    let lateness = shared.options.sweep_interval / 2;
    let mut looked_at = None;
    loop {
        forget_runs(shared, &mut looked_at).await;
        let next_expiry = match shared.store.prune(&Scope::Operator, &Prune::Expired).await {
            Ok(pruned) => {
                if pruned.jobs > 0 {
                    tracing::debug!(jobs = pruned.jobs, "forgot jobs whose retention has ended");
                }
                pruned.next_expiry
            }
            Err(error) => {
                tracing::warn!(%error, "expired jobs cannot be removed, will try again");
                Some(shared.store.now())
            }
        };
        // Late on purpose, so that one sweep removes many jobs.
        let now = shared.store.now();
        let pause = next_expiry.map(|next| next.since(now) + lateness);
        // Once a day in any case: old ledger rows are removed after sweeps on consecutive days.
        let next_day = now.day().next().begins().since(now) + lateness;
        tokio::select! {
            () = tokio::time::sleep(pause.map_or(next_day, |pause| pause.min(next_day))) => {}
            // A job that has just ended may expire sooner than all the others.
            () = signals.retention_began.notified() => tokio::time::sleep(lateness).await,
        }
    }
}

/// Removes the journals of runs whose retention has ended, at most once an hour.
async fn forget_runs(shared: &Shared, looked_at: &mut Option<Timestamp>) {
    let now = shared.store.now();
    let Some(retention) = shared.options.keep_runs else { return };
    if looked_at.is_some_and(|at| now.since(at) < LOOK_EVERY) {
        return;
    }
    *looked_at = Some(now);
    let ended_before = now.before(retention.keep);
    match shared.store.forget_runs(retention.provider, ended_before).await {
        Ok(0) => {}
        Ok(runs) => tracing::debug!(runs, "removed expired pages and notes of runs"),
        Err(error) => tracing::warn!(%error, "old pages cannot be removed, will try again"),
    }
}
