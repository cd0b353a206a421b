//! The end of an attempt whose run has sent steps that are not answered yet (K2).

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{NewJob, ResendPolicy, ResumePolicy, StateKind};
use outlast_testkit::scripted::Scripted;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::bench::{Bench, LEASE, millis, research, seconds, semantics_of};
use crate::moody::{Method, Mood};

fn bench() -> Bench {
    Bench::over(Scripted::with_semantics(semantics_of(
        ResendPolicy::Idempotent,
        ResumePolicy::FromJournal,
    )))
}

/// K2: a shutdown waits for the answers, spends no attempt, and the next process goes on.
#[tokio::test(start_paused = true)]
async fn k2_a_shutdown_waits_for_the_answers_to_steps_in_flight() {
    let bench = bench();
    let answer = Arc::new(Notify::new());
    bench.provider.answer_last_steps(answer.clone());
    let first = bench.process().await;
    let id = first.under_way(&bench, 1).await;
    let leaving = tokio::spawn(first.leave());
    tokio::time::sleep(seconds(20)).await;
    assert_eq!((bench.provider.wind_downs(), bench.provider.followers()), (1, 1));
    assert_eq!(bench.kind(&id).await, StateKind::Running, "the lease is held meanwhile");
    answer.notify_one();
    assert!(leaving.await.unwrap() < seconds(21));
    let job = bench.job(&id).await;
    assert_eq!((job.state.kind(), job.failures.len()), (StateKind::Queued, 0));
}

/// K2: it waits for at most 30 seconds, and renews its lease meanwhile.
#[tokio::test(start_paused = true)]
async fn k2_a_shutdown_waits_at_most_30_seconds() {
    let bench = bench();
    bench.provider.answer_last_steps(Arc::new(Notify::new()));
    let first = bench.process().await;
    let id = first.under_way(&bench, 1).await;
    tokio::time::sleep(LEASE - seconds(1)).await;
    let took = first.leave().await;
    assert!(took >= seconds(30) && took < seconds(31), "{took:?}");
    let job = bench.job(&id).await;
    assert_eq!((job.state.kind(), job.failures.len()), (StateKind::Queued, 0));
}

/// K2: so does an attempt that has no time left.
#[tokio::test(start_paused = true)]
async fn k2_an_attempt_without_time_records_its_steps_in_flight() {
    let bench = bench();
    let answer = Arc::new(Notify::new());
    bench.provider.answer_last_steps(answer.clone());
    let process = bench.process().await;
    let limited = NewJob { attempt_timeout: seconds(100), max_failures: 0, ..research() };
    let id = process.start(limited).await;
    tokio::time::sleep(seconds(105)).await;
    assert_eq!((bench.provider.wind_downs(), bench.kind(&id).await), (1, StateKind::Running));
    answer.notify_one();
    let since = Instant::now();
    let job = process.end(&id).await.job;
    assert_eq!((job.state.kind(), since.elapsed()), (StateKind::Failed, Duration::ZERO));
    assert!(job.failures[0].run_goes_on, "a retry continues it");
}

/// K2: without its lease a worker waits for nothing.
#[tokio::test(start_paused = true)]
async fn k2_a_run_whose_lease_has_run_out_is_dropped_at_once() {
    let bench = bench();
    bench.provider.answer_last_steps(Arc::new(Notify::new()));
    let process = bench.process().await;
    process.under_way(&bench, 1).await;
    bench.store.next(Method::Renew, std::iter::repeat_n(Mood::Full, 100));
    tokio::time::sleep(LEASE - millis(500)).await;
    assert_eq!(bench.provider.followers(), 1);
    process.stop.ask();
    tokio::time::sleep(seconds(1)).await;
    assert_eq!((bench.provider.wind_downs(), bench.provider.followers()), (1, 0));
}
