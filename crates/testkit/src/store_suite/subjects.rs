//! Jobs about other jobs: the checks of reports (J1).

use std::time::Duration;

use outlast_core::{
    ConversationId, Insert, InsertOutcome, Job, JobId, Key, NewJob, Prune, PruneOutcome, Scope,
    StateKind, StoreError,
};

use super::fixture::{Fixture, a_job, alice, an_insert, bob, fail, succeed};

/// J1: a report has one unfinished check; after its end, another can be made.
pub async fn j1_a_report_has_one_unfinished_check(fixture: Fixture) {
    let report = fixture.add_succeeded().await;
    let first = new_check(&fixture, &report).await;
    let again = fixture.store.insert(check(&report)).await.unwrap();
    assert!(matches!(again, InsertOutcome::Existing { job, .. } if job.id == first.id));
    let claimed = fixture.claim().await;
    let again = fixture.store.insert(check(&report)).await.unwrap();
    assert!(matches!(again, InsertOutcome::Existing { job, .. } if job.id == first.id), "it runs");
    fixture.store.settle(&claimed.lease, succeed()).await.unwrap();
    let second = new_check(&fixture, &report).await;
    assert_ne!(second.id, first.id);
    assert_eq!(fixture.read(&second.id).await.new.subject, Some(report.id));
}

/// J1: many callers at once get the same check.
pub async fn j1_many_concurrent_calls_make_one_check(fixture: Fixture) {
    let report = fixture.add_succeeded().await;
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let (store, check) = (fixture.store.clone(), check(&report));
            tokio::spawn(async move { store.insert(check).await.unwrap() })
        })
        .collect();
    let (mut ids, mut new) = (Vec::new(), 0);
    for task in tasks {
        let inserted = task.await.unwrap();
        new += usize::from(matches!(inserted, InsertOutcome::New(_)));
        let (InsertOutcome::New(job) | InsertOutcome::Existing { job, .. }) = inserted;
        ids.push(job.id);
    }
    ids.dedup();
    assert_eq!((ids.len(), new), (1, 1));
}

/// J1: the owner of a report checks it, and no other owner.
pub async fn j1_a_check_needs_a_report_of_its_owner(fixture: Fixture) {
    let report = fixture.add_succeeded().await;
    let unknown = JobId::new(uuid::Uuid::from_u128(7));
    for (owner, subject) in [(alice(), unknown), (bob(), report.id)] {
        let job = NewJob { owner, subject: Some(subject), ..a_job() };
        let refused = fixture.try_add(job).await;
        assert!(matches!(refused, Err(StoreError::NotFound)), "{refused:?}");
    }
}

/// J1, J3: the newest check of a report is found by the report, in any of these states.
pub async fn j1_the_newest_check_is_found_by_its_report(fixture: Fixture) {
    let (report, other) = (fixture.add_succeeded().await, fixture.add_succeeded().await);
    let done = new_check(&fixture, &report).await;
    fixture.end_next(succeed()).await;
    let failed = new_check(&fixture, &report).await;
    fixture.end_next(fail()).await;
    new_check(&fixture, &other).await;
    let scope = Scope::Owner(alice());
    use StateKind::{Cancelled, Failed, Queued, Running, Succeeded};
    let cases = [
        (&[][..], Some(failed.id)),
        (&[Succeeded], Some(done.id)),
        (&[Succeeded, Failed], Some(failed.id)),
        (&[Cancelled, Queued, Running], None),
    ];
    for (states, expected) in cases {
        for scope in [&scope, &Scope::Operator] {
            let found = fixture.store.newest_about(scope, &report.id, states).await.unwrap();
            assert_eq!(found.as_ref().map(|job| job.id), expected, "{states:?}");
            if let Some(job) = found {
                assert_eq!(job, fixture.read(&job.id).await);
            }
        }
    }
    let foreign = fixture.store.newest_about(&Scope::Owner(bob()), &report.id, &[]).await;
    assert_eq!(foreign.unwrap(), None);
}

/// J1: a check is removed with its report, in any state, and not before.
pub async fn j1_a_check_is_removed_with_its_report(fixture: Fixture) {
    let minute = Duration::from_secs(60);
    let expires = || NewJob { keep: Some(minute), ..a_job() };
    let turn = ConversationId::new("talk");
    let prunes = [
        (expires(), Prune::Expired),
        (a_job(), Prune::EndedBefore(fixture.clock_now().after(minute * 60))),
        (NewJob { conversation: Some(turn.clone()), ..a_job() }, Prune::Conversation(turn)),
    ];
    for (report, prune) in prunes {
        fixture.add(report).await;
        let report = fixture.end_next(succeed()).await;
        fixture.clock.advance(Duration::from_secs(1));
        let ended = new_check(&fixture, &report).await;
        fixture.end_next(succeed()).await;
        let running = new_check(&fixture, &report).await;
        let lease = fixture.claim().await.lease;
        let early = Prune::EndedBefore(report.created_at);
        let kept = fixture.store.prune(&Scope::Operator, &early).await.unwrap();
        assert_eq!(kept.jobs, 0, "{prune:?}");
        fixture.clock.advance(minute);
        let gone = fixture.store.prune(&Scope::Operator, &prune).await.unwrap();
        assert_eq!(gone, PruneOutcome { jobs: 3, next_expiry: None }, "{prune:?}");
        for id in [report.id, ended.id, running.id] {
            assert_eq!(fixture.store.job(&Scope::Operator, &id).await.unwrap(), None);
        }
        let lost = fixture.store.renew(std::slice::from_ref(&lease), minute).await.unwrap();
        assert_eq!(lost, [running.id]);
        let settled = fixture.store.settle(&lease, succeed()).await;
        assert!(matches!(settled, Err(StoreError::LeaseLost)), "{settled:?}");
    }
}

/// J1: age alone removes no check: it stays as long as its report.
pub async fn j1_a_check_is_kept_as_long_as_its_report(fixture: Fixture) {
    let talk = ConversationId::new("talk");
    fixture.add(NewJob { conversation: Some(talk.clone()), ..a_job() }).await;
    let report = fixture.end_next(succeed()).await;
    let check = new_check(&fixture, &report).await;
    // Follow-up questions do not wait for it, and it is not a turn.
    let follow_up = fixture.add(NewJob { conversation: Some(talk.clone()), ..a_job() }).await;
    assert_eq!(follow_up.turn, 2);
    fixture.end_next(succeed()).await;
    fixture.end_next(succeed()).await;
    assert_eq!(fixture.store.turns(&Scope::Operator, &talk).await.unwrap().len(), 2);
    let later = fixture.clock_now().after(Duration::from_secs(60));
    let kept = fixture.store.prune(&Scope::Operator, &Prune::EndedBefore(later)).await.unwrap();
    assert_eq!(kept.jobs, 0);
    fixture.read(&check.id).await;
}

/// The insert of a report's check.
fn check(report: &Job) -> Insert {
    let owner = report.new.owner.clone();
    let job = NewJob { owner, subject: Some(report.id), ..a_job() };
    Insert { key: Some(Key::for_subject(&report.id)), ..an_insert(job) }
}

async fn new_check(fixture: &Fixture, report: &Job) -> Job {
    match fixture.store.insert(check(report)).await.expect("the report is there") {
        InsertOutcome::New(job) => job,
        InsertOutcome::Existing { job, .. } => panic!("{} is unfinished", job.id),
    }
}
