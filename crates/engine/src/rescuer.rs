//! Finds jobs whose worker crashed and returns them to the queue: at once on this machine, and when the lease ends
//! elsewhere.

use std::time::Duration;

use outlast_core::{RescueBy, RescueOutcome, StoreError, Timestamp, WorkerId};
use tokio::time::Instant;

use crate::lease_renewer::LeaseRenewer;
use crate::shared::Shared;
use crate::wakeups::{WorkerSignals, until};

/// The interval at which the liveness of other workers is checked while they hold jobs.
const ROUND: Duration = Duration::from_secs(1);

/// Returns the jobs of dead workers to the queue. Called before the first claim, and by [`watch`].
pub(crate) async fn rescue(
    shared: &Shared,
    trust: &mut ClockTrust,
    leases: Leases,
) -> Result<RescueOutcome, StoreError> {
    let proven = shared.store.rescue(&RescueBy::DeadProcess).await?;
    let expired = if trust.is_even(shared) && leases == Leases::MayHaveEnded {
        shared.store.rescue(&RescueBy::ExpiredLease).await?
    } else {
        RescueOutcome::default()
    };
    let jobs = proven.jobs + expired.jobs;
    if jobs > 0 {
        tracing::info!(jobs, "took over the jobs of a worker that died");
    }
    Ok(RescueOutcome { jobs, watched: proven.watched.max(expired.watched) })
}

/// Releases jobs that the store records for this worker but that it does not run. After a failover to a standby that
/// was behind, the store may be back at an earlier step of a job whose end is lost.
async fn release_unheld(shared: &Shared, worker: &WorkerId, renewer: &LeaseRenewer) {
    let unheld = RescueBy::UnheldByWorker { worker: worker.clone(), held: renewer.held_jobs() };
    match shared.store.rescue(&unheld).await {
        Ok(RescueOutcome { jobs: 0, .. }) => {}
        Ok(RescueOutcome { jobs, .. }) => {
            tracing::warn!(worker.id = %worker, jobs, "put back jobs that this worker was recorded with and did not run");
        }
        Err(error) => {
            tracing::warn!(worker.id = %worker, %error, "failed to look for jobs that this worker does not run");
        }
    }
}

/// The state of leases since the last round. The clock shows when one may have ended, so leases are not checked every
/// second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leases {
    MayHaveEnded,
    AsBefore,
}

/// Watches other workers for as long as they hold jobs. Runs until dropped.
pub(crate) async fn watch(
    shared: &Shared,
    signals: &WorkerSignals,
    worker: &WorkerId,
    renewer: &LeaseRenewer,
) {
    let mut trust = ClockTrust::new(shared);
    let mut leases = Leases::MayHaveEnded;
    // The time of the next round, while other workers hold jobs.
    let mut expected: Option<Instant> = None;
    loop {
        let is_late = expected.is_some_and(|round| round.elapsed() > shared.options.lease / 6);
        if is_late || renewer.was_suspended(shared.options.lease) {
            trust.doubt(shared);
        }
        if leases == Leases::MayHaveEnded {
            release_unheld(shared, worker, renewer).await;
        }
        let watched = match rescue(shared, &mut trust, leases).await {
            Ok(rescued) => rescued.watched,
            Err(error) => {
                tracing::warn!(%error, "dead workers cannot be looked for, will try again");
                trust.doubt(shared);
                1
            }
        };
        let next_round = Instant::now() + ROUND;
        expected = (watched > 0).then_some(next_round);
        leases = tokio::select! {
            () = signals.lease_ends.notified() => Leases::MayHaveEnded,
            () = tokio::time::sleep_until(next_round), if watched > 0 => Leases::AsBefore,
            () = trust.wait_until_trusted() => Leases::MayHaveEnded,
            () = next_claim_or_deadline(signals, next_round) => Leases::AsBefore,
        };
    }
}

/// Decides if the end of a lease means that its worker is gone. It does not mean that after the clock was set
/// forward, the machine slept or the store took no writes: live workers must have the time of a lease to renew their
/// own.
pub(crate) struct ClockTrust {
    clock: Timestamp,
    at: Instant,
    doubted_until: Option<Instant>,
}

impl ClockTrust {
    /// Trusts from the start.
    pub(crate) fn new(shared: &Shared) -> Self {
        Self { clock: shared.store.now(), at: Instant::now(), doubted_until: None }
    }

    fn doubt(&mut self, shared: &Shared) {
        self.doubted_until = Some(Instant::now() + shared.options.lease);
    }

    fn is_even(&mut self, shared: &Shared) -> bool {
        let (clock, at) = (shared.store.now(), Instant::now());
        let leapt = clock.since(self.clock).saturating_sub(at - self.at);
        (self.clock, self.at) = (clock, at);
        // Leases are renewed after a third of their time, so a smaller leap ends no live one.
        if leapt > shared.options.lease / 3 {
            tracing::warn!(
                ?leapt,
                "the clock was set forward, or the machine slept; leases are given time"
            );
            self.doubt(shared);
        }
        if self.doubted_until.is_some_and(|until| until <= at) {
            tracing::info!("leases count again");
            self.doubted_until = None;
        }
        self.doubted_until.is_none()
    }

    /// Waits until doubts end, if there are any. Cancel-safe.
    async fn wait_until_trusted(&self) {
        until(self.doubted_until).await;
    }
}

/// Waits until a worker claimed a job, and then for the next round. Progress also ends the first wait, and one round
/// per second is enough for that. Cancel-safe as long as a round follows.
async fn next_claim_or_deadline(signals: &WorkerSignals, next_round: Instant) {
    signals.claims.notified().await;
    tokio::time::sleep_until(next_round).await;
}

/// Looks for jobs again whenever a detached worker may not run those that were left to it. Runs until dropped.
pub(crate) async fn look_for_lost_jobs(shared: &Shared) {
    let Some(handover) = shared.options.dispatch.handover() else {
        return std::future::pending().await;
    };
    loop {
        handover.must_look_again().await;
        shared.wakeups.publish_due();
    }
}
