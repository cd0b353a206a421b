//! Who may write: the present lease, and nobody else.

use std::time::Duration;

use outlast_core::{
    Cancelled, Checkpoint, Dead, Fence, JobId, Lease, Progress, Scope, Settlement, StoreError,
};

use super::bench::{Bench, LEASE, a_run, succeed, worker};

/// The job went to another worker in the meantime.
pub async fn a_stale_fence_cannot_write(bench: Bench) {
    let stale = bench.add_claimed().await.lease;
    bench.store.settle(&stale, Settlement::Release).await.unwrap();
    let fresh = bench.claim().await;
    assert!(fresh.lease.fence > stale.fence);
    is_refused(&bench, &stale).await;
    bench.store.settle(&fresh.lease, succeed()).await.unwrap();
    is_refused(&bench, &stale).await;
    is_refused(&bench, &fresh.lease).await;
}

/// The fence alone is not enough: it is a number anybody could count up to.
pub async fn another_worker_cannot_write_under_the_same_fence(bench: Bench) {
    let claimed = bench.add_claimed().await;
    is_refused(&bench, &Lease { worker: worker("w2"), ..claimed.lease.clone() }).await;
    is_refused(&bench, &Lease { fence: Fence(0), ..claimed.lease.clone() }).await;
    is_refused(&bench, &Lease { fence: Fence(2), ..claimed.lease.clone() }).await;
    bench.store.settle(&claimed.lease, succeed()).await.unwrap();
}

/// The cancel took the lease.
pub async fn nobody_writes_after_a_cancel(bench: Bench) {
    let claimed = bench.add_claimed().await;
    let cancelled = bench.store.cancel(&Scope::Operator, &claimed.job.id).await.unwrap();
    assert!(matches!(cancelled, Cancelled::Now(_)));
    is_refused(&bench, &claimed.lease).await;
}

/// The rescue took the lease, though nobody has claimed the job since.
pub async fn nobody_writes_after_a_rescue(bench: Bench) {
    let claimed = bench.add_claimed().await;
    bench.end_worker(&worker("w1")).await;
    is_refused(&bench, &claimed.lease).await;
}

/// There is nothing to hold.
pub async fn a_lease_on_an_unknown_job_is_lost(bench: Bench) {
    is_refused(&bench, &nowhere()).await;
}

/// The clock alone takes nothing away.
pub async fn a_late_renewal_holds(bench: Bench) {
    let claimed = bench.add_claimed().await;
    bench.clock.advance(LEASE * 100);
    let leases = [claimed.lease.clone()];
    assert!(bench.store.renew(&leases, LEASE).await.unwrap().is_empty());
    let rescued = bench.store.rescue(&Dead::LeasesExpired).await.unwrap();
    assert_eq!(rescued.jobs, 0);
    bench.store.settle(&claimed.lease, succeed()).await.unwrap();
}

/// Those that are held are renewed all the same.
pub async fn a_renewal_reports_exactly_the_lost_leases(bench: Bench) {
    let held = bench.add_claimed().await.lease;
    let cancelled = bench.add_claimed().await.lease;
    let settled = bench.add_claimed().await.lease;
    let also_held = bench.add_claimed().await.lease;
    bench.store.cancel(&Scope::Operator, &cancelled.job).await.unwrap();
    bench.store.settle(&settled, succeed()).await.unwrap();
    bench.clock.advance(LEASE / 2);
    let leases = [held.clone(), cancelled.clone(), settled.clone(), nowhere(), also_held.clone()];
    let mut lost = bench.store.renew(&leases, LEASE).await.unwrap();
    let mut expected = vec![cancelled.job, settled.job, nowhere().job];
    lost.sort();
    expected.sort();
    assert_eq!(lost, expected);
    bench.clock.advance(LEASE / 2);
    assert_eq!(bench.store.rescue(&Dead::LeasesExpired).await.unwrap().jobs, 0);
    assert!(bench.store.renew(&[], LEASE).await.unwrap().is_empty());
}

/// From the moment of the renewal, not from the old end.
pub async fn a_renewal_moves_the_end_of_the_lease(bench: Bench) {
    let claimed = bench.add_claimed().await;
    let end = bench.clock_now().after(LEASE);
    assert_eq!(bench.look(claimed.job.rev).await.next_due, Some(end));
    bench.clock.advance(LEASE / 3);
    bench.store.renew(&[claimed.lease], LEASE).await.unwrap();
    assert_eq!(bench.look(claimed.job.rev).await.next_due, Some(end.after(LEASE / 3)));
}

/// Each checkpoint replaces the one before.
pub async fn a_checkpoint_is_there_for_the_next_reader(bench: Bench) {
    let claimed = bench.add_claimed().await;
    let steps = [
        Checkpoint::Beginning { key: "k-0".to_owned() },
        Checkpoint::Running(a_run("run-1")),
        Checkpoint::NotBegun,
    ];
    for checkpoint in steps {
        bench.clock.advance(Duration::from_secs(1));
        bench.store.checkpoint(&claimed.lease, &checkpoint).await.unwrap();
        let job = bench.read(&claimed.job.id).await;
        assert_eq!(job.checkpoint, checkpoint);
        assert_eq!(job.updated_at, bench.clock_now());
        assert_eq!(job.new, claimed.job.new);
    }
}

/// Until the next try, which starts afresh.
pub async fn progress_never_goes_down_within_a_try(bench: Bench) {
    let claimed = bench.add_claimed().await;
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
        bench.store.note(&claimed.lease, &progress).await.unwrap();
        let job = bench.read(&claimed.job.id).await;
        assert_eq!(job.progress, Some(Progress { percent: shown, message }));
    }
    let job = bench.store.settle(&claimed.lease, Settlement::Release).await.unwrap();
    assert_eq!(job.progress, None);
    let again = bench.claim().await;
    let progress = Progress { percent: Some(1), message: "anew".to_owned() };
    bench.store.note(&again.lease, &progress).await.unwrap();
    assert_eq!(bench.read(&again.job.id).await.progress, Some(progress));
}

/// Every leased write says so, and none leaves a trace.
async fn is_refused(bench: &Bench, lease: &Lease) {
    let before = bench.store.job(&Scope::Operator, &lease.job).await.unwrap();
    let checkpoint = Checkpoint::Running(a_run("stale"));
    let progress = Progress { percent: Some(50), message: "stale".to_owned() };
    let written = bench.store.checkpoint(lease, &checkpoint).await;
    assert!(matches!(written, Err(StoreError::LeaseLost)), "checkpoint: {written:?}");
    let written = bench.store.note(lease, &progress).await;
    assert!(matches!(written, Err(StoreError::LeaseLost)), "note: {written:?}");
    for settlement in [succeed(), Settlement::Release] {
        let written = bench.store.settle(lease, settlement).await;
        assert!(matches!(written, Err(StoreError::LeaseLost)), "settle: {written:?}");
    }
    let lost = bench.store.renew(std::slice::from_ref(lease), LEASE).await.unwrap();
    assert_eq!(lost, [lease.job]);
    assert_eq!(bench.store.job(&Scope::Operator, &lease.job).await.unwrap(), before);
}

fn nowhere() -> Lease {
    let job: JobId = "0f8fad5bd9cb469fa16570867728950e".parse().unwrap();
    Lease { job, worker: worker("w1"), fence: Fence(1) }
}
