//! Who is there to run a job.

use outlast_core::{Checkpoint, Dead, JobState, NewJob, Profile, Rescued, Settlement};

use super::bench::{Bench, LEASE, a_failure, a_job, worker};

/// From its first claim on, whether or not there was something to claim; for what it claims, and nothing else.
pub async fn a_worker_is_known_from_its_first_claim(bench: Bench) {
    assert!(!has(&bench, "research").await);
    assert!(bench.try_claim(&worker("w1")).await.is_none());
    for (profile, expected) in [("research", true), ("search", true), ("elsewhere", false)] {
        assert_eq!(has(&bench, profile).await, expected, "{profile}");
    }
    bench.store.claim(&worker("w1"), &[Profile::new("elsewhere")], LEASE).await.unwrap();
    for profile in ["research", "search", "elsewhere"] {
        assert!(has(&bench, profile).await, "{profile}");
    }
}

/// Until the last of them has left.
pub async fn a_dismissed_worker_is_there_no_more(bench: Bench) {
    bench.try_claim(&worker("w1")).await;
    bench.try_claim(&worker("w2")).await;
    bench.store.dismiss(&worker("w1")).await.unwrap();
    assert!(has(&bench, "research").await);
    bench.store.dismiss(&worker("w2")).await.unwrap();
    bench.store.dismiss(&worker("w2")).await.unwrap();
    bench.store.dismiss(&worker("never-was")).await.unwrap();
    assert!(!has(&bench, "research").await);
    bench.try_claim(&worker("w2")).await;
    assert!(has(&bench, "research").await, "it came back");
}

/// Nobody waits for the lease of one who said goodbye.
pub async fn what_a_dismissed_worker_held_is_rescued_at_once(bench: Bench) {
    let left = bench.add_claimed().await;
    bench.add(a_job()).await;
    let held = bench.try_claim(&worker("w2")).await.unwrap();
    bench.store.dismiss(&worker("w1")).await.unwrap();
    assert_eq!(bench.read(&left.job.id).await, left.job, "not by the dismissal itself");
    let rescued = bench.store.rescue(&Dead::Proven).await.unwrap();
    assert_eq!(rescued, Rescued { jobs: 1, watched: 0 });
    assert!(matches!(bench.read(&left.job.id).await.state, JobState::Queued { .. }));
    assert_eq!(bench.read(&held.job.id).await, held.job);
}

/// The end of a lease is no proof: its worker may be slow.
pub async fn a_worker_that_was_declared_dead_is_there_no_more(bench: Bench) {
    bench.add_claimed().await;
    bench.clock.advance(LEASE);
    assert_eq!(bench.store.rescue(&Dead::LeasesExpired).await.unwrap().jobs, 1);
    assert!(has(&bench, "research").await);
    bench.end_worker(&worker("w1")).await;
    assert!(!has(&bench, "research").await);
}

/// Due or not, of these profiles only, and each once however often its profile is given.
pub async fn what_waits_is_counted_once(bench: Bench) {
    for profile in ["research", "research", "search"] {
        bench.add(NewJob { profile: Profile::new(profile), ..a_job() }).await;
    }
    let count = async |profiles: &[&str]| {
        let profiles: Vec<_> = profiles.iter().copied().map(Profile::new).collect();
        bench.store.queued(&profiles).await.unwrap()
    };
    assert_eq!(count(&["research", "search"]).await, 3);
    assert_eq!(count(&["research", "research"]).await, 2);
    assert_eq!(count(&["search", "elsewhere"]).await, 1);
    assert_eq!(count(&[]).await, 0);
    let claimed = bench.claim().await;
    assert_eq!(count(&["research"]).await, 1);
    let retry = Settlement::Retry {
        failure: a_failure("down"),
        wait: LEASE,
        checkpoint: Checkpoint::NotBegun,
    };
    bench.store.settle(&claimed.lease, retry).await.unwrap();
    assert_eq!(count(&["research"]).await, 2, "one of them later");
}

async fn has(bench: &Bench, profile: &str) -> bool {
    bench.store.has_worker(&Profile::new(profile)).await.unwrap()
}
