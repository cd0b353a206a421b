//! A clean shutdown: polls are answered, jobs released, nothing new claimed, and nothing dropped that may have been
//! paid for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outlast_core::{Checkpoint, StateKind};
use outlast_engine::{LeaveTime, Worker, WorkerRole};
use outlast_testkit::scripted::Begin;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::bench::{Bench, deliver, millis, remote_run, research, seconds, text};
use crate::moody::{Method, Mood};

/// A7, B9: no attempt is spent, and the next process resumes without a second begin (A11).
#[tokio::test(start_paused = true)]
async fn a_soft_stop_answers_polls_and_gives_jobs_back_to_be_resumed() {
    let bench = Bench::new();
    let first = bench.process().await;
    let id = first.under_way(&bench, 1).await;
    let poll = first.parked_poll(&bench, id, seconds(45)).await;
    let asked = Instant::now();
    assert_eq!(first.leave().await, Duration::ZERO, "all is quiet at once");
    let (reading, answered) = poll.await.unwrap();
    assert!(reading.is_some(), "the waiting caller was answered");
    assert_eq!(answered, asked);
    let job = bench.job(&id).await;
    assert_eq!(job.state.kind(), StateKind::Queued);
    assert!(job.failures.is_empty());
    assert_eq!(remote_run(&job).id, "run-1");
    assert_eq!(bench.provider.followers(), 0);

    let second = bench.process().await;
    bench.quiet().await;
    assert_eq!(bench.provider.resumes(), 1);
    deliver(&bench, 1);
    assert_eq!(text(&second.end(&id).await.job), "because");
    assert_eq!(bench.provider.keys().len(), 1);
}

/// A worker that is shutting down claims nothing more.
#[tokio::test(start_paused = true)]
async fn a_process_that_leaves_takes_nothing_new() {
    let bench = Bench::new();
    let process = bench.process().await;
    bench.quiet().await;
    process.stop.ask();
    let id = process.start(research()).await;
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(bench.kind(&id).await, StateKind::Queued);
    assert!(bench.provider.keys().is_empty());
}

/// It begins nothing more either: a job claimed at the last moment is released unchanged.
#[tokio::test(start_paused = true)]
async fn a_job_claimed_at_the_last_moment_is_not_begun() {
    let bench = Bench::new();
    let process = bench.process().await;
    bench.quiet().await;
    let claiming = Arc::new(Notify::new());
    bench.store.next(Method::Claim, [Mood::After(claiming.clone())]);
    let id = process.start(research()).await;
    bench.quiet().await;
    process.stop.ask();
    claiming.notify_one();
    process.leave().await;
    assert!(bench.provider.keys().is_empty(), "nothing is bought on the way out");
    let job = bench.job(&id).await;
    assert_eq!(job.state.kind(), StateKind::Queued);
    assert_eq!(job.checkpoint, Checkpoint::NotBegun);
}

/// B9a: the shutdown waits for a request on its way, so that its run is recorded.
#[tokio::test(start_paused = true)]
async fn a_soft_stop_waits_for_a_request_on_its_way() {
    let bench = Bench::new();
    let first = bench.process().await;
    let answer = Arc::new(Notify::new());
    bench.provider.next_begins([Begin::RunAfter(answer.clone())]);
    let id = first.start(research()).await;
    bench.quiet().await;
    let (took, ()) = tokio::join!(first.leave(), async {
        tokio::time::sleep(millis(700)).await;
        answer.notify_one();
    });
    assert_eq!(took, millis(700));
    let job = bench.job(&id).await;
    assert_eq!(job.state.kind(), StateKind::Queued);
    assert_eq!(remote_run(&job).id, "run-1");
    let second = bench.process().await;
    bench.quiet().await;
    deliver(&bench, 1);
    assert_eq!(text(&second.end(&id).await.job), "because");
    assert_eq!(bench.provider.keys().len(), 1);
}

/// But only for a limited time, because a process manager is waiting too.
#[tokio::test(start_paused = true)]
async fn a_soft_stop_waits_for_a_request_for_a_limited_time() {
    let bench = Bench::new();
    let process = bench.process().await;
    bench.provider.next_begins([Begin::RunAfter(Arc::new(Notify::new()))]);
    let id = process.start(research()).await;
    bench.quiet().await;
    assert_eq!(process.leave().await, millis(1_500));
    assert_eq!(bench.provider.begins_dropped(), 1);
    assert!(matches!(bench.job(&id).await.checkpoint, Checkpoint::Beginning { .. }));
}

/// A resume buys nothing, so a worker that is shutting down does not wait for it.
#[tokio::test(start_paused = true)]
async fn a_soft_stop_does_not_wait_for_a_resume() {
    let bench = Bench::new();
    let first = bench.process().await;
    let id = first.under_way(&bench, 1).await;
    first.leave().await;
    bench.provider.next_resumes([outlast_testkit::scripted::Answer::Never]);
    let second = bench.process().await;
    bench.quiet().await;
    assert_eq!(bench.provider.resumes(), 1);
    assert_eq!(second.leave().await, Duration::ZERO);
    let job = bench.job(&id).await;
    assert_eq!(job.state.kind(), StateKind::Queued);
    assert!(job.failures.is_empty());
}

/// If a worker has stopped, in whatever way, no task looks at the store for it.
#[tokio::test(start_paused = true)]
async fn a_worker_that_was_killed_is_not_registered_any_more() {
    let bench = Bench::new();
    let process = bench.process().await;
    bench.quiet().await;
    assert_eq!(bench.store.looking(), 1);
    process.worker.as_ref().unwrap().abort();
    tokio::time::sleep(seconds(70)).await;
    assert_eq!(bench.store.looking(), 0);
}

/// A worker that is no longer current finishes its jobs and claims nothing new; the next worker does.
#[tokio::test(start_paused = true)]
async fn a_worker_that_is_not_current_ends_what_it_has_and_takes_nothing_new() {
    let bench = Bench::new();
    let mut first = bench.process_without_worker().await;
    let current = Arc::new(AtomicBool::new(true));
    let asked = current.clone();
    let worker = Worker::new(&first.engine, WorkerRole::TheQueue);
    let worker = worker.while_current(move || asked.load(Ordering::Relaxed));
    first.worker = Some(tokio::spawn(worker.run(LeaveTime::Asked)));
    let old = first.under_way(&bench, 1).await;
    current.store(false, Ordering::Relaxed);
    let new = first.start(research()).await;
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(bench.kind(&new).await, StateKind::Queued);
    deliver(&bench, 1);
    assert_eq!(text(&first.end(&old).await.job), "because");
    bench.until(|| first.worker.as_ref().is_some_and(JoinHandle::is_finished)).await;

    let second = bench.process().await;
    bench.quiet().await;
    deliver(&bench, 2);
    assert_eq!(text(&second.end(&new).await.job), "because");
}
