//! The shutdown of a worker: it releases its jobs, and it is deregistered.

use std::time::Duration;

use outlast_core::{Checkpoint, Lease, Settlement, StoreError, WorkerId};
use tokio::task::{JoinError, JoinSet};

use crate::shared::Shared;
use crate::wakeups::WorkerSignals;

/// The time limit for attempts to release their jobs. Those that wind down have longer.
const LEAVING: Duration = Duration::from_millis(1_500);

/// The time for which a store that does not answer may delay the end of a worker.
const DEREGISTER: Duration = Duration::from_millis(500);

/// The time that a worker which was asked to stop waits for the store to answer a claim.
const STORE_ANSWERS_WITHIN: Duration = Duration::from_millis(700);

/// Waits until a worker that was asked to stop has waited too long for its store. A claim that is dropped here and
/// committed later is undone like that of a worker that crashed.
pub(crate) async fn is_delayed(shared: &Shared) {
    shared.stop.wait().await;
    tokio::time::sleep(STORE_ANSWERS_WITHIN).await;
}

/// Waits until no attempt is under way, for a limited time, and deregisters the worker.
pub(crate) async fn leave(
    shared: &Shared,
    worker: &WorkerId,
    signals: &WorkerSignals,
    tries: [&mut JoinSet<()>; 2],
) {
    let drained = async {
        for taken in signals.leave() {
            release_unsent(shared, &taken.claimed.lease).await;
        }
        for tries in tries {
            while let Some(ended) = tries.join_next().await {
                log_lost_attempt(worker, ended);
            }
        }
    };
    let too_late = async {
        tokio::time::sleep(LEAVING).await;
        shared.wind_downs.wait_for_end().await;
    };
    let is_late = tokio::select! {
        () = drained => false,
        () = too_late => true,
    };
    if is_late {
        // The attempts that are left wait for a provider's answer; the next process finds their jobs.
        tracing::warn!(worker.id = %worker, "left before every job was given back");
    }
    match tokio::time::timeout(DEREGISTER, shared.store.deregister_worker(worker)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::warn!(worker.id = %worker, %error, "failed to deregister the worker; its leases will expire");
        }
        Err(_) => {
            tracing::warn!(worker.id = %worker, "failed to deregister the worker: the store does not answer; its leases will expire");
        }
    }
}

/// Releases a job that was recorded as about to be sent, but was not sent.
pub(crate) async fn release_unsent(shared: &Shared, lease: &Lease) {
    let given_back = async {
        shared.checkpoint(lease, &Checkpoint::NotBegun).await?;
        shared.settle(lease, &Settlement::Release).await
    };
    match given_back.await {
        Ok(_) => tracing::info!(job.id = %lease.job, "Job given back"),
        // It belongs to another worker, or it has ended.
        Err(StoreError::LeaseLost | StoreError::NotFound) => {}
        Err(error) => {
            tracing::warn!(job.id = %lease.job, %error, "a held call could not be given back");
        }
    }
}

/// Logs an attempt that panicked outside the provider's code.
pub(crate) fn log_lost_attempt(worker: &WorkerId, ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(worker.id = %worker, %error, "an attempt ended without settling its job");
    }
}
