//! The two time limits of a job, and the store's clock.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{
    Checkpoint, Code, Failure, JobState, NewJob, Profile, ProviderErrorKind, Settlement, StateKind,
    Store, WorkerId,
};
use outlast_engine::Options;
use outlast_testkit::scripted::{Act, Answer};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::bench::{Bench, LEASE, deliver, millis, research, seconds, text};
use crate::moody::{Method, Mood};
use crate::overheard::Overheard;

/// C7, B9a: a warning at 80 %, then the attempt ends and the next one resumes the same run.
#[tokio::test(start_paused = true)]
async fn a_try_that_takes_too_long_is_warned_of_and_resumed() {
    let log = Overheard::start();
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.start(NewJob { attempt_timeout: seconds(600), ..research() }).await;
    bench.quiet().await;
    tokio::time::sleep(seconds(480) - millis(10)).await;
    assert!(log.lines_with("80 %").is_empty());
    tokio::time::sleep(millis(20)).await;
    assert_eq!(log.lines_with("80 %").len(), 1);
    tokio::time::sleep(seconds(119)).await;
    assert!(bench.job(&id).await.failures.is_empty());
    tokio::time::sleep(seconds(1)).await;
    let job = bench.job(&id).await;
    assert_eq!(job.failures.len(), 1);
    assert_eq!(job.failures[0].code, Code::Timeout);
    tokio::time::sleep(seconds(5)).await;
    assert_eq!(bench.provider.resumes(), 1);
    deliver(&bench, 1);
    assert_eq!(text(&process.end(&id).await.job), "because");
    assert_eq!(bench.provider.keys().len(), 1, "one begin");
    assert_eq!(log.lines_with("80 %").len(), 1, "once for each try that comes so far");
}

/// A6.
#[tokio::test(start_paused = true)]
async fn the_life_ceiling_ends_a_job_whatever_its_tries() {
    let bench = Bench::new();
    let process = bench.process().await;
    let started = Instant::now();
    let id = process.start(NewJob { life: Some(seconds(900)), ..research() }).await;
    let job = process.end(&id).await.job;
    assert_eq!(started.elapsed(), seconds(900));
    assert_eq!(job.state.kind(), StateKind::Failed);
    assert_eq!(job.failures.len(), 1);
    assert_eq!(job.failures[0].code, Code::Timeout);
    bench.quiet().await;
    assert_eq!(bench.provider.followers(), 0);
}

/// A6: progress does not move the ceiling.
#[tokio::test(start_paused = true)]
async fn progress_does_not_lengthen_a_jobs_life() {
    let bench = Bench::new();
    let process = bench.process().await;
    let started = Instant::now();
    let id = process.start(NewJob { life: Some(seconds(10)), ..research() }).await;
    for percent in 1..10 {
        tokio::time::sleep(seconds(1)).await;
        bench.provider.act(1, Act::Progress(percent));
    }
    process.end(&id).await;
    assert_eq!(started.elapsed(), seconds(10));
}

/// A6: a resumed job gets one look at its run before the ceiling ends it.
#[tokio::test(start_paused = true)]
async fn a_job_resumed_after_its_life_still_succeeds_if_its_run_is_done() {
    let bench = Bench::new();
    let first = bench.process().await;
    let id = first.start(NewJob { life: Some(seconds(900)), ..research() }).await;
    bench.quiet().await;
    first.die().await;
    tokio::time::sleep(seconds(3_000)).await;
    let second = bench.process().await;
    tokio::time::sleep(seconds(5)).await;
    deliver(&bench, 1);
    assert_eq!(text(&second.end(&id).await.job), "because");
    assert_eq!(bench.provider.keys().len(), 1);
}

/// A6: the job ends after that look if its run is not done, or cannot be checked.
#[tokio::test(start_paused = true)]
async fn a_job_resumed_after_its_life_gets_one_look_and_no_more() {
    for answer in [Answer::Yes, Answer::Never] {
        let bench = Bench::new();
        let first = bench.process().await;
        let id = first.start(NewJob { life: Some(seconds(900)), ..research() }).await;
        bench.quiet().await;
        first.die().await;
        tokio::time::sleep(seconds(3_000)).await;
        bench.provider.next_resumes([answer]);
        let second = bench.process().await;
        let asked = Instant::now();
        let job = second.end(&id).await.job;
        assert_eq!(job.failures[0].code, Code::Timeout);
        assert_eq!(asked.elapsed(), seconds(20));
    }
}

/// A6: a report delivered at the very moment of the ceiling was paid for, and counts.
#[tokio::test(start_paused = true)]
async fn a_report_that_is_there_when_the_time_is_up_counts() {
    for _ in 0..20 {
        let bench = Bench::new();
        let process = bench.process().await;
        let id = process.start(NewJob { life: Some(seconds(900)), ..research() }).await;
        bench.quiet().await;
        // A slow write keeps the attempt from looking until both are ready.
        let written = Arc::new(Notify::new());
        bench.store.next(Method::Note, [Mood::After(written.clone())]);
        bench.provider.act(1, Act::Progress(99));
        bench.quiet().await;
        bench.provider.act(1, Act::Progress(100));
        deliver(&bench, 1);
        tokio::time::sleep(seconds(1_000)).await;
        written.notify_one();
        assert_eq!(text(&process.end(&id).await.job), "because");
    }
}

/// A6: a life that ended in the queue buys nothing.
#[tokio::test(start_paused = true)]
async fn a_job_whose_life_ended_in_the_queue_is_never_begun() {
    let bench = Bench::new();
    let face = bench.process_without_worker().await;
    let id = face.start(NewJob { life: Some(seconds(900)), ..research() }).await;
    tokio::time::sleep(seconds(901)).await;
    let process = bench.process().await;
    let job = process.end(&id).await.job;
    assert_eq!(job.state.kind(), StateKind::Failed);
    assert_eq!(job.failures[0].code, Code::Timeout);
    assert!(bench.provider.keys().is_empty(), "nothing was bought");
}

/// Start-up with work already due, and with work due in a moment.
#[tokio::test(start_paused = true)]
async fn a_worker_finds_what_is_due_when_it_comes_and_what_is_due_soon() {
    let bench = Bench::new();
    let first = bench.process().await;
    let retried = first.under_way(&bench, 1).await;
    first.start(research()).await;
    bench.quiet().await;
    bench.provider.act(1, Act::Fail(ProviderErrorKind::Unreachable));
    bench.quiet().await;
    let JobState::Queued { run_at } = bench.job(&retried).await.state else {
        panic!("waits for its next try");
    };
    first.leave().await;
    assert_eq!(bench.provider.resumes(), 0);
    let _second = bench.process().await;
    bench.quiet().await;
    assert_eq!(bench.provider.resumes(), 1, "what was released is resumed at once");
    bench.until(|| bench.provider.resumes() == 2).await;
    let late = bench.store.now().since(run_at);
    assert!(late <= millis(3), "{late:?} after it was due");
}

/// A due time for another profile must not hide the next one, and no tick may be in between.
#[tokio::test(start_paused = true)]
async fn a_due_time_that_no_worker_answers_hides_no_later_one() {
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    // A job of another profile, due in 1 s, for which there is no worker.
    let other = Profile::new("other");
    process.start(NewJob { profile: other.clone(), ..research() }).await;
    let claimed = bench.store.claim(&WorkerId::new("w"), &[other], LEASE).await.unwrap().unwrap();
    let failure = Failure {
        code: Code::Timeout,
        message: String::new(),
        detail: None,
        at: bench.store.now(),
        run_goes_on: false,
        run: outlast_core::RunStatus::Unknown,
    };
    let (wait, checkpoint) = (seconds(1), Checkpoint::NotBegun);
    let retry = Settlement::Retry { failure, wait, checkpoint };
    bench.store.settle(&claimed.lease, retry).await.unwrap();
    bench
        .provider
        .act(1, Act::Fail(ProviderErrorKind::RateLimited { retry_after: Some(seconds(4)) }));
    bench.quiet().await;
    let JobState::Queued { run_at } = bench.job(&id).await.state else {
        panic!("waits for its next try");
    };
    bench.until(|| bench.provider.resumes() == 1).await;
    let late = bench.store.now().since(run_at);
    assert!(late <= millis(3), "{late:?} after it was due");
}

/// A worker that is idle next to a busy one looks for work when there may be some, not with every progress write.
#[tokio::test(start_paused = true)]
async fn progress_of_others_does_not_make_a_worker_claim() {
    let bench = Bench::new();
    let process = bench.process().await;
    process.under_way(&bench, 1).await;
    let before = bench.store.calls(Method::Claim).len();
    for percent in 0..100 {
        bench.provider.act(1, Act::Progress(percent));
        tokio::time::sleep(millis(300)).await;
    }
    let claims = bench.store.calls(Method::Claim).len() - before;
    assert!(claims <= 20, "{claims} claims in 30 s");
}

/// Leases: renewed three times in each length, for as long as the job runs.
#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_while_its_job_runs() {
    let bench = Bench::new();
    let first = bench.process().await;
    let second = bench.process().await;
    let id = first.under_way(&bench, 1).await;
    tokio::time::sleep(LEASE * 20).await;
    assert_eq!(bench.provider.resumes(), 0, "no worker took it over");
    assert_eq!(bench.job(&id).await.fence.0, 1);
    deliver(&bench, 1);
    assert_eq!(text(&second.end(&id).await.job), "because");
    bench.quiet().await;
    let renewals = bench.store.calls(Method::Renew).len();
    tokio::time::sleep(LEASE * 3).await;
    assert_eq!(bench.store.calls(Method::Renew).len(), renewals, "nothing is left to renew");
}

/// A renewal that hangs delays no cancel.
#[tokio::test(start_paused = true)]
async fn a_slow_renewal_does_not_keep_a_cancelled_jobs_slot() {
    let bench = Bench::new();
    let process = bench.process_with(Options { concurrency: 1, ..Options::default() }).await;
    let id = process.under_way(&bench, 1).await;
    let hang = Arc::new(Notify::new());
    bench.store.next(Method::Renew, [Mood::After(hang)]);
    tokio::time::sleep(seconds(11)).await;
    process.start(research()).await;
    let asked = Instant::now();
    process.cancel(&id).await;
    bench.at_once(|| bench.provider.keys().len() == 2).await;
    assert_eq!(asked.elapsed(), Duration::ZERO);
}
