//! Held calls: claimed by id, never from the queue, and found again when their worker crashed.

use std::time::Duration;

use outlast_core::{
    Change, Checkpoint, HeldCallState, InitialWorker, Insert, InsertOutcome, Lease, NewJob,
    Profile, Scope, Settlement, StateKind, Visibility,
};

use super::fixture::{Fixture, LEASE, a_job, a_run, an_insert, fail, profiles, succeed, worker};

fn a_held_job() -> NewJob {
    NewJob { visibility: Visibility::Unpromised, ..a_job() }
}

/// B1: a held call is outside the queue.
pub async fn a_held_call_is_claimed_by_id_and_never_from_the_queue(fixture: Fixture) {
    let held = fixture.add(a_held_job()).await;
    let w1 = worker("w1");
    assert!(fixture.try_claim(&w1).await.is_none());
    assert_eq!(fixture.store.count_queued(&profiles()).await.unwrap(), 0);
    let taken = fixture.take(&w1, &held.id).await;
    let taken = taken.expect("it is queued");
    assert_eq!(taken.job.state.kind(), StateKind::Running);
    assert!(taken.job.fence > held.fence);
    let again = fixture.take(&worker("w2"), &held.id).await;
    assert!(again.is_none(), "another worker has it");
    fixture.store.settle(&taken.lease, succeed()).await.expect("the lease holds");
}

/// A worker that claims one job by its id does not offer to claim others.
pub async fn claiming_by_id_does_not_register_the_worker_and_needs_the_profile(fixture: Fixture) {
    let held = fixture.add(a_held_job()).await;
    let w1 = worker("w1");
    let strange = [Profile::new("another provider")];
    assert!(fixture.store.claim_by_id(&w1, &strange, &held.id, LEASE).await.unwrap().is_none());
    assert!(fixture.take(&w1, &held.id).await.is_some());
    assert!(!fixture.store.has_worker(&held.new.profile).await.unwrap());
}

/// B1: at its start a process looks for held calls that no process runs.
pub async fn held_calls_of_a_dead_worker_are_orphans(fixture: Fixture) {
    let held = fixture.add(a_held_job()).await;
    fixture.add(a_job()).await;
    assert_eq!(fixture.store.unclaimed_held_calls(&profiles()).await.unwrap(), [held.id]);
    let w1 = worker("w1");
    fixture.take(&w1, &held.id).await.expect("it is queued");
    assert_eq!(fixture.store.unclaimed_held_calls(&profiles()).await.unwrap(), []);
    let rev = fixture.store.rev().await.unwrap();
    fixture.end_worker(&w1).await;
    assert_eq!(fixture.store.unclaimed_held_calls(&profiles()).await.unwrap(), [held.id]);
    let orphaned = Change {
        id: held.id,
        state: StateKind::Queued,
        uncarried: HeldCallState::Abandoned,
        in_conversation: false,
    };
    assert_eq!(fixture.wait(rev).await.jobs, [orphaned], "every process is notified");
}

/// F11: a held call that its own process is about to claim is distinguishable; a queued job is not one.
pub async fn a_held_call_that_never_ran_is_distinguishable(fixture: Fixture) {
    let rev = fixture.store.rev().await.unwrap();
    let held = fixture.add(a_held_job()).await;
    let claimed = {
        fixture.add(a_job()).await;
        fixture.claim().await
    };
    fixture.store.settle(&claimed.lease, Settlement::Release).await.unwrap();
    let changes = fixture.wait(rev).await.jobs;
    let queued =
        |id, uncarried| Change { id, state: StateKind::Queued, uncarried, in_conversation: false };
    let expected = [
        queued(held.id, HeldCallState::Unclaimed),
        queued(claimed.job.id, HeldCallState::NotWaiting),
    ];
    assert_eq!(changes, expected);
}

/// A held call answered with a task: its caller has the id, and no worker claims it from the queue.
pub async fn a_task_is_claimed_by_id_and_listed_immediately(fixture: Fixture) {
    let conversation = Some(outlast_core::ConversationId::new("talk"));
    let task = NewJob { visibility: Visibility::Task, conversation, ..a_job() };
    let task = fixture.add(task).await;
    assert!(fixture.try_claim(&worker("w1")).await.is_none());
    assert_eq!(fixture.store.count_queued(&profiles()).await.unwrap(), 0);
    assert_eq!(fixture.store.unclaimed_held_calls(&profiles()).await.unwrap(), [task.id]);
    let query = outlast_core::ConversationQuery { limit: 9, ..Default::default() };
    let shown = fixture.store.conversations(&task.new.owner, &query).await.unwrap();
    assert_eq!(shown.conversations.len(), 1);
    let taken = fixture.take(&worker("w1"), &task.id).await;
    assert_eq!(taken.expect("it is queued").job.new.visibility, Visibility::Task);
}

/// C5: a failed held call is kept for a while; a successful one is kept with its conversation, forever.
pub async fn the_result_of_a_held_call_decides_how_long_it_is_kept(fixture: Fixture) {
    let keep = Duration::from_secs(60);
    let w1 = worker("w1");
    let mut ids = Vec::new();
    for (name, settlement) in [("good", succeed()), ("bad", fail())] {
        let conversation = Some(outlast_core::ConversationId::new(name));
        let held = fixture.add(NewJob { keep: Some(keep), conversation, ..a_held_job() }).await;
        let taken = fixture.take(&w1, &held.id).await;
        fixture.store.settle(&taken.expect("it is queued").lease, settlement).await.unwrap();
        ids.push(held.id);
    }
    fixture.clock.advance(keep * 2);
    assert!(fixture.store.job(&Scope::Operator, &ids[0]).await.unwrap().is_some());
    assert!(fixture.store.job(&Scope::Operator, &ids[1]).await.unwrap().is_none());
}

/// A held call that its own process runs is inserted, claimed and prepared for sending in one step.
pub async fn a_held_call_inserted_with_a_worker_belongs_to_it_from_the_start(fixture: Fixture) {
    let w1 = worker("w1");
    let carrier = Some(InitialWorker { worker: w1.clone(), lease: LEASE });
    let insert = Insert { initial_worker: carrier, ..an_insert(a_held_job()) };
    let InsertOutcome::New(job) = fixture.store.insert(insert.clone()).await.unwrap() else {
        panic!("there is no other");
    };
    if job.state.kind() == StateKind::Queued {
        // A store may leave it to be claimed.
        assert_eq!(fixture.store.unclaimed_held_calls(&profiles()).await.unwrap(), [job.id]);
        return;
    }
    assert!(matches!(job.checkpoint, Checkpoint::Beginning { .. }), "{:?}", job.checkpoint);
    assert_eq!(fixture.read(&job.id).await, job);
    assert!(fixture.store.unclaimed_held_calls(&profiles()).await.unwrap().is_empty());
    let lease = Lease { job: job.id, worker: w1.clone(), fence: job.fence };
    assert!(fixture.store.renew(std::slice::from_ref(&lease), LEASE).await.unwrap().is_empty());
    fixture.store.settle(&lease, succeed()).await.unwrap();
    let left = Insert { resumed_run: Some(a_run("left behind")), ..insert };
    let InsertOutcome::New(job) = fixture.store.insert(left).await.unwrap() else {
        panic!("there is no other");
    };
    assert_eq!(job.checkpoint, Checkpoint::Running(a_run("left behind")));
}
