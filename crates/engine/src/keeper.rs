//! Keeps the leases of one worker alive, and tells an attempt when it has lost its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast_core::{JobId, Lease};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::shared::Shared;
use crate::wakeups::{WorkerSignals, locked};

/// The leases a worker holds.
#[derive(Default)]
pub(crate) struct Keeper {
    held: Mutex<HashMap<JobId, HeldLease>>,
}

#[derive(Clone)]
struct HeldLease {
    lease: Lease,
    /// Cancelled when the lease is lost.
    lost: CancellationToken,
    /// Until when no other worker takes the job, by the clock of this machine.
    good_until: Arc<Mutex<Instant>>,
}

/// A lease that the keeper renews until this is dropped.
pub(crate) struct KeptLease {
    keeper: Arc<Keeper>,
    held: HeldLease,
}

impl Keeper {
    /// Starts to keep a lease that was taken for so long at this moment.
    pub(crate) fn keep(
        self: &Arc<Self>,
        lease: Lease,
        taken: Instant,
        long: Duration,
    ) -> KeptLease {
        let good_until = Arc::new(Mutex::new(taken + long));
        let held = HeldLease { lease, lost: CancellationToken::new(), good_until };
        // The job may be this worker's own from before the machine slept: an attempt that still works on it is void.
        if let Some(before) = locked(&self.held).insert(held.lease.job, held.clone()) {
            before.lost.cancel();
        }
        KeptLease { keeper: Arc::clone(self), held }
    }

    /// Keeps all leases and passes on what was lost. Runs until dropped.
    pub(crate) async fn run(&self, shared: &Shared, signals: &WorkerSignals) {
        // Side by side: a slow renewal must not keep a cancelled job's slot.
        tokio::join!(self.renew_regularly(shared), self.hear_endings(signals));
    }

    /// Renews three times in each lease's length.
    async fn renew_regularly(&self, shared: &Shared) {
        let mut renewal = tokio::time::interval(shared.options.lease / 3);
        renewal.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            renewal.tick().await;
            self.renew(shared).await;
        }
    }

    async fn hear_endings(&self, signals: &WorkerSignals) {
        loop {
            signals.endings.notified().await;
            let ended = std::mem::take(&mut *locked(&signals.ended));
            let held = locked(&self.held);
            ended.iter().filter_map(|id| held.get(id)).for_each(|held| held.lost.cancel());
        }
    }

    async fn renew(&self, shared: &Shared) {
        let leases: Vec<Lease> =
            locked(&self.held).values().map(|held| held.lease.clone()).collect();
        if leases.is_empty() {
            return;
        }
        let asked = Instant::now();
        match shared.store.renew(&leases, shared.options.lease).await {
            // Only what was asked about: a job may have come back under a later claim meanwhile.
            Ok(lost) => {
                for held in locked(&self.held).values().filter(|held| leases.contains(&held.lease))
                {
                    match lost.contains(&held.lease.job) {
                        true => held.lost.cancel(),
                        false => *locked(&held.good_until) = asked + shared.options.lease,
                    }
                }
            }
            Err(error) => {
                tracing::warn!(%error, jobs = leases.len(), "leases could not be renewed")
            }
        }
    }
}

impl KeptLease {
    /// The right itself.
    pub(crate) fn lease(&self) -> &Lease {
        &self.held.lease
    }

    /// How many leases its worker holds, this one among them.
    pub(crate) fn held_by_worker(&self) -> u32 {
        u32::try_from(locked(&self.keeper.held).len()).unwrap_or(u32::MAX)
    }

    /// Waits until another worker may have the job, because the store could not be reached for the length of the lease.
    /// Cancel-safe.
    pub(crate) async fn ran_out(&self) {
        loop {
            let good_until = *locked(&self.held.good_until);
            if good_until <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(good_until).await;
        }
    }

    /// Waits until another worker has the job, or it has ended. Cancel-safe.
    pub(crate) async fn lost(&self) {
        self.held.lost.cancelled().await;
    }
}

impl Drop for KeptLease {
    fn drop(&mut self) {
        let mut held = locked(&self.keeper.held);
        // The job may have come back to this worker under a later claim.
        let own = &self.held.lease;
        if held.get(&own.job).is_some_and(|held| held.lease == *own) {
            held.remove(&own.job);
        }
    }
}
