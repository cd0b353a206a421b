//! Inserting and reading back: owners, conversations, quota, retention.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{
    Checkpoint, ConversationId, Fence, Insert, Inserted, JobQuery, JobState, NewJob, OwnerId,
    Profile, Prune, Scope, StoreError, Visibility, rules,
};
use serde_json::json;

use super::fixture::{Bench, a_job, a_run, alice, bob, carol, succeed};
use crate::clock::START;

/// Every field survives.
pub async fn a_job_reads_back_as_it_was_inserted(bench: Bench) {
    let new = NewJob {
        owner: OwnerId::new("ålice \"the\" 1st"),
        conversation: Some(ConversationId::new("talk/1")),
        profile: Profile::new("search"),
        workflow: "audit".to_owned(),
        title: "Ünïcode 'title'".to_owned(),
        ask: json!({ "nested": [1, 2.5, 1e-7, null, { "deep": "\u{0}" }], "third": 0.1 + 0.2 }),
        priority: -7,
        visibility: Visibility::Unpromised,
        max_failures: 5,
        attempt_timeout: Duration::from_millis(1500),
        life: Some(Duration::from_secs(86_400)),
        keep: Some(Duration::from_secs(7)),
    };
    let job = bench.add(new.clone()).await;
    assert_eq!(job.new, new);
    assert_eq!(job.state, JobState::Queued { run_at: START });
    assert_eq!(job.turn, 1);
    assert_eq!(job.checkpoint, Checkpoint::NotBegun);
    assert_eq!(job.fence, Fence::NONE);
    assert_eq!((job.created_at, job.updated_at), (START, START));
    assert!(job.failures.is_empty() && job.progress.is_none());
    assert_eq!(bench.read(&job.id).await, job);
}

/// B9a: whoever claims it goes on with the run and sends nothing.
pub async fn a_job_that_takes_up_a_run_stands_where_that_does(bench: Bench) {
    let takes_up = Some(a_run("left behind"));
    let insert =
        Insert { job: a_job(), key: None, max_unfinished: 10, max_bytes: u64::MAX, takes_up };
    let Inserted::New(job) = bench.store.insert(insert).await.unwrap() else {
        panic!("there is no other");
    };
    assert_eq!(job.checkpoint, Checkpoint::Running(a_run("left behind")));
    assert_eq!(job.state, JobState::Queued { run_at: START });
    assert_eq!(bench.read(&job.id).await, job);
    assert_eq!(bench.claim().await.job.checkpoint, job.checkpoint);
}

/// Reading, listing and cancelling all say: there is no such job.
pub async fn a_foreign_owner_sees_nothing(bench: Bench) {
    let job = bench.add(a_job()).await;
    let bob = Scope::Owner(bob());
    assert_eq!(bench.store.job(&bob, &job.id).await.unwrap(), None);
    let query = JobQuery { limit: 10, ..JobQuery::default() };
    assert!(bench.store.list(&bob, &query).await.unwrap().jobs.is_empty());
    let cancelled = bench.store.cancel(&bob, &job.id).await;
    assert!(matches!(cancelled, Err(StoreError::NotFound)), "{cancelled:?}");
    assert_eq!(bench.read(&job.id).await, job);
}

/// The operator's scope has no owner.
pub async fn the_operator_sees_every_owner(bench: Bench) {
    let hers = bench.add(a_job()).await;
    let his = bench.add(NewJob { owner: bob(), ..a_job() }).await;
    let query = JobQuery { limit: 10, ..JobQuery::default() };
    let page = bench.store.list(&Scope::Operator, &query).await.unwrap();
    let ids: Vec<_> = page.jobs.iter().map(|summary| summary.id).collect();
    assert_eq!(ids, [his.id, hers.id]);
    let page = bench.store.list(&Scope::Owner(alice()), &query).await.unwrap();
    assert_eq!(page.jobs.len(), 1);
}

/// Busy means queued or running; the refusal names the job.
pub async fn a_busy_conversation_takes_no_second_job(bench: Bench) {
    let first = bench.add(turn()).await;
    let refused = bench.try_add(turn()).await;
    assert!(matches!(refused, Err(StoreError::ConversationBusy(id)) if id == first.id));
    let claimed = bench.claim().await;
    let refused = bench.try_add(turn()).await;
    assert!(matches!(refused, Err(StoreError::ConversationBusy(id)) if id == first.id));
    bench.store.settle(&claimed.lease, succeed()).await.unwrap();
    bench.add(turn()).await;
}

/// One owner cannot make another's conversation busy.
pub async fn the_same_conversation_name_of_two_owners_is_two_conversations(bench: Bench) {
    bench.add(turn()).await;
    let his = bench.add(NewJob { owner: bob(), ..turn() }).await;
    assert_eq!(his.turn, 1);
}

/// Of many at once exactly one creates.
pub async fn two_inserts_at_once_on_one_conversation_make_one_job(bench: Bench) {
    let bench = Arc::new(bench);
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let bench = bench.clone();
            tokio::spawn(async move { bench.try_add(turn()).await })
        })
        .collect();
    let mut made = 0;
    for task in tasks {
        match task.await.unwrap() {
            Ok(Inserted::New(_)) => made += 1,
            Err(StoreError::ConversationBusy(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(made, 1);
}

/// Jobs without a conversation are always a first turn.
pub async fn turns_count_up_within_a_conversation(bench: Bench) {
    for expected in 1..=3 {
        let job = bench.add(turn()).await;
        assert_eq!(job.turn, expected);
        assert_eq!(bench.read(&job.id).await.turn, expected);
        bench.store.cancel(&Scope::Operator, &job.id).await.unwrap();
    }
    assert_eq!(bench.add(a_job()).await.turn, 1);
    assert_eq!(bench.add(a_job()).await.turn, 1);
}

/// The quota counts unfinished jobs of one owner.
pub async fn an_owner_cannot_have_more_unfinished_jobs_than_allowed(bench: Bench) {
    let insert = |job| {
        bench.store.insert(Insert {
            job,
            key: None,
            max_unfinished: 2,
            max_bytes: u64::MAX,
            takes_up: None,
        })
    };
    insert(a_job()).await.unwrap();
    insert(a_job()).await.unwrap();
    let claimed = bench.claim().await;
    let refused = insert(a_job()).await;
    assert!(matches!(refused, Err(StoreError::TooManyJobs)), "{refused:?}");
    insert(NewJob { owner: bob(), ..a_job() }).await.unwrap();
    bench.store.settle(&claimed.lease, succeed()).await.unwrap();
    insert(a_job()).await.unwrap();
}

/// F10: the quota of bytes counts requests of one owner, and is decided with the insert.
pub async fn an_owner_cannot_store_more_bytes_than_allowed(bench: Bench) {
    let room = 2 * rules::ask_bytes(&a_job());
    let insert = |job| {
        let max_bytes = room;
        bench.store.insert(Insert { job, key: None, max_unfinished: 9, max_bytes, takes_up: None })
    };
    insert(a_job()).await.unwrap();
    insert(a_job()).await.unwrap();
    let refused = insert(a_job()).await;
    assert!(matches!(refused, Err(StoreError::TooManyBytes)), "{refused:?}");
    insert(NewJob { owner: bob(), ..a_job() }).await.unwrap();
    let long = NewJob { owner: carol(), ask: json!("x".repeat(1_000)), ..a_job() };
    let refused = insert(long).await;
    assert!(matches!(refused, Err(StoreError::TooManyBytes)), "alone: {refused:?}");
}

/// F10: what a job leaves behind counts, good or bad; a result is never refused, and what is removed gives room back.
pub async fn results_take_room_until_they_are_removed(bench: Bench) {
    let ask = rules::ask_bytes(&a_job());
    let insert = |max_bytes| {
        let job = NewJob { keep: Some(Duration::from_secs(10)), ..a_job() };
        bench.store.insert(Insert { job, key: None, max_unfinished: 9, max_bytes, takes_up: None })
    };
    insert(ask).await.unwrap();
    let claimed = bench.claim().await;
    bench.store.settle(&claimed.lease, succeed()).await.unwrap();
    let stored = ask + rules::settled_bytes(&succeed());
    let refused = insert(stored + ask - 1).await;
    assert!(matches!(refused, Err(StoreError::TooManyBytes)), "{refused:?}");
    insert(stored + ask).await.unwrap();
    bench.clock.advance(Duration::from_secs(10));
    bench.store.prune(&Scope::Operator, &Prune::Expired).await.unwrap();
    let refused = insert(2 * ask - 1).await;
    assert!(matches!(refused, Err(StoreError::TooManyBytes)), "{refused:?}");
    insert(2 * ask).await.unwrap();
}

/// Unreadable, unlisted, and not to be cancelled; also for the operator.
pub async fn a_finished_job_is_forgotten_when_its_retention_ends(bench: Bench) {
    let keep = Some(Duration::from_secs(10));
    let job = bench.add(NewJob { keep, ..a_job() }).await;
    bench.clock.advance(Duration::from_secs(100));
    assert_eq!(bench.read(&job.id).await, job);
    let claimed = bench.claim().await;
    bench.store.settle(&claimed.lease, succeed()).await.unwrap();
    bench.clock.advance(Duration::from_millis(9_999));
    bench.read(&job.id).await;
    bench.clock.advance(Duration::from_millis(1));
    let query = JobQuery { limit: 10, ..JobQuery::default() };
    for scope in [Scope::Owner(alice()), Scope::Operator] {
        assert_eq!(bench.store.job(&scope, &job.id).await.unwrap(), None);
        assert!(bench.store.list(&scope, &query).await.unwrap().jobs.is_empty());
        let cancelled = bench.store.cancel(&scope, &job.id).await;
        assert!(matches!(cancelled, Err(StoreError::NotFound)), "{cancelled:?}");
    }
}

/// `keep: None` has no end.
pub async fn a_job_kept_for_ever_is_never_forgotten(bench: Bench) {
    let job = bench.add_succeeded().await;
    bench.clock.advance(Duration::from_secs(100 * 365 * 86_400));
    assert_eq!(bench.read(&job.id).await, job);
}

fn turn() -> NewJob {
    NewJob { conversation: Some(ConversationId::new("talk")), ..a_job() }
}
