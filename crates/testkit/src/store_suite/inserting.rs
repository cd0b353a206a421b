//! Inserting and reading back: owners, conversations, quota, retention.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{
    Checkpoint, ConversationId, Fence, Insert, InsertOutcome, JobQuery, JobState, NewJob, OwnerId,
    Profile, Prune, Scope, StoreError, Visibility, rules,
};
use serde_json::json;

use super::fixture::{Fixture, a_job, a_run, alice, bob, carol, succeed};
use crate::clock::START;

/// Every field survives.
pub async fn a_job_reads_back_as_it_was_inserted(fixture: Fixture) {
    let new = NewJob {
        owner: OwnerId::new("ålice \"the\" 1st"),
        conversation: Some(ConversationId::new("talk/1")),
        subject: None,
        profile: Profile::new("search"),
        workflow: "audit".to_owned(),
        title: "Ünïcode 'title'".to_owned(),
        request: json!({ "nested": [1, 2.5, 1e-7, null, { "deep": "\u{0}" }], "third": 0.1 + 0.2 })
            .into(),
        priority: -7,
        visibility: Visibility::Unpromised,
        max_failures: 5,
        attempt_timeout: Duration::from_millis(1500),
        life: Some(Duration::from_secs(86_400)),
        keep: Some(Duration::from_secs(7)),
    };
    let job = fixture.add(new.clone()).await;
    assert_eq!(job.new, new);
    assert_eq!(job.state, JobState::Queued { run_at: START });
    assert_eq!(job.turn, 1);
    assert_eq!(job.checkpoint, Checkpoint::NotBegun);
    assert_eq!(job.fence, Fence::NONE);
    assert_eq!((job.created_at, job.updated_at), (START, START));
    assert!(job.failures.is_empty() && job.progress.is_none());
    assert_eq!(fixture.read(&job.id).await, job);
}

/// B9a: the worker that claims it continues the run and sends nothing.
pub async fn a_job_that_resumes_a_run_starts_at_its_checkpoint(fixture: Fixture) {
    let takes_up = Some(a_run("left behind"));
    let insert = Insert {
        job: a_job(),
        key: None,
        max_unfinished: 10,
        max_bytes: u64::MAX,
        resumed_run: takes_up,
        takeover: None,
        reservation: None,
        initial_worker: None,
    };
    let InsertOutcome::New(job) = fixture.store.insert(insert).await.unwrap() else {
        panic!("there is no other");
    };
    assert_eq!(job.checkpoint, Checkpoint::Running(a_run("left behind")));
    assert_eq!(job.state, JobState::Queued { run_at: START });
    assert_eq!(fixture.read(&job.id).await, job);
    assert_eq!(fixture.claim().await.job.checkpoint, job.checkpoint);
}

/// Reading, listing and cancelling all report an unknown job.
pub async fn a_foreign_owner_sees_nothing(fixture: Fixture) {
    let job = fixture.add(a_job()).await;
    let bob = Scope::Owner(bob());
    assert_eq!(fixture.store.job(&bob, &job.id).await.unwrap(), None);
    let query = JobQuery { limit: 10, ..JobQuery::default() };
    assert!(fixture.store.list(&bob, &query).await.unwrap().jobs.is_empty());
    let cancelled = fixture.store.cancel(&bob, &job.id).await;
    assert!(matches!(cancelled, Err(StoreError::NotFound)), "{cancelled:?}");
    assert_eq!(fixture.read(&job.id).await, job);
}

/// The operator's scope has no owner.
pub async fn the_operator_sees_every_owner(fixture: Fixture) {
    let hers = fixture.add(a_job()).await;
    let his = fixture.add(NewJob { owner: bob(), ..a_job() }).await;
    let query = JobQuery { limit: 10, ..JobQuery::default() };
    let page = fixture.store.list(&Scope::Operator, &query).await.unwrap();
    let ids: Vec<_> = page.jobs.iter().map(|summary| summary.id).collect();
    assert_eq!(ids, [his.id, hers.id]);
    let page = fixture.store.list(&Scope::Owner(alice()), &query).await.unwrap();
    assert_eq!(page.jobs.len(), 1);
}

/// Busy means queued or running; the refusal names the job.
pub async fn a_busy_conversation_takes_no_second_job(fixture: Fixture) {
    let first = fixture.add(turn()).await;
    let refused = fixture.try_add(turn()).await;
    assert!(matches!(refused, Err(StoreError::ConversationBusy(id)) if id == first.id));
    let claimed = fixture.claim().await;
    let refused = fixture.try_add(turn()).await;
    assert!(matches!(refused, Err(StoreError::ConversationBusy(id)) if id == first.id));
    fixture.store.settle(&claimed.lease, succeed()).await.unwrap();
    fixture.add(turn()).await;
}

/// One owner cannot make another's conversation busy.
pub async fn the_same_conversation_name_of_two_owners_means_two_conversations(fixture: Fixture) {
    fixture.add(turn()).await;
    let his = fixture.add(NewJob { owner: bob(), ..turn() }).await;
    assert_eq!(his.turn, 1);
}

/// Exactly one of many concurrent inserts creates a job.
pub async fn concurrent_inserts_into_one_conversation_make_one_job(fixture: Fixture) {
    let fixture = Arc::new(fixture);
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let fixture = fixture.clone();
            tokio::spawn(async move { fixture.try_add(turn()).await })
        })
        .collect();
    let mut made = 0;
    for task in tasks {
        match task.await.unwrap() {
            Ok(InsertOutcome::New(_)) => made += 1,
            Err(StoreError::ConversationBusy(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(made, 1);
}

/// Jobs without a conversation are always a first turn.
pub async fn turns_count_up_within_a_conversation(fixture: Fixture) {
    for expected in 1..=3 {
        let job = fixture.add(turn()).await;
        assert_eq!(job.turn, expected);
        assert_eq!(fixture.read(&job.id).await.turn, expected);
        fixture.cancel(&job.id).await;
    }
    assert_eq!(fixture.add(a_job()).await.turn, 1);
    assert_eq!(fixture.add(a_job()).await.turn, 1);
}

/// The quota counts unfinished jobs of one owner.
pub async fn an_owner_cannot_have_more_unfinished_jobs_than_allowed(fixture: Fixture) {
    let insert = |job| {
        fixture.store.insert(Insert {
            job,
            key: None,
            max_unfinished: 2,
            max_bytes: u64::MAX,
            resumed_run: None,
            takeover: None,
            reservation: None,
            initial_worker: None,
        })
    };
    insert(a_job()).await.unwrap();
    insert(a_job()).await.unwrap();
    let claimed = fixture.claim().await;
    let refused = insert(a_job()).await;
    assert!(matches!(refused, Err(StoreError::TooManyJobs)), "{refused:?}");
    insert(NewJob { owner: bob(), ..a_job() }).await.unwrap();
    fixture.store.settle(&claimed.lease, succeed()).await.unwrap();
    insert(a_job()).await.unwrap();
}

/// F10: the quota of bytes counts the requests of one owner, and is checked with the insert.
pub async fn an_owner_cannot_store_more_bytes_than_allowed(fixture: Fixture) {
    let room = 2 * rules::request_bytes(&a_job());
    let insert = |job| {
        let max_bytes = room;
        fixture.store.insert(Insert {
            job,
            key: None,
            max_unfinished: 9,
            max_bytes,
            resumed_run: None,
            takeover: None,
            reservation: None,
            initial_worker: None,
        })
    };
    insert(a_job()).await.unwrap();
    insert(a_job()).await.unwrap();
    let refused = insert(a_job()).await;
    assert!(matches!(refused, Err(StoreError::TooManyBytes)), "{refused:?}");
    insert(NewJob { owner: bob(), ..a_job() }).await.unwrap();
    let long = NewJob { owner: carol(), request: json!("x".repeat(1_000)).into(), ..a_job() };
    let refused = insert(long).await;
    assert!(matches!(refused, Err(StoreError::TooManyBytes)), "alone: {refused:?}");
}

/// F10: the results of a job count, good or bad; a result is never refused, and removing jobs frees space.
pub async fn results_take_space_until_they_are_removed(fixture: Fixture) {
    let ask = rules::request_bytes(&a_job());
    let insert = |max_bytes| {
        let job = NewJob { keep: Some(Duration::from_secs(10)), ..a_job() };
        fixture.store.insert(Insert {
            job,
            key: None,
            max_unfinished: 9,
            max_bytes,
            resumed_run: None,
            takeover: None,
            reservation: None,
            initial_worker: None,
        })
    };
    insert(ask).await.unwrap();
    fixture.end_next(succeed()).await;
    let stored = ask + rules::settlement_bytes(&succeed());
    let refused = insert(stored + ask - 1).await;
    assert!(matches!(refused, Err(StoreError::TooManyBytes)), "{refused:?}");
    insert(stored + ask).await.unwrap();
    fixture.clock.advance(Duration::from_secs(10));
    fixture.store.prune(&Scope::Operator, &Prune::Expired).await.unwrap();
    let refused = insert(2 * ask - 1).await;
    assert!(matches!(refused, Err(StoreError::TooManyBytes)), "{refused:?}");
    insert(2 * ask).await.unwrap();
}

/// Unreadable, unlisted, and impossible to cancel, even for the operator.
pub async fn a_finished_job_is_forgotten_when_its_retention_ends(fixture: Fixture) {
    let keep = Some(Duration::from_secs(10));
    let job = fixture.add(NewJob { keep, ..a_job() }).await;
    fixture.clock.advance(Duration::from_secs(100));
    assert_eq!(fixture.read(&job.id).await, job);
    fixture.end_next(succeed()).await;
    fixture.clock.advance(Duration::from_millis(9_999));
    fixture.read(&job.id).await;
    fixture.clock.advance(Duration::from_millis(1));
    let query = JobQuery { limit: 10, ..JobQuery::default() };
    for scope in [Scope::Owner(alice()), Scope::Operator] {
        assert_eq!(fixture.store.job(&scope, &job.id).await.unwrap(), None);
        assert!(fixture.store.list(&scope, &query).await.unwrap().jobs.is_empty());
        let cancelled = fixture.store.cancel(&scope, &job.id).await;
        assert!(matches!(cancelled, Err(StoreError::NotFound)), "{cancelled:?}");
    }
}

/// `keep: None` has no end.
pub async fn a_job_kept_forever_is_never_forgotten(fixture: Fixture) {
    let job = fixture.add_succeeded().await;
    fixture.clock.advance(Duration::from_secs(100 * 365 * 86_400));
    assert_eq!(fixture.read(&job.id).await, job);
}

fn turn() -> NewJob {
    NewJob { conversation: Some(ConversationId::new("talk")), ..a_job() }
}
