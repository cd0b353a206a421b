//! The jobs of crashed workers.

use std::time::Duration;

use outlast_core::{Checkpoint, JobState, Progress, RescueBy, RescueOutcome};

use super::fixture::{Fixture, LEASE, a_job, a_run, worker};

/// The checkpoint is kept, no failure is counted, and the job is claimable immediately.
pub async fn a_crashed_workers_jobs_are_requeued_unchanged(fixture: Fixture) {
    let checkpoints = [
        Checkpoint::NotBegun,
        Checkpoint::Beginning { key: "k".to_owned() },
        Checkpoint::Running(a_run("run-1")),
    ];
    let mut ids = Vec::new();
    for checkpoint in &checkpoints {
        let claimed = fixture.add_claimed().await;
        fixture.store.checkpoint(&claimed.lease, checkpoint).await.unwrap();
        let progress = Progress { percent: Some(40), message: "reading".to_owned() };
        fixture.store.show_progress(&claimed.lease, &progress).await.unwrap();
        ids.push(claimed.job.id);
    }
    fixture.clock.advance(Duration::from_secs(1));
    let rescued = fixture.end_worker(&worker("w1")).await;
    assert_eq!(rescued.jobs, 3);
    for (id, checkpoint) in ids.iter().zip(&checkpoints) {
        let job = fixture.read(id).await;
        assert_eq!(job.state, JobState::Queued { run_at: fixture.clock_now() });
        assert_eq!(job.checkpoint, *checkpoint);
        assert_eq!(job.updated_at, fixture.clock_now());
        assert!(job.failures.is_empty() && job.progress.is_none());
    }
    let again = fixture.end_worker(&worker("w1")).await;
    assert_eq!(again.jobs, 0);
}

/// The caller vouches for one worker only.
pub async fn a_rescue_leaves_other_workers_alone(fixture: Fixture) {
    let mine = fixture.add_claimed().await;
    fixture.add(a_job()).await;
    let theirs = fixture.try_claim(&worker("w2")).await.unwrap();
    assert_eq!(fixture.end_worker(&worker("w2")).await.jobs, 1);
    assert_eq!(fixture.read(&mine.job.id).await, mine.job);
    assert!(matches!(fixture.read(&theirs.job.id).await.state, JobState::Queued { .. }));
}

/// Queued and finished jobs are not rescued.
pub async fn a_rescue_finds_nothing_when_nothing_runs(fixture: Fixture) {
    fixture.add_succeeded().await;
    let queued = fixture.add(a_job()).await;
    fixture.clock.advance(LEASE * 2);
    for dead in [RescueBy::DeadProcess, RescueBy::ExpiredLease] {
        assert_eq!(
            fixture.store.rescue(&dead).await.unwrap(),
            RescueOutcome::default(),
            "{dead:?}"
        );
    }
    assert_eq!(fixture.read(&queued.id).await, queued);
}

/// The safety net for all other mechanisms.
pub async fn an_expired_lease_is_rescued_and_a_running_one_is_not(fixture: Fixture) {
    let old = fixture.add_claimed().await;
    fixture.clock.advance(LEASE / 2);
    let young = fixture.add_claimed().await;
    fixture.clock.advance(LEASE / 2);
    assert_eq!(fixture.store.rescue(&RescueBy::ExpiredLease).await.unwrap().jobs, 1);
    assert!(matches!(fixture.read(&old.job.id).await.state, JobState::Queued { .. }));
    assert_eq!(fixture.read(&young.job.id).await, young.job);
}

/// Not a millisecond earlier.
pub async fn a_lease_is_expired_at_its_very_end(fixture: Fixture) {
    fixture.add_claimed().await;
    fixture.clock.advance(LEASE - Duration::from_millis(1));
    assert_eq!(fixture.store.rescue(&RescueBy::ExpiredLease).await.unwrap().jobs, 0);
    fixture.clock.advance(Duration::from_millis(1));
    assert_eq!(fixture.store.rescue(&RescueBy::ExpiredLease).await.unwrap().jobs, 1);
}

/// B9a: a live worker is only slow, and a second one could buy the same research twice.
pub async fn b9a_a_request_in_flight_stays_with_a_live_worker_past_its_lease(fixture: Fixture) {
    let beginning = Checkpoint::Beginning { key: "k".to_owned() };
    let sending = fixture.add_claimed().await;
    fixture.store.checkpoint(&sending.lease, &beginning).await.unwrap();
    let other = fixture.add_claimed().await;
    fixture.clock.advance(LEASE);
    assert_eq!(fixture.store.rescue(&RescueBy::ExpiredLease).await.unwrap().jobs, 1);
    assert!(matches!(fixture.read(&other.job.id).await.state, JobState::Queued { .. }));
    assert!(matches!(fixture.read(&sending.job.id).await.state, JobState::Running { .. }));
    let leases = [sending.lease.clone()];
    assert!(fixture.store.renew(&leases, LEASE).await.unwrap().is_empty(), "still its own");
    fixture.clock.advance(LEASE);
    fixture.store.deregister_worker(&worker("w1")).await.unwrap();
    assert_eq!(fixture.store.rescue(&RescueBy::ExpiredLease).await.unwrap().jobs, 1);
    let job = fixture.read(&sending.job.id).await;
    assert_eq!(job.checkpoint, beginning);
    assert!(matches!(job.state, JobState::Queued { .. }));
}

/// F6: a live worker releases jobs that the store assigns to it and it does not hold; it keeps the ones it
/// holds, and claims in flight.
pub async fn f6_a_live_worker_releases_jobs_it_does_not_hold(fixture: Fixture) {
    let beginning = Checkpoint::Beginning { key: "k".to_owned() };
    let lost = fixture.add_claimed().await;
    fixture.store.checkpoint(&lost.lease, &beginning).await.unwrap();
    let held = fixture.add_claimed().await;
    let unheld =
        RescueBy::UnheldByWorker { worker: lost.lease.worker.clone(), held: vec![held.job.id] };
    assert_eq!(fixture.store.rescue(&unheld).await.unwrap().jobs, 0, "its lease has not ended");
    fixture.clock.advance(LEASE);
    let young = fixture.add_claimed().await;
    let other = RescueBy::UnheldByWorker { worker: worker("another"), held: Vec::new() };
    assert_eq!(fixture.store.rescue(&other).await.unwrap().jobs, 0, "another worker's");
    assert_eq!(fixture.store.rescue(&unheld).await.unwrap().jobs, 1);
    let job = fixture.read(&lost.job.id).await;
    assert_eq!(job.checkpoint, beginning);
    assert!(matches!(job.state, JobState::Queued { .. }));
    assert!(matches!(fixture.read(&held.job.id).await.state, JobState::Running { .. }));
    assert!(matches!(fixture.read(&young.job.id).await.state, JobState::Running { .. }));
}

/// So the crashed worker cannot write if it resumes.
pub async fn a_rescued_job_is_claimed_again_under_a_higher_fence(fixture: Fixture) {
    let first = fixture.add_claimed().await;
    fixture.end_worker(&worker("w1")).await;
    let second = fixture.try_claim(&worker("w2")).await.unwrap();
    assert_eq!(second.job.id, first.job.id);
    assert!(second.lease.fence > first.lease.fence);
}

/// A process does not look for itself among the dead, nor does it watch itself.
pub async fn a_process_never_proves_its_own_live_worker_dead(fixture: Fixture) {
    let claimed = fixture.add_claimed().await;
    fixture.clock.advance(LEASE * 2);
    assert_eq!(
        fixture.store.rescue(&RescueBy::DeadProcess).await.unwrap(),
        RescueOutcome::default()
    );
    assert_eq!(fixture.read(&claimed.job.id).await, claimed.job);
}
