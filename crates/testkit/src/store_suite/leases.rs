//! Only the worker with the current lease may write.

use std::time::Duration;

use outlast_core::{
    CancelOutcome, Checkpoint, Fence, JobId, Lease, Progress, RescueBy, Scope, Settlement,
    StoreError,
};

use super::fixture::{Fixture, LEASE, a_run, succeed, worker};

/// The job went to another worker in the meantime.
pub async fn a_stale_fence_cannot_write(fixture: Fixture) {
    let stale = fixture.add_claimed().await.lease;
    fixture.store.settle(&stale, Settlement::Release).await.unwrap();
    let fresh = fixture.claim().await;
    assert!(fresh.lease.fence > stale.fence);
    is_refused(&fixture, &stale).await;
    fixture.store.settle(&fresh.lease, succeed()).await.unwrap();
    is_refused(&fixture, &stale).await;
    is_refused(&fixture, &fresh.lease).await;
}

/// The fence alone is not enough: any worker could guess the number.
pub async fn another_worker_cannot_write_under_the_same_fence(fixture: Fixture) {
    let claimed = fixture.add_claimed().await;
    is_refused(&fixture, &Lease { worker: worker("w2"), ..claimed.lease.clone() }).await;
    is_refused(&fixture, &Lease { fence: Fence(0), ..claimed.lease.clone() }).await;
    is_refused(&fixture, &Lease { fence: Fence(2), ..claimed.lease.clone() }).await;
    fixture.store.settle(&claimed.lease, succeed()).await.unwrap();
}

/// The cancel revoked the lease.
pub async fn no_worker_writes_after_a_cancel(fixture: Fixture) {
    let claimed = fixture.add_claimed().await;
    let cancelled = fixture.cancel(&claimed.job.id).await;
    assert!(matches!(cancelled, CancelOutcome::Now(_)));
    is_refused(&fixture, &claimed.lease).await;
}

/// The rescue revoked the lease, although no worker has claimed the job since.
pub async fn no_worker_writes_after_a_rescue(fixture: Fixture) {
    let claimed = fixture.add_claimed().await;
    fixture.end_worker(&worker("w1")).await;
    is_refused(&fixture, &claimed.lease).await;
}

/// There is nothing to hold.
pub async fn a_lease_on_an_unknown_job_is_lost(fixture: Fixture) {
    is_refused(&fixture, &nowhere()).await;
}

/// The clock alone revokes nothing.
pub async fn a_late_renewal_succeeds(fixture: Fixture) {
    let claimed = fixture.add_claimed().await;
    fixture.clock.advance(LEASE * 100);
    let leases = [claimed.lease.clone()];
    assert!(fixture.store.renew(&leases, LEASE).await.unwrap().is_empty());
    let rescued = fixture.store.rescue(&RescueBy::ExpiredLease).await.unwrap();
    assert_eq!(rescued.jobs, 0);
    fixture.store.settle(&claimed.lease, succeed()).await.unwrap();
}

/// Valid leases are renewed nevertheless.
pub async fn a_renewal_reports_exactly_the_lost_leases(fixture: Fixture) {
    let held = fixture.add_claimed().await.lease;
    let cancelled = fixture.add_claimed().await.lease;
    let settled = fixture.add_claimed().await.lease;
    let also_held = fixture.add_claimed().await.lease;
    fixture.cancel(&cancelled.job).await;
    fixture.store.settle(&settled, succeed()).await.unwrap();
    fixture.clock.advance(LEASE / 2);
    let leases = [held.clone(), cancelled.clone(), settled.clone(), nowhere(), also_held.clone()];
    let mut lost = fixture.store.renew(&leases, LEASE).await.unwrap();
    let mut expected = vec![cancelled.job, settled.job, nowhere().job];
    lost.sort();
    expected.sort();
    assert_eq!(lost, expected);
    fixture.clock.advance(LEASE / 2);
    assert_eq!(fixture.store.rescue(&RescueBy::ExpiredLease).await.unwrap().jobs, 0);
    assert!(fixture.store.renew(&[], LEASE).await.unwrap().is_empty());
}

/// It counts from the time of the renewal, not from the old end.
pub async fn a_renewal_moves_the_end_of_the_lease(fixture: Fixture) {
    let claimed = fixture.add_claimed().await;
    let end = fixture.clock_now().after(LEASE);
    assert_eq!(fixture.look(claimed.job.rev).await.next_due, Some(end));
    fixture.clock.advance(LEASE / 3);
    fixture.store.renew(&[claimed.lease], LEASE).await.unwrap();
    assert_eq!(fixture.look(claimed.job.rev).await.next_due, Some(end.after(LEASE / 3)));
}

/// Each checkpoint replaces the previous one.
pub async fn a_checkpoint_is_visible_to_the_next_reader(fixture: Fixture) {
    let claimed = fixture.add_claimed().await;
    let steps = [
        Checkpoint::Beginning { key: "k-0".to_owned() },
        Checkpoint::Running(a_run("run-1")),
        Checkpoint::NotBegun,
    ];
    for checkpoint in steps {
        fixture.clock.advance(Duration::from_secs(1));
        fixture.store.checkpoint(&claimed.lease, &checkpoint).await.unwrap();
        let job = fixture.read(&claimed.job.id).await;
        assert_eq!(job.checkpoint, checkpoint);
        assert_eq!(job.updated_at, fixture.clock_now());
        assert_eq!(job.new, claimed.job.new);
    }
}

/// Until the next attempt, which starts over.
pub async fn progress_never_goes_down_within_an_attempt(fixture: Fixture) {
    let claimed = fixture.add_claimed().await;
    let table = [
        (None, None),
        (Some(10), Some(10)),
        (Some(5), Some(10)),
        (None, Some(10)),
        (Some(0), Some(10)),
        (Some(99), Some(99)),
    ];
    for (percent, shown) in table {
        let message = format!("{percent:?} done");
        let progress = Progress { percent, message: message.clone() };
        fixture.store.show_progress(&claimed.lease, &progress).await.unwrap();
        let job = fixture.read(&claimed.job.id).await;
        assert_eq!(job.progress, Some(Progress { percent: shown, message }));
    }
    let job = fixture.store.settle(&claimed.lease, Settlement::Release).await.unwrap();
    assert_eq!(job.progress, None);
    let again = fixture.claim().await;
    let progress = Progress { percent: Some(1), message: "again".to_owned() };
    fixture.store.show_progress(&again.lease, &progress).await.unwrap();
    assert_eq!(fixture.read(&again.job.id).await.progress, Some(progress));
}

/// Every write under the lease reports its loss and changes nothing.
async fn is_refused(fixture: &Fixture, lease: &Lease) {
    let before = fixture.store.job(&Scope::Operator, &lease.job).await.unwrap();
    let checkpoint = Checkpoint::Running(a_run("stale"));
    let progress = Progress { percent: Some(50), message: "stale".to_owned() };
    let written = fixture.store.checkpoint(lease, &checkpoint).await;
    assert!(matches!(written, Err(StoreError::LeaseLost)), "checkpoint: {written:?}");
    let written = fixture.store.show_progress(lease, &progress).await;
    assert!(matches!(written, Err(StoreError::LeaseLost)), "note: {written:?}");
    for settlement in [succeed(), Settlement::Release] {
        let written = fixture.store.settle(lease, settlement).await;
        assert!(matches!(written, Err(StoreError::LeaseLost)), "settle: {written:?}");
    }
    let lost = fixture.store.renew(std::slice::from_ref(lease), LEASE).await.unwrap();
    assert_eq!(lost, [lease.job]);
    assert_eq!(fixture.store.job(&Scope::Operator, &lease.job).await.unwrap(), before);
}

fn nowhere() -> Lease {
    let job: JobId = "0f8fad5bd9cb469fa16570867728950e".parse().unwrap();
    Lease { job, worker: worker("w1"), fence: Fence(1) }
}
