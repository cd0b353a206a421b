//! The tasks of a worker besides its jobs: it removes what has expired, registers itself, and leaves when nothing is
//! left.

use std::time::Duration;

use outlast_core::{
    BeginError, NewJob, Profile, ProviderErrorKind, Scope, StateKind, Store, StoreError, Waits,
};
use outlast_engine::{LeaveTime, Options, Worker, WorkerRole};
use outlast_testkit::scripted::{Act, Begin, Scripted, error};
use tokio::time::Instant;

use crate::bench::{Bench, LONG, deliver, millis, owner, research, seconds};
use crate::moody::{Method, Mood};
use crate::overheard::Overheard;

fn kept_for(keep: u64) -> NewJob {
    NewJob { keep: Some(seconds(keep)), ..research() }
}

async fn rows(bench: &Bench) -> usize {
    // Expired jobs are hidden from readers but still stored. A key would find them; a count of changes does.
    let all = outlast_core::ChangeWait { at_most: millis(0), look_every: millis(1) };
    bench.store.changes(outlast_core::Rev(0), all).await.unwrap().jobs.len()
}

/// A6, A8: a finished job is removed when its retention has ended, at most the sweep interval late; an unfinished one
/// never.
#[tokio::test(start_paused = true)]
async fn a6_a_finished_job_is_removed_soon_after_its_retention() {
    let log = Overheard::start();
    let bench = Bench::new();
    let options = Options { sweep_interval: seconds(300), ..Options::default() };
    let process = bench.process_with(options).await;
    let done = process.start(kept_for(1800)).await;
    bench.quiet().await;
    let unfinished = process.start(kept_for(1)).await;
    deliver(&bench, 1);
    process.end(&done).await;
    tokio::time::sleep(seconds(1799)).await;
    assert_eq!(rows(&bench).await, 2);
    assert!(log.lines_with("forgot jobs").is_empty());
    tokio::time::sleep(seconds(301)).await;
    assert_eq!(rows(&bench).await, 1, "swept");
    assert_eq!(log.lines_with("forgot jobs").len(), 1);
    assert!(process.engine.job(&owner(), &done).await.unwrap().is_none());
    tokio::time::sleep(seconds(600)).await;
    assert_eq!(bench.kind(&unfinished).await, StateKind::Running, "A8: never an unfinished job");
}

/// A6: a poll of an expired job that was not swept yet already finds nothing.
#[tokio::test(start_paused = true)]
async fn a6_an_expired_job_is_not_found_before_it_is_swept() {
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.start(kept_for(10)).await;
    bench.quiet().await;
    deliver(&bench, 1);
    process.end(&id).await;
    tokio::time::sleep(seconds(10)).await;
    assert!(process.engine.poll(&owner(), &id, LONG).await.unwrap().is_none());
    assert_eq!(rows(&bench).await, 1);
}

/// A8: while nothing can expire, the sweeper does not look.
#[tokio::test(start_paused = true)]
async fn a8_a_job_that_ends_later_but_expires_sooner_is_swept_in_time() {
    let bench = Bench::new();
    let process = bench.process().await;
    let long = process.start(kept_for(86_400)).await;
    bench.quiet().await;
    deliver(&bench, 1);
    process.end(&long).await;
    tokio::time::sleep(seconds(3_600)).await;
    let short = process.start(kept_for(1)).await;
    bench.quiet().await;
    deliver(&bench, 2);
    process.end(&short).await;
    tokio::time::sleep(seconds(302)).await;
    assert_eq!(rows(&bench).await, 1, "the short one is gone");
    assert!(process.engine.job(&owner(), &long).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_queued_job_says_what_it_waits_for() {
    let bench = Bench::new();
    let face = bench.process_without_worker().await;
    let waits = async |id| face.engine.poll(&owner(), id, millis(0)).await.unwrap().unwrap().waits;
    let elsewhere = NewJob { profile: Profile::new("another key"), ..research() };
    let lonely = face.start(elsewhere).await;
    let plain = face.start(research()).await;
    assert_eq!(waits(&lonely).await, Some(Waits::ForAWorker));
    assert_eq!(waits(&plain).await, Some(Waits::ForAWorker));

    bench
        .provider
        .next_begins([Begin::Fail(BeginError::Refused(error(ProviderErrorKind::Unreachable)))]);
    let process = bench.process_with(Options { concurrency: 1, ..Options::default() }).await;
    bench.quiet().await;
    assert_eq!(waits(&lonely).await, Some(Waits::ForAWorker), "no worker for its profile");
    assert!(matches!(waits(&plain).await, Some(Waits::Until(_))), "the time of its next try");
    let running = process.start(research()).await;
    let next = process.start(research()).await;
    bench.quiet().await;
    assert_eq!(waits(&running).await, None);
    // The job that waits for its next attempt is older, and comes first once its time has come.
    assert_eq!(waits(&next).await, Some(Waits::ForItsTurn { ahead: 1 }));
    process.leave().await;
    assert_eq!(waits(&next).await, Some(Waits::ForAWorker), "a worker that left is there no more");
}

#[tokio::test(start_paused = true)]
async fn a_worker_until_idle_leaves_when_nothing_is_left() {
    let bench = Bench::new();
    let face = bench.process_without_worker().await;
    let first = face.start(research()).await;
    let second = face.start(research()).await;
    face.start(NewJob { profile: Profile::new("another key"), ..research() }).await;
    bench
        .provider
        .next_begins([Begin::Fail(BeginError::Refused(error(ProviderErrorKind::Unreachable)))]);
    let worker = tokio::spawn(
        Worker::new(&face.engine, WorkerRole::TheQueue).run(LeaveTime::IdleFor(Duration::ZERO)),
    );
    tokio::time::sleep(seconds(30)).await;
    assert!(!worker.is_finished(), "a try that waits for its time, and a run under way");
    bench.provider.act(2, Act::Done("because"));
    bench.provider.act(3, Act::Done("because"));
    worker.await.unwrap().unwrap();
    for id in [first, second] {
        assert_eq!(bench.kind(&id).await, StateKind::Succeeded);
    }
    assert_eq!(bench.store.count_queued(&[Scripted::profile()]).await.unwrap(), 0);
    assert!(!bench.store.has_worker(&Scripted::profile()).await.unwrap(), "it said goodbye");
}

/// A job that waits for its next attempt counts as work left, even while no attempt is under way. A queue that cannot
/// be read may hold work, too.
#[tokio::test(start_paused = true)]
async fn a_worker_until_idle_stays_for_a_try_that_is_due_later() {
    let bench = Bench::new();
    let face = bench.process_without_worker().await;
    assert!(face.engine.is_idle().await);
    bench.store.next(Method::OwedStops, [Mood::Unavailable]);
    assert!(!face.engine.is_idle().await);
    let id = face.start(research()).await;
    assert!(!face.engine.is_idle().await);
    bench
        .provider
        .next_begins([Begin::Fail(BeginError::Refused(error(ProviderErrorKind::Unreachable)))]);
    let worker = tokio::spawn(
        Worker::new(&face.engine, WorkerRole::TheQueue).run(LeaveTime::IdleFor(Duration::ZERO)),
    );
    bench.until(|| bench.provider.keys().len() == 2).await;
    bench.provider.act(2, Act::Done("because"));
    worker.await.unwrap().unwrap();
    assert_eq!(bench.kind(&id).await, StateKind::Succeeded);
    assert!(face.engine.is_idle().await);
}

/// The worker gives up even while it has an attempt: here, a run that never ends.
#[tokio::test(start_paused = true)]
async fn a_worker_until_idle_gives_up_a_store_that_cannot_be_read_for_minutes() {
    let bench = Bench::new();
    let face = bench.process_without_worker().await;
    face.start(research()).await;
    // At first only for four minutes: 4 failed checks, a minute apart.
    bench.store.next(Method::Rev, vec![Mood::Unavailable; 4]);
    let worker = tokio::spawn(
        Worker::new(&face.engine, WorkerRole::TheQueue).run(LeaveTime::IdleFor(Duration::ZERO)),
    );
    tokio::time::sleep(seconds(600)).await;
    assert!(!worker.is_finished(), "it is at work, and the store came back");
    bench.store.next(Method::Rev, vec![Mood::Unavailable; 3_600]);
    let gone = Instant::now();
    let left = worker.await.unwrap();
    assert!(matches!(left, Err(StoreError::Unavailable(_))), "{left:?}");
    assert!((seconds(300)..seconds(420)).contains(&gone.elapsed()), "{:?}", gone.elapsed());
}

/// H1: a worker without attempts leaves a store that can be read but gives no job; a worker with an attempt stays.
#[tokio::test(start_paused = true)]
async fn h1_a_worker_until_idle_gives_up_a_store_that_refuses_every_claim_for_minutes() {
    let bench = Bench::new();
    let face = bench.process_without_worker().await;
    face.start(research()).await;
    let worker = tokio::spawn(
        Worker::new(&face.engine, WorkerRole::TheQueue).run(LeaveTime::IdleFor(Duration::ZERO)),
    );
    bench.until(|| bench.provider.keys().len() == 1).await;
    bench.store.next(Method::Claim, vec![Mood::Unavailable; 100_000]);
    tokio::time::sleep(seconds(900)).await;
    assert!(!worker.is_finished(), "it is at work");
    bench.provider.act(1, Act::Done("because"));
    let done = Instant::now();
    worker.await.unwrap().unwrap();
    assert!((seconds(300)..seconds(330)).contains(&done.elapsed()), "{:?}", done.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_worker_until_idle_does_pending_stops_before_it_leaves() {
    let bench = Bench::new();
    let doomed = bench.process().await;
    let id = doomed.under_way(&bench, 1).await;
    doomed.die().await;
    let face = bench.process_without_worker().await;
    face.cancel(&id).await;
    Worker::new(&face.engine, WorkerRole::TheQueue)
        .run(LeaveTime::IdleFor(Duration::ZERO))
        .await
        .unwrap();
    assert_eq!(bench.provider.stops(), ["run-1"]);
    assert!(bench.store.job(&Scope::Operator, &id).await.unwrap().is_some());
}
