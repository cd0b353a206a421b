//! Renews the leases of one worker, and notifies an attempt when it has lost its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast_core::{JobId, Lease};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::shared::Shared;
use crate::wakeups::{WorkerSignals, lock};

/// The lateness of a timer that shows that this process was suspended: stopped by a signal, or starved of processor
/// time.
const LATE: Duration = Duration::from_millis(200);

/// The time limit for renewing a lease that ran out during a suspension.
const RENEW_LATE: Duration = Duration::from_secs(2);

/// The leases that a worker holds.
#[derive(Default)]
pub(crate) struct LeaseRenewer {
    held: Mutex<HashMap<JobId, HeldLease>>,
    /// Notified when the first lease is held.
    has_leases: Notify,
    /// Requests a renewal before its time.
    renew_now: Notify,
    /// Counts finished renewals.
    renewals: watch::Sender<u64>,
    pauses: Mutex<Pauses>,
}

/// The pauses between renewals, which show a suspension of this process.
#[derive(Default)]
struct Pauses {
    /// The start of the present pause; `None` during a renewal, and while no lease is held.
    since: Option<Instant>,
    /// The end of the latest suspension.
    resumed: Option<Instant>,
}

#[derive(Clone)]
struct HeldLease {
    lease: Lease,
    /// Cancelled when the lease is lost.
    lost: CancellationToken,
    /// The time until which no other worker claims the job, by the clock of this machine.
    good_until: Arc<Mutex<Instant>>,
}

/// A lease that is renewed until this is dropped.
pub(crate) struct RenewedLease {
    renewer: Arc<LeaseRenewer>,
    held: HeldLease,
}

impl LeaseRenewer {
    /// Starts to renew a lease that was claimed at this moment for this long.
    pub(crate) fn hold(
        self: &Arc<Self>,
        lease: Lease,
        taken: Instant,
        long: Duration,
    ) -> RenewedLease {
        let good_until = Arc::new(Mutex::new(taken + long));
        let held = HeldLease { lease, lost: CancellationToken::new(), good_until };
        // The worker may have held the job before the machine slept: an attempt that still works on it is void.
        let before = lock(&self.held).insert(held.lease.job, held.clone());
        if let Some(before) = before {
            before.lost.cancel();
        }
        self.has_leases.notify_one();
        RenewedLease { renewer: Arc::clone(self), held }
    }

    /// Renews all leases and passes on which were lost. Runs until dropped.
    pub(crate) async fn run(&self, shared: &Shared, signals: &WorkerSignals) {
        // Both run concurrently: a slow renewal must not block a cancelled job's slot.
        tokio::join!(self.renew_regularly(shared), self.receive_endings(signals));
    }

    /// Renews three times in each lease's length. Sleeps while no lease is held.
    async fn renew_regularly(&self, shared: &Shared) {
        loop {
            while lock(&self.held).is_empty() {
                self.has_leases.notified().await;
            }
            lock(&self.pauses).since = Some(Instant::now());
            tokio::select! {
                () = tokio::time::sleep(shared.options.lease / 3) => {}
                () = self.renew_now.notified() => {}
            }
            self.end_pause(shared.options.lease);
            self.renew(shared).await;
            self.renewals.send_modify(|count| *count += 1);
        }
    }

    fn end_pause(&self, lease: Duration) {
        let mut pauses = lock(&self.pauses);
        let Some(paused) = pauses.since.take().map(|since| since.elapsed()) else { return };
        if paused > longest_pause(lease) {
            tracing::warn!(
                ?paused,
                "this process was suspended; renewing its leases before any is judged"
            );
            pauses.resumed = Some(Instant::now());
        }
    }

    /// Returns whether this process was suspended within the length of the last lease. Then the end of a lease says
    /// nothing about its worker, which may have been suspended too and must have the time to renew.
    pub(crate) fn was_suspended(&self, lease: Duration) -> bool {
        let pauses = lock(&self.pauses);
        let is_late = |since: Instant| since.elapsed() > longest_pause(lease);
        pauses.since.is_some_and(is_late)
            || pauses.resumed.is_some_and(|resumed| resumed.elapsed() < lease)
    }

    /// Returns the jobs whose leases this worker holds.
    pub(crate) fn held_jobs(&self) -> Vec<JobId> {
        lock(&self.held).keys().copied().collect()
    }

    async fn receive_endings(&self, signals: &WorkerSignals) {
        loop {
            signals.endings.notified().await;
            let ended = std::mem::take(&mut *lock(&signals.ended));
            let held = lock(&self.held);
            ended.iter().filter_map(|id| held.get(id)).for_each(|held| held.lost.cancel());
        }
    }

    async fn renew(&self, shared: &Shared) {
        let leases: Vec<Lease> = lock(&self.held).values().map(|held| held.lease.clone()).collect();
        if leases.is_empty() {
            return;
        }
        let asked = Instant::now();
        match shared.renew(&leases).await {
            // Only the leases in the request: a job may have come back under a later claim meanwhile.
            Ok(lost) => {
                for held in lock(&self.held).values().filter(|held| leases.contains(&held.lease)) {
                    match lost.contains(&held.lease.job) {
                        true => held.lost.cancel(),
                        false => *lock(&held.good_until) = asked + shared.options.lease,
                    }
                }
            }
            Err(error) => {
                tracing::warn!(%error, jobs = leases.len(), "leases could not be renewed")
            }
        }
    }
}

impl RenewedLease {
    /// Returns the lease itself.
    pub(crate) fn lease(&self) -> &Lease {
        &self.held.lease
    }

    /// Returns the number of leases that its worker holds, including this one.
    pub(crate) fn count_held(&self) -> u32 {
        u32::try_from(lock(&self.renewer.held).len()).unwrap_or(u32::MAX)
    }

    /// Waits until another worker may have the job, because the store could not be reached for the length of the
    /// lease. A lease that ran out while this process was suspended is renewed first, if no other worker has claimed
    /// the job. Cancel-safe.
    pub(crate) async fn wait_until_expired(&self) {
        loop {
            let good_until = self.good_until();
            tokio::time::sleep_until(good_until).await;
            if good_until.elapsed() >= LATE {
                // A renewal that is itself too late does not count.
                let _ = tokio::time::timeout(RENEW_LATE, self.wait_until_renewed()).await;
            }
            if self.good_until() <= Instant::now() {
                return;
            }
        }
    }

    /// Requests a renewal, and waits until one has moved the end of this lease into the future.
    async fn wait_until_renewed(&self) {
        let mut renewals = self.renewer.renewals.subscribe();
        while self.good_until() <= Instant::now() {
            self.renewer.renew_now.notify_one();
            if renewals.changed().await.is_err() {
                return;
            }
        }
    }

    fn good_until(&self) -> Instant {
        *lock(&self.held.good_until)
    }

    /// Waits until another worker has the job, or it has ended. Cancel-safe.
    pub(crate) async fn wait_until_lost(&self) {
        self.held.lost.cancelled().await;
    }
}

/// Returns the longest pause between two renewals of a process that is not suspended.
fn longest_pause(lease: Duration) -> Duration {
    lease / 2
}

impl Drop for RenewedLease {
    fn drop(&mut self) {
        let mut held = lock(&self.renewer.held);
        // The job may have come back to this worker under a later claim.
        let own = &self.held.lease;
        if held.get(&own.job).is_some_and(|held| held.lease == *own) {
            held.remove(&own.job);
        }
    }
}
