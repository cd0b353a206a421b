//! Idempotency keys: one owner, one key, one job.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{
    Checkpoint, Code, ConversationId, Failure, Insert, InsertOutcome, Job, NewJob, Profile, Scope,
    Settlement, StoreError, Timestamp,
};

use super::fixture::{
    Fixture, a_failure, a_held_key, a_job, a_key, a_research_key, a_run, bob, fail, succeed,
};

/// In every state of the job.
pub async fn the_same_key_and_input_find_the_same_job(fixture: Fixture) {
    let first = new(fixture.add_keyed(a_job(), a_key("k", 1)).await);
    assert_eq!(existing(fixture.add_keyed(a_job(), a_key("k", 1)).await), first);
    let claimed = fixture.claim().await;
    assert_eq!(existing(fixture.add_keyed(a_job(), a_key("k", 1)).await), claimed.job);
    let settled = fixture.store.settle(&claimed.lease, succeed()).await.unwrap();
    assert_eq!(existing(fixture.add_keyed(a_job(), a_key("k", 1)).await), settled);
    assert!(fixture.try_claim(&super::worker("w2")).await.is_none(), "no second job was made");
}

/// The refusal names the job that has the key.
pub async fn the_same_key_with_other_input_is_a_conflict(fixture: Fixture) {
    let first = new(fixture.add_keyed(a_job(), a_key("k", 1)).await);
    let refused = fixture.add_keyed(a_job(), a_key("k", 2)).await;
    assert!(matches!(refused, Err(StoreError::KeyConflict(id)) if id == first.id), "{refused:?}");
    new(fixture.add_keyed(a_job(), a_key("other", 2)).await);
}

/// The window counts from the insert; afterwards the key names the new job.
pub async fn a_key_is_free_again_after_its_window(fixture: Fixture) {
    let first = new(fixture.add_keyed(a_job(), a_key("k", 1)).await);
    fixture.end_next(succeed()).await;
    fixture.clock.advance(Duration::from_millis(59_999));
    assert_eq!(existing(fixture.add_keyed(a_job(), a_key("k", 1)).await).id, first.id);
    fixture.clock.advance(Duration::from_millis(1));
    let second = new(fixture.add_keyed(a_job(), a_key("k", 2)).await);
    assert_ne!(second.id, first.id);
    assert_eq!(existing(fixture.add_keyed(a_job(), a_key("k", 2)).await).id, second.id);
}

/// A slow job is not bought twice because its key expired.
pub async fn a_key_outlives_its_window_while_its_job_is_unfinished(fixture: Fixture) {
    let first = new(fixture.add_keyed(a_job(), a_key("k", 1)).await);
    fixture.clock.advance(Duration::from_secs(3600));
    assert_eq!(existing(fixture.add_keyed(a_job(), a_key("k", 1)).await).id, first.id);
    let claimed = fixture.claim().await;
    assert_eq!(existing(fixture.add_keyed(a_job(), a_key("k", 1)).await).id, first.id);
    fixture.store.settle(&claimed.lease, succeed()).await.unwrap();
    new(fixture.add_keyed(a_job(), a_key("k", 1)).await);
}

/// Two owners may use the same key.
pub async fn a_key_belongs_to_its_owner(fixture: Fixture) {
    let hers = new(fixture.add_keyed(a_job(), a_key("k", 1)).await);
    let his = NewJob { owner: bob(), ..a_job() };
    let his = new(fixture.add_keyed(his, a_key("k", 2)).await);
    assert_ne!(hers.id, his.id);
}

/// The key was promised for its window, whatever the job's retention.
pub async fn a_key_finds_its_job_even_after_its_retention(fixture: Fixture) {
    let short = NewJob { keep: Some(Duration::from_secs(1)), ..a_job() };
    let first = new(fixture.add_keyed(short.clone(), a_key("k", 1)).await);
    let settled = fixture.end_next(succeed()).await;
    fixture.clock.advance(Duration::from_secs(2));
    assert_eq!(fixture.store.job(&Scope::Operator, &first.id).await.unwrap(), None);
    assert_eq!(existing(fixture.add_keyed(short, a_key("k", 1)).await), settled);
}

/// The order of refusals: key, conversation, quota.
pub async fn a_key_is_answered_before_a_busy_conversation_and_a_full_quota(fixture: Fixture) {
    let talk = NewJob { conversation: Some(ConversationId::new("talk")), ..a_job() };
    let insert = |job: NewJob, key| {
        fixture.store.insert(Insert {
            job,
            key,
            max_unfinished: 1,
            max_bytes: u64::MAX,
            resumed_run: None,
            takeover: None,
            reservation: None,
            initial_worker: None,
        })
    };
    let first = new(insert(talk.clone(), Some(a_key("k", 1))).await);
    assert_eq!(existing(insert(talk.clone(), Some(a_key("k", 1))).await), first);
    let refused = insert(talk.clone(), Some(a_key("k", 2))).await;
    assert!(matches!(refused, Err(StoreError::KeyConflict(_))), "{refused:?}");
    let refused = insert(talk, Some(a_key("fresh", 1))).await;
    assert!(matches!(refused, Err(StoreError::ConversationBusy(_))), "{refused:?}");
    let refused = insert(a_job(), Some(a_key("fresh", 1))).await;
    assert!(matches!(refused, Err(StoreError::TooManyJobs)), "{refused:?}");
    fixture.cancel(&first.id).await;
    // A refused insert must not have claimed the key.
    new(insert(a_job(), Some(a_key("fresh", 9))).await);
}

/// One of many concurrent inserts creates the job and the others find it.
pub async fn many_concurrent_inserts_under_one_key_make_one_job(fixture: Fixture) {
    let fixture = Arc::new(fixture);
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let fixture = fixture.clone();
            tokio::spawn(async move { fixture.add_keyed(a_job(), a_key("k", 1)).await })
        })
        .collect();
    let (mut made, mut ids) = (0, Vec::new());
    for task in tasks {
        match task.await.unwrap().unwrap() {
            InsertOutcome::New(job) => {
                made += 1;
                ids.push(job.id);
            }
            InsertOutcome::Existing { job, .. } => ids.push(job.id),
        }
    }
    ids.dedup();
    assert_eq!((made, ids.len()), (1, 1));
}

/// Promise 2: the same held call finds its job until a call was answered with the outcome.
pub async fn a_held_calls_key_is_valid_until_it_was_answered(fixture: Fixture) {
    let first = new(fixture.add_keyed(a_job(), a_held_key("k", 1)).await);
    fixture.store.record_answer(&first.id).await.unwrap();
    assert_eq!(existing(fixture.add_keyed(a_job(), a_held_key("k", 1)).await).id, first.id);
    let claimed = fixture.claim().await;
    fixture.clock.advance(Duration::from_secs(3600));
    let settled = fixture.store.settle(&claimed.lease, succeed()).await.unwrap();
    assert_eq!(existing(fixture.add_keyed(a_job(), a_held_key("k", 1)).await), settled);
    let refused = fixture.add_keyed(a_job(), a_held_key("k", 2)).await;
    assert!(matches!(refused, Err(StoreError::KeyConflict(id)) if id == first.id), "{refused:?}");
    let rev = fixture.store.rev().await.unwrap();
    fixture.store.record_answer(&first.id).await.unwrap();
    assert_eq!(fixture.store.rev().await.unwrap(), rev, "no reader sees a difference");
    assert_eq!(fixture.read(&first.id).await, settled);
    assert_ne!(new(fixture.add_keyed(a_job(), a_held_key("k", 2)).await).id, first.id);
}

/// Counted from the job's end, however long it ran.
pub async fn a_held_calls_key_expires_after_the_end(fixture: Fixture) {
    let first = new(fixture.add_keyed(a_job(), a_held_key("k", 1)).await);
    fixture.clock.advance(Duration::from_secs(3600));
    fixture.end_next(succeed()).await;
    fixture.clock.advance(Duration::from_millis(59_999));
    assert_eq!(existing(fixture.add_keyed(a_job(), a_held_key("k", 1)).await).id, first.id);
    fixture.clock.advance(Duration::from_millis(1));
    new(fixture.add_keyed(a_job(), a_held_key("k", 1)).await);
}

/// Promise 2: even after a call was answered with it, for a shorter time; the first answer counts.
pub async fn a_research_calls_key_is_valid_for_a_while_after_an_answer(fixture: Fixture) {
    let ask = || fixture.add_keyed(a_job(), a_research_key("k", 1));
    let first = new(ask().await);
    fixture.store.record_answer(&first.id).await.unwrap();
    let claimed = fixture.claim().await;
    fixture.clock.advance(Duration::from_secs(3600));
    let settled = fixture.store.settle(&claimed.lease, succeed()).await.unwrap();
    let ended_at = settled.ended_at().unwrap();
    assert_eq!(answered_at(ask().await), None, "an unfinished job answers no call");
    fixture.clock.advance(Duration::from_secs(1));
    let rev = fixture.store.rev().await.unwrap();
    fixture.store.record_answer(&first.id).await.unwrap();
    assert_eq!(fixture.store.rev().await.unwrap(), rev, "no reader sees a difference");
    fixture.clock.advance(Duration::from_millis(8_999));
    fixture.store.record_answer(&first.id).await.unwrap();
    assert_eq!(existing(ask().await), settled);
    assert_eq!(answered_at(ask().await), Some(ended_at.after(Duration::from_secs(1))));
    fixture.clock.advance(Duration::from_millis(1));
    let second = new(ask().await);
    assert_ne!(second.id, first.id);
    fixture.end_next(succeed()).await;
    fixture.clock.advance(Duration::from_millis(59_999));
    assert_eq!(existing(ask().await).id, second.id, "longer while no call was answered");
    fixture.clock.advance(Duration::from_millis(1));
    new(ask().await);
}

/// Promise 2: an answered failure is not repeated, unless starting over needs the caller's consent.
pub async fn a_research_calls_failure_is_repeated_only_if_consent_is_needed(fixture: Fixture) {
    for (text, code) in [("refused", Code::RateLimited), ("unknown", Code::SubmitUnknown)] {
        let ask = || fixture.add_keyed(a_job(), a_research_key(text, 1));
        let first = new(ask().await);
        let claimed = fixture.claim().await;
        let failure = Failure { code, run_goes_on: false, ..a_failure("no") };
        fixture
            .store
            .settle(&claimed.lease, Settlement::Fail { failure, raw: None })
            .await
            .unwrap();
        assert_eq!(existing(ask().await).id, first.id, "no call was answered");
        fixture.store.record_answer(&first.id).await.unwrap();
        if code == Code::RateLimited {
            let second = new(ask().await);
            fixture.cancel(&second.id).await;
            continue;
        }
        fixture.clock.advance(Duration::from_millis(59_999));
        assert_eq!(existing(ask().await).id, first.id);
        fixture.clock.advance(Duration::from_millis(1));
        new(ask().await);
    }
}

/// Promise 2: a result that was paid for and may still exist is resumed only by the same call.
pub async fn a_research_call_resumes_the_run_of_its_failure(fixture: Fixture) {
    let left = Checkpoint::Running(a_run("left"));
    let cases = [
        (a_research_key("same", 1), a_job(), left.clone()),
        (
            a_research_key("moved", 1),
            NewJob { profile: Profile::new("search"), ..a_job() },
            Checkpoint::NotBegun,
        ),
        (a_held_key("workflow", 1), a_job(), Checkpoint::NotBegun),
    ];
    for (key, again, expected) in cases {
        let first = new(fixture.add_keyed(a_job(), key.clone()).await);
        let claimed = fixture.claim().await;
        fixture.store.checkpoint(&claimed.lease, &left).await.unwrap();
        fixture.store.settle(&claimed.lease, fail()).await.unwrap();
        fixture.store.record_answer(&first.id).await.unwrap();
        let second = new(fixture.add_keyed(again, key).await);
        assert_eq!(second.checkpoint, expected);
        fixture.cancel(&second.id).await;
    }
}

/// The repeated call wants the work done; a caller's own key keeps naming the cancelled job.
pub async fn a_cancelled_held_call_is_not_held(fixture: Fixture) {
    let held = new(fixture.add_keyed(a_job(), a_held_key("held", 1)).await);
    let research = new(fixture.add_keyed(a_job(), a_research_key("research", 1)).await);
    let own = new(fixture.add_keyed(a_job(), a_key("own", 1)).await);
    for id in [held.id, research.id, own.id] {
        fixture.cancel(&id).await;
    }
    new(fixture.add_keyed(a_job(), a_held_key("held", 1)).await);
    new(fixture.add_keyed(a_job(), a_research_key("research", 1)).await);
    assert_eq!(existing(fixture.add_keyed(a_job(), a_key("own", 1)).await).id, own.id);
}

/// E9: it was promised for its window; the answer is recorded nevertheless, and an unknown id is not an error.
pub async fn an_answer_does_not_free_a_callers_own_key(fixture: Fixture) {
    let job = new(fixture.add_keyed(a_job(), a_key("k", 1)).await);
    fixture.cancel(&job.id).await;
    fixture.store.record_answer(&job.id).await.unwrap();
    assert_eq!(existing(fixture.add_keyed(a_job(), a_key("k", 1)).await).id, job.id);
    assert!(answered_at(fixture.add_keyed(a_job(), a_key("k", 1)).await).is_some());
    let plain = fixture.add_succeeded().await;
    fixture.store.record_answer(&plain.id).await.unwrap();
    let unknown = "0f8fad5bd9cb469fa16570867728950e".parse().unwrap();
    fixture.store.record_answer(&unknown).await.unwrap();
}

fn new(inserted: Result<InsertOutcome, StoreError>) -> Job {
    match inserted {
        Ok(InsertOutcome::New(job)) => job,
        other => panic!("{other:?}"),
    }
}

fn existing(inserted: Result<InsertOutcome, StoreError>) -> Job {
    match inserted {
        Ok(InsertOutcome::Existing { job, .. }) => job,
        other => panic!("{other:?}"),
    }
}

/// The time at which a call was first answered, according to the key of the found job.
fn answered_at(inserted: Result<InsertOutcome, StoreError>) -> Option<Timestamp> {
    match inserted {
        Ok(InsertOutcome::Existing { key, .. }) => key.answered_at,
        other => panic!("{other:?}"),
    }
}
