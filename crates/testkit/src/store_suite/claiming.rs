//! The order and the conditions in which jobs are claimed.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use outlast_core::{
    Checkpoint, Fence, Insert, JobQuery, JobState, NewJob, OwnerId, Profile, Scope, Settlement,
    StateKind, StoreError, Visibility,
};

use super::fixture::{
    Fixture, LEASE, a_failure, a_job, alice, an_insert, bob, carol, fail, worker,
};
use crate::clock::START;

/// The order of the queue.
pub async fn higher_priority_comes_first_then_older(fixture: Fixture) {
    let mut jobs = Vec::new();
    for priority in [0, 5, 0, 5, -3, i16::MAX, i16::MIN] {
        jobs.push(fixture.add(NewJob { priority, ..a_job() }).await.id);
    }
    let mut claimed = Vec::new();
    while let Some(next) = fixture.try_claim(&worker("w1")).await {
        claimed.push(next.job.id);
    }
    let expected: Vec<_> = [5, 1, 3, 0, 2, 4, 6].into_iter().map(|at: usize| jobs[at]).collect();
    assert_eq!(claimed, expected);
}

/// tools.md: a waiting job knows its position.
pub async fn a_queue_position_follows_the_order_of_claims(fixture: Fixture) {
    let low = fixture.add(a_job()).await;
    let high = fixture.add(NewJob { priority: 5, ..a_job() }).await;
    let last = fixture.add(a_job()).await;
    let held = NewJob { visibility: Visibility::Unpromised, ..a_job() };
    fixture.add(held).await;
    for (job, ahead) in [(&high, 0), (&low, 1), (&last, 2)] {
        assert_eq!(fixture.store.queue_position(&job.id).await.unwrap(), ahead);
    }
    fixture.claim().await;
    assert_eq!(fixture.store.queue_position(&last.id).await.unwrap(), 1);
    assert_eq!(
        fixture.store.queue_position(&high.id).await.unwrap(),
        0,
        "it is no longer in the queue"
    );
}

/// The order of the requested profiles does not matter.
pub async fn priority_decides_across_profiles(fixture: Fixture) {
    let low = fixture.add(a_job()).await;
    let high =
        fixture.add(NewJob { profile: Profile::new("search"), priority: 1, ..a_job() }).await;
    let old = fixture.add(NewJob { profile: Profile::new("search"), ..a_job() }).await;
    let claimed = [fixture.claim().await, fixture.claim().await, fixture.claim().await];
    assert_eq!(claimed.map(|claimed| claimed.job.id), [high.id, low.id, old.id]);
}

fn of(owner: OwnerId, priority: i16) -> NewJob {
    NewJob { owner, priority, ..a_job() }
}

/// F10, B8: a later owner is served as soon as the earlier one has more running jobs, whatever their
/// priorities.
pub async fn slots_are_shared_between_owners_and_priority_counts_within_one(fixture: Fixture) {
    let alices = [fixture.add(of(alice(), 5)).await, fixture.add(of(alice(), 9)).await];
    let late = fixture.add(of(alice(), 100)).await;
    let bobs = [fixture.add(of(bob(), -7)).await, fixture.add(of(bob(), -9)).await];
    let mut claimed = Vec::new();
    while let Some(next) = fixture.try_claim(&worker("w1")).await {
        claimed.push(next.job.id);
    }
    let expected = [late.id, bobs[0].id, alices[1].id, bobs[1].id, alices[0].id];
    assert_eq!(claimed, expected);
}

/// F10: with one slot the owners take turns, and a late owner does not wait for the whole queue.
pub async fn among_equally_busy_owners_the_one_who_waited_longest_is_next(fixture: Fixture) {
    for _ in 0..4 {
        fixture.add(of(alice(), 0)).await;
    }
    let mut served = Vec::new();
    for step in 0..8 {
        match step {
            2 => drop((fixture.add(of(bob(), 0)).await, fixture.add(of(bob(), 0)).await)),
            3 => drop((fixture.add(of(carol(), 0)).await, fixture.add(of(carol(), 0)).await)),
            _ => {}
        }
        let claimed = fixture.claim().await;
        served.push(claimed.job.new.owner.clone());
        fixture.store.settle(&claimed.lease, fail()).await.unwrap();
    }
    let names: Vec<&str> = served.iter().map(OwnerId::as_str).collect();
    assert_eq!(names, ["alice", "alice", "bob", "carol", "alice", "bob", "carol", "alice"]);
}

/// B1: they run outside the queue, so they take no slot from their owner.
pub async fn held_calls_do_not_count_as_turns_of_the_queue(fixture: Fixture) {
    for visibility in [Visibility::Unpromised, Visibility::Task] {
        let held = fixture.add(NewJob { visibility, ..a_job() }).await;
        let taken = fixture.take(&worker("w1"), &held.id).await;
        taken.expect("it is queued");
    }
    let first = fixture.add(of(alice(), 0)).await;
    let second = fixture.add(of(bob(), 0)).await;
    assert_eq!(fixture.claim().await.job.id, first.id);
    assert_eq!(fixture.claim().await.job.id, second.id);
}

/// tools.md: a position respects the order in which owners are served.
pub async fn queue_positions_count_all_owners(fixture: Fixture) {
    for owner in [alice(), alice(), alice(), alice(), bob(), carol(), bob()] {
        fixture.add(of(owner, 0)).await;
    }
    fixture.claim().await;
    let other = NewJob { profile: Profile::new("search"), ..of(bob(), 3) };
    fixture.add(other).await;
    let mut places = Vec::new();
    let query = JobQuery { states: vec![StateKind::Queued], limit: 100, ..JobQuery::default() };
    for job in fixture.store.list(&Scope::Operator, &query).await.unwrap().jobs {
        places.push((fixture.store.queue_position(&job.id).await.unwrap(), job.id));
    }
    places.sort();
    let research = [Profile::new("research")];
    let (w1, mut claimed) = (worker("w1"), Vec::new());
    while let Some(next) = fixture.store.claim(&w1, &research, LEASE).await.unwrap() {
        claimed.push(next.job.id);
    }
    let told: Vec<_> =
        places.into_iter().map(|(_, id)| id).filter(|id| claimed.contains(id)).collect();
    assert_eq!(told, claimed);
}

/// F10: an owner counts from the first accepted job, not from a refused one.
pub async fn a_refused_insert_does_not_register_its_owner(fixture: Fixture) {
    let refused = Insert { max_bytes: 0, ..an_insert(of(alice(), 0)) };
    let refused = fixture.store.insert(refused).await;
    assert!(matches!(refused, Err(StoreError::TooManyBytes)), "{refused:?}");
    let first = fixture.add(of(bob(), 0)).await;
    fixture.add(of(alice(), 0)).await;
    assert_eq!(fixture.store.queue_position(&first.id).await.unwrap(), 0);
    assert_eq!(fixture.claim().await.job.id, first.id);
}

/// The delay after a failure is exact to the millisecond, and delays no other job.
pub async fn a_job_is_not_claimed_before_its_time(fixture: Fixture) {
    let claimed = fixture.add_claimed().await;
    let retry = Settlement::Retry {
        failure: a_failure("down"),
        wait: Duration::from_secs(5),
        checkpoint: Checkpoint::NotBegun,
    };
    fixture.store.settle(&claimed.lease, retry).await.unwrap();
    let other = fixture.add(NewJob { priority: -1, ..a_job() }).await;
    assert_eq!(fixture.claim().await.job.id, other.id);
    fixture.clock.advance(Duration::from_millis(4_999));
    assert!(fixture.try_claim(&worker("w1")).await.is_none());
    fixture.clock.advance(Duration::from_millis(1));
    assert_eq!(fixture.claim().await.job.id, claimed.job.id);
}

/// A worker gets only jobs that it can run; one that can run none gets none.
pub async fn a_job_of_another_profile_is_not_claimed(fixture: Fixture) {
    fixture.add(a_job()).await;
    for profiles in [vec![Profile::new("elsewhere")], vec![Profile::new("Research")], vec![]] {
        let claimed = fixture.store.claim(&worker("w1"), &profiles, LEASE).await.unwrap();
        assert_eq!(claimed, None, "{profiles:?}");
    }
    fixture.claim().await;
}

/// The effects of a claim on the job.
pub async fn a_claim_raises_the_fence_and_starts_the_run(fixture: Fixture) {
    let job = fixture.add(a_job()).await;
    fixture.clock.advance(Duration::from_secs(1));
    let claimed = fixture.claim().await;
    let since = START.after(Duration::from_secs(1));
    assert_eq!(claimed.job.state, JobState::Running { since });
    assert_eq!(claimed.job.new, job.new);
    assert_eq!((claimed.job.fence, claimed.job.updated_at), (Fence(1), since));
    assert_eq!((claimed.lease.job, claimed.lease.fence), (job.id, Fence(1)));
    assert_eq!(claimed.lease.worker, worker("w1"));
    assert_eq!(fixture.read(&job.id).await, claimed.job);
    assert!(fixture.try_claim(&worker("w2")).await.is_none());
}

/// B11: no job twice, none left, and losing a race is not an error.
pub async fn many_concurrent_workers_claim_each_job_once(fixture: Fixture) {
    const JOBS: usize = 40;
    for _ in 0..JOBS {
        fixture.add(a_job()).await;
    }
    let fixture = Arc::new(fixture);
    let tasks: Vec<_> = (0..8)
        .map(|number| {
            let fixture = fixture.clone();
            tokio::spawn(async move {
                let mut claimed = Vec::new();
                while let Some(next) = fixture.try_claim(&worker(&format!("w{number}"))).await {
                    claimed.push(next.job.id);
                }
                claimed
            })
        })
        .collect();
    let mut claimed = Vec::new();
    for task in tasks {
        claimed.extend(task.await.unwrap());
    }
    assert_eq!(claimed.len(), JOBS);
    assert_eq!(claimed.into_iter().collect::<HashSet<_>>().len(), JOBS);
}
