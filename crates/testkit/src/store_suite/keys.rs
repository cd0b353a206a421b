//! Idempotency keys: one owner, one key, one job.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{
    Checkpoint, Code, ConversationId, Failure, Insert, Inserted, Job, NewJob, Profile, Scope,
    Settlement, StoreError, Timestamp,
};

use super::bench::{
    Bench, a_failure, a_held_key, a_job, a_key, a_research_key, a_run, bob, fail, succeed,
};

/// Whatever state the job is in by then.
pub async fn the_same_key_and_input_find_the_same_job(bench: Bench) {
    let first = new(bench.add_keyed(a_job(), a_key("k", 1)).await);
    assert_eq!(existing(bench.add_keyed(a_job(), a_key("k", 1)).await), first);
    let claimed = bench.claim().await;
    assert_eq!(existing(bench.add_keyed(a_job(), a_key("k", 1)).await), claimed.job);
    let settled = bench.store.settle(&claimed.lease, succeed()).await.unwrap();
    assert_eq!(existing(bench.add_keyed(a_job(), a_key("k", 1)).await), settled);
    assert!(bench.try_claim(&super::worker("w2")).await.is_none(), "no second job was made");
}

/// The refusal names the job that has the key.
pub async fn the_same_key_with_other_input_is_a_conflict(bench: Bench) {
    let first = new(bench.add_keyed(a_job(), a_key("k", 1)).await);
    let refused = bench.add_keyed(a_job(), a_key("k", 2)).await;
    assert!(matches!(refused, Err(StoreError::KeyConflict(id)) if id == first.id), "{refused:?}");
    new(bench.add_keyed(a_job(), a_key("other", 2)).await);
}

/// The window counts from the insert; afterwards the key names the new job.
pub async fn a_key_is_free_again_after_its_window(bench: Bench) {
    let first = new(bench.add_keyed(a_job(), a_key("k", 1)).await);
    let claimed = bench.claim().await;
    bench.store.settle(&claimed.lease, succeed()).await.unwrap();
    bench.clock.advance(Duration::from_millis(59_999));
    assert_eq!(existing(bench.add_keyed(a_job(), a_key("k", 1)).await).id, first.id);
    bench.clock.advance(Duration::from_millis(1));
    let second = new(bench.add_keyed(a_job(), a_key("k", 2)).await);
    assert_ne!(second.id, first.id);
    assert_eq!(existing(bench.add_keyed(a_job(), a_key("k", 2)).await).id, second.id);
}

/// A slow job is not bought twice because its key ran out.
pub async fn a_key_outlives_its_window_while_its_job_is_unfinished(bench: Bench) {
    let first = new(bench.add_keyed(a_job(), a_key("k", 1)).await);
    bench.clock.advance(Duration::from_secs(3600));
    assert_eq!(existing(bench.add_keyed(a_job(), a_key("k", 1)).await).id, first.id);
    let claimed = bench.claim().await;
    assert_eq!(existing(bench.add_keyed(a_job(), a_key("k", 1)).await).id, first.id);
    bench.store.settle(&claimed.lease, succeed()).await.unwrap();
    new(bench.add_keyed(a_job(), a_key("k", 1)).await);
}

/// Two owners may spell the same key.
pub async fn a_key_belongs_to_its_owner(bench: Bench) {
    let hers = new(bench.add_keyed(a_job(), a_key("k", 1)).await);
    let his = NewJob { owner: bob(), ..a_job() };
    let his = new(bench.add_keyed(his, a_key("k", 2)).await);
    assert_ne!(hers.id, his.id);
}

/// The key was promised for its window, whatever the job's retention.
pub async fn a_key_finds_its_job_even_after_its_retention(bench: Bench) {
    let short = NewJob { keep: Some(Duration::from_secs(1)), ..a_job() };
    let first = new(bench.add_keyed(short.clone(), a_key("k", 1)).await);
    let claimed = bench.claim().await;
    let settled = bench.store.settle(&claimed.lease, succeed()).await.unwrap();
    bench.clock.advance(Duration::from_secs(2));
    assert_eq!(bench.store.job(&Scope::Operator, &first.id).await.unwrap(), None);
    assert_eq!(existing(bench.add_keyed(short, a_key("k", 1)).await), settled);
}

/// The order of refusals: key, conversation, quota.
pub async fn a_key_is_answered_before_a_busy_conversation_and_a_full_quota(bench: Bench) {
    let talk = NewJob { conversation: Some(ConversationId::new("talk")), ..a_job() };
    let insert = |job: NewJob, key| {
        bench.store.insert(Insert {
            job,
            key,
            max_unfinished: 1,
            max_bytes: u64::MAX,
            takes_up: None,
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
    bench.store.cancel(&Scope::Operator, &first.id).await.unwrap();
    // A refused insert must not have taken the key.
    new(insert(a_job(), Some(a_key("fresh", 9))).await);
}

/// Of many at once one creates and the others find it.
pub async fn many_inserts_at_once_under_one_key_make_one_job(bench: Bench) {
    let bench = Arc::new(bench);
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let bench = bench.clone();
            tokio::spawn(async move { bench.add_keyed(a_job(), a_key("k", 1)).await })
        })
        .collect();
    let (mut made, mut ids) = (0, Vec::new());
    for task in tasks {
        match task.await.unwrap().unwrap() {
            Inserted::New(job) => {
                made += 1;
                ids.push(job.id);
            }
            Inserted::Existing { job, .. } => ids.push(job.id),
        }
    }
    ids.dedup();
    assert_eq!((made, ids.len()), (1, 1));
}

/// Promise 2: the same held call finds its job until a call was answered with the outcome.
pub async fn a_held_calls_key_holds_until_it_was_answered(bench: Bench) {
    let first = new(bench.add_keyed(a_job(), a_held_key("k", 1)).await);
    bench.store.record_answer(&first.id).await.unwrap();
    assert_eq!(existing(bench.add_keyed(a_job(), a_held_key("k", 1)).await).id, first.id);
    let claimed = bench.claim().await;
    bench.clock.advance(Duration::from_secs(3600));
    let settled = bench.store.settle(&claimed.lease, succeed()).await.unwrap();
    assert_eq!(existing(bench.add_keyed(a_job(), a_held_key("k", 1)).await), settled);
    let refused = bench.add_keyed(a_job(), a_held_key("k", 2)).await;
    assert!(matches!(refused, Err(StoreError::KeyConflict(id)) if id == first.id), "{refused:?}");
    let rev = bench.store.rev().await.unwrap();
    bench.store.record_answer(&first.id).await.unwrap();
    assert_eq!(bench.store.rev().await.unwrap(), rev, "no reader sees a difference");
    assert_eq!(bench.read(&first.id).await, settled);
    assert_ne!(new(bench.add_keyed(a_job(), a_held_key("k", 2)).await).id, first.id);
}

/// Counted from the job's end, however long it took.
pub async fn a_held_calls_key_holds_only_so_long_after_the_end(bench: Bench) {
    let first = new(bench.add_keyed(a_job(), a_held_key("k", 1)).await);
    bench.clock.advance(Duration::from_secs(3600));
    let claimed = bench.claim().await;
    bench.store.settle(&claimed.lease, succeed()).await.unwrap();
    bench.clock.advance(Duration::from_millis(59_999));
    assert_eq!(existing(bench.add_keyed(a_job(), a_held_key("k", 1)).await).id, first.id);
    bench.clock.advance(Duration::from_millis(1));
    new(bench.add_keyed(a_job(), a_held_key("k", 1)).await);
}

/// Promise 2: also after a call was answered with it, for a shorter while; the first answer counts.
pub async fn a_research_calls_key_holds_a_while_after_an_answer(bench: Bench) {
    let ask = || bench.add_keyed(a_job(), a_research_key("k", 1));
    let first = new(ask().await);
    bench.store.record_answer(&first.id).await.unwrap();
    let claimed = bench.claim().await;
    bench.clock.advance(Duration::from_secs(3600));
    let settled = bench.store.settle(&claimed.lease, succeed()).await.unwrap();
    let ended_at = settled.ended_at().unwrap();
    assert_eq!(answered_at(ask().await), None, "an unfinished job answers no call");
    bench.clock.advance(Duration::from_secs(1));
    let rev = bench.store.rev().await.unwrap();
    bench.store.record_answer(&first.id).await.unwrap();
    assert_eq!(bench.store.rev().await.unwrap(), rev, "no reader sees a difference");
    bench.clock.advance(Duration::from_millis(8_999));
    bench.store.record_answer(&first.id).await.unwrap();
    assert_eq!(existing(ask().await), settled);
    assert_eq!(answered_at(ask().await), Some(ended_at.after(Duration::from_secs(1))));
    bench.clock.advance(Duration::from_millis(1));
    let second = new(ask().await);
    assert_ne!(second.id, first.id);
    let claimed = bench.claim().await;
    bench.store.settle(&claimed.lease, succeed()).await.unwrap();
    bench.clock.advance(Duration::from_millis(59_999));
    assert_eq!(existing(ask().await).id, second.id, "longer while no call was answered");
    bench.clock.advance(Duration::from_millis(1));
    new(ask().await);
}

/// Promise 2: an answered failure is not told again, unless beginning anew needs the caller's consent.
pub async fn a_research_calls_failure_is_told_again_only_where_consent_is_needed(bench: Bench) {
    for (text, code) in [("refused", Code::RateLimited), ("unknown", Code::SubmitUnknown)] {
        let ask = || bench.add_keyed(a_job(), a_research_key(text, 1));
        let first = new(ask().await);
        let claimed = bench.claim().await;
        let failure = Failure { code, run_goes_on: false, ..a_failure("no") };
        bench.store.settle(&claimed.lease, Settlement::Fail { failure, raw: None }).await.unwrap();
        assert_eq!(existing(ask().await).id, first.id, "no call was answered");
        bench.store.record_answer(&first.id).await.unwrap();
        if code == Code::RateLimited {
            let second = new(ask().await);
            bench.store.cancel(&Scope::Operator, &second.id).await.unwrap();
            continue;
        }
        bench.clock.advance(Duration::from_millis(59_999));
        assert_eq!(existing(ask().await).id, first.id);
        bench.clock.advance(Duration::from_millis(1));
        new(ask().await);
    }
}

/// Promise 2: what was paid for and may still be had is taken up by the same call, by no other.
pub async fn a_research_call_takes_up_the_run_its_failure_left(bench: Bench) {
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
        let first = new(bench.add_keyed(a_job(), key.clone()).await);
        let claimed = bench.claim().await;
        bench.store.checkpoint(&claimed.lease, &left).await.unwrap();
        bench.store.settle(&claimed.lease, fail()).await.unwrap();
        bench.store.record_answer(&first.id).await.unwrap();
        let second = new(bench.add_keyed(again, key).await);
        assert_eq!(second.checkpoint, expected);
        bench.store.cancel(&Scope::Operator, &second.id).await.unwrap();
    }
}

/// The same call made again wants the work done; a caller's own key stands for the cancelled job.
pub async fn a_cancelled_held_call_is_not_held(bench: Bench) {
    let held = new(bench.add_keyed(a_job(), a_held_key("held", 1)).await);
    let research = new(bench.add_keyed(a_job(), a_research_key("research", 1)).await);
    let own = new(bench.add_keyed(a_job(), a_key("own", 1)).await);
    for id in [held.id, research.id, own.id] {
        bench.store.cancel(&Scope::Operator, &id).await.unwrap();
    }
    new(bench.add_keyed(a_job(), a_held_key("held", 1)).await);
    new(bench.add_keyed(a_job(), a_research_key("research", 1)).await);
    assert_eq!(existing(bench.add_keyed(a_job(), a_key("own", 1)).await).id, own.id);
}

/// E9: it was promised for its window; that a call was answered is known all the same, and an unknown id is no error.
pub async fn an_answer_does_not_free_a_callers_own_key(bench: Bench) {
    let job = new(bench.add_keyed(a_job(), a_key("k", 1)).await);
    bench.store.cancel(&Scope::Operator, &job.id).await.unwrap();
    bench.store.record_answer(&job.id).await.unwrap();
    assert_eq!(existing(bench.add_keyed(a_job(), a_key("k", 1)).await).id, job.id);
    assert!(answered_at(bench.add_keyed(a_job(), a_key("k", 1)).await).is_some());
    let plain = bench.add_succeeded().await;
    bench.store.record_answer(&plain.id).await.unwrap();
    let unknown = "0f8fad5bd9cb469fa16570867728950e".parse().unwrap();
    bench.store.record_answer(&unknown).await.unwrap();
}

fn new(inserted: Result<Inserted, StoreError>) -> Job {
    match inserted {
        Ok(Inserted::New(job)) => job,
        other => panic!("{other:?}"),
    }
}

fn existing(inserted: Result<Inserted, StoreError>) -> Job {
    match inserted {
        Ok(Inserted::Existing { job, .. }) => job,
        other => panic!("{other:?}"),
    }
}

/// When the key of the job that was found says that a call was first answered.
fn answered_at(inserted: Result<Inserted, StoreError>) -> Option<Timestamp> {
    match inserted {
        Ok(Inserted::Existing { key, .. }) => key.answered_at,
        other => panic!("{other:?}"),
    }
}
