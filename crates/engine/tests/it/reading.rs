//! The reads that interfaces make of jobs, and the watch of one job.

use std::time::Duration;

use futures_util::FutureExt;
use outlast_core::{
    ChangeWait, ConversationId, NewJob, OwnerId, Profile, Prune, Scope, StateKind, Waits,
};
use outlast_engine::{Options, PollError, PollLimits};
use outlast_testkit::scripted::Scripted;

use crate::bench::{Bench, deliver, owner, research};

#[tokio::test(start_paused = true)]
async fn the_engine_reports_who_can_work_and_what_the_store_has() {
    let bench = Bench::new();
    let reader = bench.process_without_worker().await;
    let (engine, profile) = (&reader.engine, Scripted::profile());
    let (ann, conversation) = (OwnerId::new("ann"), ConversationId::new("c"));
    assert!(engine.has_provider(&profile));
    assert!(!engine.has_provider(&Profile::new("other")));
    assert!(!engine.has_worker(&profile).await.unwrap());
    assert!(engine.conversation(&ann, &conversation).await.unwrap().is_none());
    let before = engine.rev().await.unwrap();
    let new = NewJob { conversation: Some(conversation.clone()), ..research() };
    let id = reader.start(new).await;
    assert!(engine.rev().await.unwrap() > before);
    let changes = engine
        .changes(before, ChangeWait { at_most: Duration::ZERO, look_every: Duration::ZERO })
        .await
        .unwrap();
    assert_eq!(changes.jobs.iter().map(|change| change.id).collect::<Vec<_>>(), [id]);
    let counts = engine.counts(&owner(), 10).await.unwrap();
    let queued = counts.iter().find(|count| count.state == StateKind::Queued).unwrap();
    assert_eq!(queued.jobs, 1);

    let process = bench.process().await;
    bench.quiet().await;
    assert!(engine.has_worker(&profile).await.unwrap());
    deliver(&bench, 1);
    process.end(&id).await;
    let found = engine.conversation(&ann, &conversation).await.unwrap().unwrap();
    assert_eq!(found.id, conversation);
    let pruned = engine.prune(&owner(), &Prune::Conversation(conversation)).await.unwrap();
    assert_eq!(pruned.jobs, 1);
}

/// A job whose time has come waits for its turn, from that very moment on.
#[tokio::test(start_paused = true)]
async fn a_job_that_is_due_waits_for_its_turn() {
    let bench = Bench::new();
    let process = bench.process_with(Options { concurrency: 1, ..Options::default() }).await;
    bench.quiet().await;
    process.under_way(&bench, 1).await;
    let id = process.start(research()).await;
    let reading = process.engine.read(&owner(), &id).await.unwrap().unwrap();
    assert_eq!(reading.waits, Some(Waits::ForItsTurn { ahead: 0 }));
}

/// A finished job is returned even if no more callers may wait.
#[tokio::test(start_paused = true)]
async fn a_watch_over_a_finished_job_needs_no_place() {
    let bench = Bench::new();
    let options = Options::default();
    let polls = PollLimits { in_all: 0, ..options.polls };
    let process = bench.process_with(Options { polls, ..options }).await;
    bench.quiet().await;
    let id = process.under_way(&bench, 1).await;
    let refused = process.engine.watch(&owner(), &id).await;
    assert!(matches!(refused, Err(PollError::TooManyPolls)));
    deliver(&bench, 1);
    bench.quiet().await;
    let (reading, _) = process.engine.watch(&owner(), &id).await.unwrap().unwrap();
    assert_eq!(reading.job.state.kind(), StateKind::Succeeded);
    let stranger = Scope::Owner(OwnerId::new("bob"));
    assert!(process.engine.watch(&stranger, &id).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_process_leaves_when_it_is_asked_to() {
    let bench = Bench::new();
    let process = bench.process_without_worker().await;
    assert!(process.engine.begin_leaving().now_or_never().is_none());
    process.stop.ask();
    process.engine.begin_leaving().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_waits_for_a_change() {
    let bench = Bench::new();
    let process = bench.process().await;
    bench.quiet().await;
    let id = process.under_way(&bench, 1).await;
    let (_, mut watch) = process.engine.watch(&owner(), &id).await.unwrap().unwrap();
    assert!(watch.next_change().now_or_never().is_none());
    deliver(&bench, 1);
    let reading = watch.next_change().await.unwrap().unwrap();
    assert_eq!(reading.job.state.kind(), StateKind::Succeeded);
    assert!(watch.next_change().now_or_never().is_none(), "nothing else changed");
}
