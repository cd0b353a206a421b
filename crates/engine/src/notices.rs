//! Delivers notices of the ends of jobs (G7). The store records a notice together with each end, so a crash does not
//! lose it. One process at a time has the right to deliver a notice, and a second delivery does no harm.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use outlast_core::{
    ClaimedNotice, NotDelivered, NoticeClaim, NoticeOutcome, Notifier, StoreError, Timestamp, rules,
};
use tokio_util::sync::CancellationToken;

use crate::shared::Shared;
use crate::wakeups::WorkerSignals;

/// The time that a process has the exclusive right to a notice: longer than any delivery may take.
const LEASE: Duration = Duration::from_secs(60);
/// The time limit of one delivery, whatever limits the notifier itself has.
const DELIVERING: Duration = Duration::from_secs(45);
/// The time for which a worker that is shutting down may still deliver due notices.
const LEAVING: Duration = Duration::from_secs(10);
/// The time that a worker which is shutting down waits for a store that does not answer.
const LEAVING_CLAIM: Duration = Duration::from_secs(2);
/// The wait after an error of the store, and the shortest wait for a notice that another process has claimed.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The longest time that a worker which is shutting down waits for a notice that is due again.
const SOON: Duration = Duration::from_secs(2);
/// The longest wait for a notice that is due later: the clock may be changed meanwhile.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Delivers notices as they become due, until `leaving`, and then the notices that are due at that moment. Returns at
/// once if no notifier is configured.
pub(crate) async fn run(shared: &Shared, signals: &WorkerSignals, leaving: &CancellationToken) {
    let Some(notifier) = &shared.options.notifier else { return };
    let left = async {
        leaving.cancelled().await;
        tokio::time::sleep(LEAVING).await;
    };
    tokio::select! {
        () = deliver_until(shared, &**notifier, signals, leaving) => {}
        // The next process delivers it when the claim has ended.
        () = left => tracing::warn!("left before every notice of an end was delivered"),
    }
}

async fn deliver_until(
    shared: &Shared,
    notifier: &dyn Notifier,
    signals: &WorkerSignals,
    leaving: &CancellationToken,
) {
    loop {
        // Read before the look, so that the look finds the notices of everything that a leaving worker has settled.
        let is_leaving = leaving.is_cancelled();
        let wait = match deliver_due(shared, notifier, leaving).await {
            Ok(next) => next.map(|next| next.since(shared.store.now()).max(LOOK_AGAIN)),
            Err(error) if leaving.is_cancelled() => {
                tracing::warn!(%error, "failed to claim notices of ends; the next process delivers them");
                return;
            }
            Err(error) => {
                tracing::warn!(%error, "notices of ends cannot be read or recorded, will try again");
                Some(LOOK_AGAIN)
            }
        };
        // One more delivery soon is worth the wait: the next process may start days later.
        if is_leaving && wait.is_none_or(|wait| wait > SOON) {
            return;
        }
        tokio::select! {
            () = signals.notices.notified() => {}
            () = tokio::time::sleep(wait.unwrap_or_default().min(LONGEST_WAIT)), if wait.is_some() => {}
            () = leaving.cancelled(), if !is_leaving => {}
        }
    }
}

/// Delivers all due notices one after the other; returns the time when the next one is due.
async fn deliver_due(
    shared: &Shared,
    notifier: &dyn Notifier,
    leaving: &CancellationToken,
) -> Result<Option<Timestamp>, StoreError> {
    loop {
        let silent = async {
            leaving.cancelled().await;
            tokio::time::sleep(LEAVING_CLAIM).await;
        };
        let claimed = tokio::select! {
            claimed = shared.store.claim_notice(LEASE) => claimed?,
            () = silent => return Err(StoreError::Unavailable("the store does not answer".into())),
        };
        let claimed = match claimed {
            NoticeClaim::Claimed(claimed) => claimed,
            NoticeClaim::NoneDue { next } => return Ok(next),
        };
        let outcome = deliver(notifier, &claimed).await;
        shared.store.record_notice(&claimed, outcome).await?;
    }
}

async fn deliver(notifier: &dyn Notifier, claimed: &ClaimedNotice) -> NoticeOutcome {
    let ClaimedNotice { notice, tries } = claimed;
    // The adapter's code is not ours: neither its panic nor its silence may end the worker.
    let delivering = AssertUnwindSafe(notifier.deliver(notice)).catch_unwind();
    let delivered = match tokio::time::timeout(DELIVERING, delivering).await {
        Ok(Ok(delivered)) => delivered,
        Ok(Err(_)) => Err(failed_delivery("the notifier panicked")),
        Err(_) => Err(failed_delivery("it took too long")),
    };
    let Err(NotDelivered { why, detail }) = delivered else {
        tracing::info!(job.id = %notice.job, tries, "notice of the end delivered");
        return NoticeOutcome::Over;
    };
    let outcome = rules::retry_or_give_up(*tries);
    match outcome {
        NoticeOutcome::Again(wait) => {
            let wait_ms = wait.as_millis();
            tracing::info!(job.id = %notice.job, tries, error = why, detail, wait_ms, "notice of the end not delivered, will try again");
        }
        NoticeOutcome::Over => {
            tracing::warn!(job.id = %notice.job, tries, error = why, detail, "notice of the end given up");
        }
    }
    outcome
}

fn failed_delivery(why: &str) -> NotDelivered {
    NotDelivered { why: why.to_owned(), detail: None }
}
