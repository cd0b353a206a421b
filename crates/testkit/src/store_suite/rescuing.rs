//! What becomes of dead workers' jobs.

use std::time::Duration;

use outlast_core::{Checkpoint, Dead, JobState, Progress, Rescued};

use super::bench::{Bench, LEASE, a_job, a_run, worker};

/// Checkpoint kept, no failure counted, claimable at once.
pub async fn a_dead_workers_jobs_go_back_as_they_were(bench: Bench) {
    let checkpoints = [
        Checkpoint::NotBegun,
        Checkpoint::Beginning { key: "k".to_owned() },
        Checkpoint::Running(a_run("run-1")),
    ];
    let mut ids = Vec::new();
    for checkpoint in &checkpoints {
        let claimed = bench.add_claimed().await;
        bench.store.checkpoint(&claimed.lease, checkpoint).await.unwrap();
        let progress = Progress { percent: Some(40), message: "reading".to_owned() };
        bench.store.note(&claimed.lease, &progress).await.unwrap();
        ids.push(claimed.job.id);
    }
    bench.clock.advance(Duration::from_secs(1));
    let rescued = bench.end_worker(&worker("w1")).await;
    assert_eq!(rescued.jobs, 3);
    for (id, checkpoint) in ids.iter().zip(&checkpoints) {
        let job = bench.read(id).await;
        assert_eq!(job.state, JobState::Queued { run_at: bench.clock_now() });
        assert_eq!(job.checkpoint, *checkpoint);
        assert_eq!(job.updated_at, bench.clock_now());
        assert!(job.failures.is_empty() && job.progress.is_none());
    }
    let again = bench.end_worker(&worker("w1")).await;
    assert_eq!(again.jobs, 0);
}

/// The other workers live.
pub async fn a_rescue_leaves_other_workers_alone(bench: Bench) {
    let mine = bench.add_claimed().await;
    bench.add(a_job()).await;
    let theirs = bench.try_claim(&worker("w2")).await.unwrap();
    assert_eq!(bench.end_worker(&worker("w2")).await.jobs, 1);
    assert_eq!(bench.read(&mine.job.id).await, mine.job);
    assert!(matches!(bench.read(&theirs.job.id).await.state, JobState::Queued { .. }));
}

/// Neither queued nor finished jobs are rescued.
pub async fn a_rescue_finds_nothing_when_nothing_runs(bench: Bench) {
    bench.add_succeeded().await;
    let queued = bench.add(a_job()).await;
    bench.clock.advance(LEASE * 2);
    for dead in [Dead::Proven, Dead::LeasesExpired] {
        assert_eq!(bench.store.rescue(&dead).await.unwrap(), Rescued::default(), "{dead:?}");
    }
    assert_eq!(bench.read(&queued.id).await, queued);
}

/// The net behind everything else.
pub async fn an_expired_lease_is_rescued_and_a_running_one_is_not(bench: Bench) {
    let old = bench.add_claimed().await;
    bench.clock.advance(LEASE / 2);
    let young = bench.add_claimed().await;
    bench.clock.advance(LEASE / 2);
    assert_eq!(bench.store.rescue(&Dead::LeasesExpired).await.unwrap().jobs, 1);
    assert!(matches!(bench.read(&old.job.id).await.state, JobState::Queued { .. }));
    assert_eq!(bench.read(&young.job.id).await, young.job);
}

/// Not a millisecond before.
pub async fn a_lease_is_expired_at_its_very_end(bench: Bench) {
    bench.add_claimed().await;
    bench.clock.advance(LEASE - Duration::from_millis(1));
    assert_eq!(bench.store.rescue(&Dead::LeasesExpired).await.unwrap().jobs, 0);
    bench.clock.advance(Duration::from_millis(1));
    assert_eq!(bench.store.rescue(&Dead::LeasesExpired).await.unwrap().jobs, 1);
}

/// B9a: a live worker is only slow, and a second one could buy the same research twice.
pub async fn b9a_a_request_on_its_way_stays_with_a_live_worker_past_its_lease(bench: Bench) {
    let beginning = Checkpoint::Beginning { key: "k".to_owned() };
    let sending = bench.add_claimed().await;
    bench.store.checkpoint(&sending.lease, &beginning).await.unwrap();
    let other = bench.add_claimed().await;
    bench.clock.advance(LEASE);
    assert_eq!(bench.store.rescue(&Dead::LeasesExpired).await.unwrap().jobs, 1);
    assert!(matches!(bench.read(&other.job.id).await.state, JobState::Queued { .. }));
    assert!(matches!(bench.read(&sending.job.id).await.state, JobState::Running { .. }));
    let leases = [sending.lease.clone()];
    assert!(bench.store.renew(&leases, LEASE).await.unwrap().is_empty(), "still its own");
    bench.clock.advance(LEASE);
    bench.store.dismiss(&worker("w1")).await.unwrap();
    assert_eq!(bench.store.rescue(&Dead::LeasesExpired).await.unwrap().jobs, 1);
    let job = bench.read(&sending.job.id).await;
    assert_eq!(job.checkpoint, beginning);
    assert!(matches!(job.state, JobState::Queued { .. }));
}

/// So that the dead worker, should it wake up, cannot write.
pub async fn a_rescued_job_is_claimed_again_under_a_higher_fence(bench: Bench) {
    let first = bench.add_claimed().await;
    bench.end_worker(&worker("w1")).await;
    let second = bench.try_claim(&worker("w2")).await.unwrap();
    assert_eq!(second.job.id, first.job.id);
    assert!(second.lease.fence > first.lease.fence);
}

/// A process does not look for itself among the dead, nor watches itself.
pub async fn ones_own_live_worker_is_never_proven_dead(bench: Bench) {
    let claimed = bench.add_claimed().await;
    bench.clock.advance(LEASE * 2);
    assert_eq!(bench.store.rescue(&Dead::Proven).await.unwrap(), Rescued::default());
    assert_eq!(bench.read(&claimed.job.id).await, claimed.job);
}
