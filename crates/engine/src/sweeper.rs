//! Removes finished jobs when their retention ends. Readers stop seeing them at that moment. The removal only frees
//! their space, so it may be late, by half the sweep interval at most. There is no tick: the sweeper sleeps while
//! nothing can expire.

use outlast_core::{Prune, Scope};

use crate::shared::Shared;
use crate::wakeups::WorkerSignals;

/// Sweeps as retentions end. Runs until dropped; keeps no process running.
pub(crate) async fn run(shared: &Shared, signals: &WorkerSignals) {
    let lateness = shared.options.sweep_interval / 2;
    loop {
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
