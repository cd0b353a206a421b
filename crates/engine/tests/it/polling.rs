//! A caller polls a job.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{JobId, OwnerId, Scope, StateKind};
use tokio::time::Instant;

use crate::bench::{Bench, deliver, millis, owner, research, seconds, text};
use crate::moody::{Method, Mood};

/// A2, and the goal that no tick delays the answer after a job's end.
#[tokio::test(start_paused = true)]
async fn a_parked_poll_answers_the_moment_the_job_ends() {
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    let poll = process.parked_poll(&bench, id, seconds(45)).await;
    tokio::time::sleep(millis(12_345)).await;
    deliver(&bench, 1);
    let delivered = Instant::now();
    let (reading, answered) = poll.await.unwrap();
    assert_eq!(answered, delivered, "no time passes between the end and the answer");
    let reading = reading.unwrap();
    assert_eq!(text(&reading.job), "because");
    assert_eq!(reading.job.ended_at(), Some(reading.now));
}

/// Promise 2: a caller that received progress while the end was being read still learns of the end.
#[tokio::test(start_paused = true)]
async fn a_change_whose_reading_was_broken_off_is_read_again() {
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    // In another process: the one that ends a job need not read it.
    let reader = bench.process_without_worker().await;
    let (_, mut watch) = reader.engine.watch(&owner(), &id).await.unwrap().unwrap();
    deliver(&bench, 1);
    bench.quiet().await;
    bench.store.next(Method::Job, [Mood::After(Arc::default())]);
    let broken_off = tokio::time::timeout(millis(5), watch.next_change()).await;
    assert!(broken_off.is_err(), "the read takes longer than that");
    let reading = tokio::time::timeout(seconds(60), watch.next_change()).await;
    let reading = reading.expect("the end is reported").unwrap().unwrap();
    assert_eq!(text(&reading.job), "because");
}

/// A2: every later poll gets the same answer, at once.
#[tokio::test(start_paused = true)]
async fn a_finished_job_answers_the_same_on_every_later_poll() {
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    deliver(&bench, 1);
    let first = process.end(&id).await.job;
    tokio::time::sleep(seconds(60)).await;
    let asked = Instant::now();
    assert_eq!(process.end(&id).await.job, first);
    assert_eq!(asked.elapsed(), Duration::ZERO);
}

/// A2.
#[tokio::test(start_paused = true)]
async fn a_poll_ends_with_its_budget_and_the_present_state_of_the_job() {
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    let asked = Instant::now();
    let reading = process.engine.poll(&owner(), &id, seconds(45)).await.unwrap().unwrap();
    assert_eq!(asked.elapsed(), seconds(45));
    assert_eq!(reading.job.state.kind(), StateKind::Running);
}

/// A budget without a sensible end is a long wait, not a crash.
#[tokio::test(start_paused = true)]
async fn a_poll_may_wait_for_ever() {
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    let poll = process.parked_poll(&bench, id, Duration::MAX).await;
    deliver(&bench, 1);
    assert!(poll.await.unwrap().0.is_some());
}

/// A2: foreign is the same as unknown.
#[tokio::test(start_paused = true)]
async fn a_poll_of_an_unknown_or_foreign_job_answers_at_once() {
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    let unknown: JobId = "0f8fad5bd9cb469fa16570867728950e".parse().unwrap();
    let bob = Scope::Owner(OwnerId::new("bob"));
    let asked = Instant::now();
    for (scope, id) in [(owner(), unknown), (bob, id)] {
        assert!(process.engine.poll(&scope, &id, seconds(45)).await.unwrap().is_none());
    }
    assert_eq!(asked.elapsed(), Duration::ZERO);
}

/// A7: a client that disconnects ends its wait, never the job.
#[tokio::test(start_paused = true)]
async fn a_dropped_poll_leaves_the_job_running() {
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    let poll = process.parked_poll(&bench, id, seconds(45)).await;
    poll.abort();
    assert!(poll.await.unwrap_err().is_cancelled());
    bench.quiet().await;
    assert_eq!(bench.provider.followers(), 1, "the worker still follows the run");
    deliver(&bench, 1);
    assert_eq!(text(&process.end(&id).await.job), "because");
}

/// While no caller waits and no worker runs, no process looks at the store.
#[tokio::test(start_paused = true)]
async fn polls_that_are_gone_leave_nothing_to_look_for() {
    let bench = Bench::new();
    let process = bench.process_without_worker().await;
    let id = process.start(research()).await;
    bench.quiet().await;
    assert_eq!(bench.store.looking(), 0, "no caller waits yet");
    let dropped = process.parked_poll(&bench, id, seconds(45)).await;
    let ended = process.parked_poll(&bench, id, seconds(1)).await;
    assert_eq!(bench.store.looking(), 1);
    dropped.abort();
    ended.await.unwrap();
    tokio::time::sleep(seconds(10)).await;
    assert_eq!(bench.store.looking(), 0, "no caller waits any more");
}

/// `--no-worker`: a process that only answers still learns of the end at once.
#[tokio::test(start_paused = true)]
async fn a_process_without_a_worker_is_notified_of_a_job_that_another_one_ends() {
    let bench = Bench::new();
    let face = bench.process_without_worker().await;
    let id = face.start(research()).await;
    let poll = face.parked_poll(&bench, id, seconds(45)).await;
    assert_eq!(bench.kind(&id).await, StateKind::Queued, "no worker runs yet");
    let _worker = bench.process().await;
    bench.quiet().await;
    deliver(&bench, 1);
    let delivered = Instant::now();
    let (reading, answered) = poll.await.unwrap();
    assert_eq!(text(&reading.unwrap().job), "because");
    assert_eq!(answered, delivered);
}

/// A poll must not miss an end between its look and its wait; many concurrent polls share one end.
#[tokio::test(start_paused = true)]
async fn all_who_wait_for_one_job_are_answered() {
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    let mut polls = Vec::new();
    for _ in 0..20 {
        polls.push(process.parked_poll(&bench, id, seconds(45)).await);
    }
    let asked = Instant::now();
    deliver(&bench, 1);
    for poll in polls {
        assert_eq!(text(&poll.await.unwrap().0.unwrap().job), "because");
    }
    assert_eq!(asked.elapsed(), Duration::ZERO);
}

/// A process looks for changes when it is notified of one, and its worker looks for jobs when it is asked to.
#[tokio::test(start_paused = true)]
async fn a_process_looks_when_it_is_notified() {
    let bench = Bench::new();
    let process = bench.process().await;
    process.under_way(&bench, 1).await;
    tokio::time::sleep(seconds(1)).await;
    let looks = bench.store.calls(Method::Changes).len();
    process.engine.look_now();
    bench.quiet().await;
    assert!(bench.store.calls(Method::Changes).len() > looks);
    let claims = bench.store.calls(Method::Claim).len();
    process.engine.look_for_jobs();
    bench.quiet().await;
    assert!(bench.store.calls(Method::Claim).len() > claims);
}
