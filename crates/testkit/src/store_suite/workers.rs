//! The workers that are available to run a job.

use outlast_core::{Checkpoint, JobState, NewJob, Profile, RescueBy, RescueOutcome, Settlement};

use super::fixture::{Fixture, LEASE, a_failure, a_job, worker};

/// From its first claim on, even if there was nothing to claim; for the profiles it claims, and no others.
pub async fn a_worker_is_known_from_its_first_claim(fixture: Fixture) {
    assert!(!has(&fixture, "research").await);
    assert!(fixture.try_claim(&worker("w1")).await.is_none());
    for (profile, expected) in [("research", true), ("search", true), ("elsewhere", false)] {
        assert_eq!(has(&fixture, profile).await, expected, "{profile}");
    }
    fixture.store.claim(&worker("w1"), &[Profile::new("elsewhere")], LEASE).await.unwrap();
    for profile in ["research", "search", "elsewhere"] {
        assert!(has(&fixture, profile).await, "{profile}");
    }
}

/// Until the last of them has deregistered.
pub async fn a_deregistered_worker_is_no_longer_available(fixture: Fixture) {
    fixture.try_claim(&worker("w1")).await;
    fixture.try_claim(&worker("w2")).await;
    fixture.store.deregister_worker(&worker("w1")).await.unwrap();
    assert!(has(&fixture, "research").await);
    fixture.store.deregister_worker(&worker("w2")).await.unwrap();
    fixture.store.deregister_worker(&worker("w2")).await.unwrap();
    fixture.store.deregister_worker(&worker("never-was")).await.unwrap();
    assert!(!has(&fixture, "research").await);
    fixture.try_claim(&worker("w2")).await;
    assert!(has(&fixture, "research").await, "it came back");
}

/// The jobs of a deregistered worker do not wait for their leases to expire.
pub async fn the_jobs_of_a_deregistered_worker_are_rescued_immediately(fixture: Fixture) {
    let left = fixture.add_claimed().await;
    fixture.add(a_job()).await;
    let held = fixture.try_claim(&worker("w2")).await.unwrap();
    fixture.store.deregister_worker(&worker("w1")).await.unwrap();
    assert_eq!(fixture.read(&left.job.id).await, left.job, "not by the dismissal itself");
    let rescued = fixture.store.rescue(&RescueBy::DeadProcess).await.unwrap();
    assert_eq!(rescued, RescueOutcome { jobs: 1, watched: 0 });
    assert!(matches!(fixture.read(&left.job.id).await.state, JobState::Queued { .. }));
    assert_eq!(fixture.read(&held.job.id).await, held.job);
}

/// A caller who vouches for its end is believed here too; one who only waited for its lease is not.
pub async fn a_worker_that_was_declared_dead_is_no_longer_available(fixture: Fixture) {
    fixture.add_claimed().await;
    fixture.clock.advance(LEASE);
    assert_eq!(fixture.store.rescue(&RescueBy::ExpiredLease).await.unwrap().jobs, 1);
    assert!(has(&fixture, "research").await);
    fixture.end_worker(&worker("w1")).await;
    assert!(!has(&fixture, "research").await);
}

/// Due or not, of these profiles only, and each once, even if its profile is given twice.
pub async fn waiting_jobs_are_counted_once(fixture: Fixture) {
    for profile in ["research", "research", "search"] {
        fixture.add(NewJob { profile: Profile::new(profile), ..a_job() }).await;
    }
    let count = async |profiles: &[&str]| {
        let profiles: Vec<_> = profiles.iter().copied().map(Profile::new).collect();
        fixture.store.count_queued(&profiles).await.unwrap()
    };
    assert_eq!(count(&["research", "search"]).await, 3);
    assert_eq!(count(&["research", "research"]).await, 2);
    assert_eq!(count(&["search", "elsewhere"]).await, 1);
    assert_eq!(count(&[]).await, 0);
    let claimed = fixture.claim().await;
    assert_eq!(count(&["research"]).await, 1);
    let retry = Settlement::Retry {
        failure: a_failure("down"),
        wait: LEASE,
        checkpoint: Checkpoint::NotBegun,
    };
    fixture.store.settle(&claimed.lease, retry).await.unwrap();
    assert_eq!(count(&["research"]).await, 2, "one of them later");
}

async fn has(fixture: &Fixture, profile: &str) -> bool {
    fixture.store.has_worker(&Profile::new(profile)).await.unwrap()
}
