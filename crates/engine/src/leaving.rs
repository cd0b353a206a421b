//! How a worker leaves: what it has in hand is given back, and it is taken off the list of workers.

use std::time::Duration;

use outlast_core::{Checkpoint, Lease, Settlement, StoreError, WorkerId};
use tokio::task::{JoinError, JoinSet};

use crate::shared::Shared;
use crate::wakeups::WorkerSignals;

/// How long attempts may take to give their jobs back.
const LEAVING: Duration = Duration::from_millis(1_500);

/// The time that a store which does not answer may delay the end of a worker.
const DEREGISTER: Duration = Duration::from_millis(500);

/// Waits until no try is under way, for a while.
pub(crate) async fn leave(
    shared: &Shared,
    worker: &WorkerId,
    signals: &WorkerSignals,
    tries: [&mut JoinSet<()>; 2],
) {
    let drained = async {
        for taken in signals.leave() {
            give_back(shared, &taken.claimed.lease).await;
        }
        for tries in tries {
            while let Some(ended) = tries.join_next().await {
                log_lost_attempt(worker, ended);
            }
        }
    };
    if tokio::time::timeout(LEAVING, drained).await.is_err() {
        // What is left is waiting for a provider's answer; the next process finds its job.
        tracing::warn!(worker.id = %worker, "left before every job was given back");
    }
    match tokio::time::timeout(DEREGISTER, shared.store.dismiss(worker)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::warn!(worker.id = %worker, %error, "failed to deregister the worker; its leases will expire");
        }
        Err(_) => {
            tracing::warn!(worker.id = %worker, "failed to deregister the worker: the store does not answer; its leases will expire");
        }
    }
}

/// Gives a job back that was recorded as about to be sent, and was not.
pub(crate) async fn give_back(shared: &Shared, lease: &Lease) {
    let given_back = async {
        shared.store.checkpoint(lease, &Checkpoint::NotBegun).await?;
        shared.store.settle(lease, Settlement::Release).await
    };
    match given_back.await {
        Ok(_) => tracing::info!(job.id = %lease.job, "Job given back"),
        // It is another worker's, or it has ended.
        Err(StoreError::LeaseLost | StoreError::NotFound) => {}
        Err(error) => {
            tracing::warn!(job.id = %lease.job, %error, "a held call could not be given back");
        }
    }
}

/// A try that panicked outside the provider's code, if one did.
pub(crate) fn log_lost_attempt(worker: &WorkerId, ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(worker.id = %worker, %error, "an attempt ended without settling its job");
    }
}
