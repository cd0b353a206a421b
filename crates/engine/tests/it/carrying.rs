//! A worker runs jobs concurrently, in order, and none of them harms another.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{Code, ConversationId, NewJob, ProviderErrorKind, StateKind};
use outlast_engine::Options;
use outlast_testkit::scripted::{Act, Answer, Begin};
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::bench::{Bench, LEASE, deliver, research, seconds, text};
use crate::moody::{Method, Mood};
use crate::overheard::Overheard;

fn one_at_a_time() -> Options {
    Options { concurrency: 1, ..Options::default() }
}

fn asking(name: &str, priority: i16) -> NewJob {
    NewJob { request: json!(name).into(), priority, ..research() }
}

/// B7, B15: from start to end, only the provider causes a pause.
#[tokio::test(start_paused = true)]
async fn a_started_job_is_claimed_and_done_without_delay() {
    let log = Overheard::start();
    let bench = Bench::new();
    let process = bench.process().await;
    bench.quiet().await;
    let started = Instant::now();
    let id = process.start(research()).await;
    bench.at_once(|| !bench.provider.keys().is_empty()).await;
    assert_eq!(started.elapsed(), Duration::ZERO, "claimed at once");
    bench.quiet().await;
    deliver(&bench, 1);
    let job = process.end(&id).await.job;
    assert_eq!(text(&job), "because");
    assert_eq!(bench.provider.asks(), [json!("why")]);
    for line in ["Job enqueued", "Job dequeued", "Job completed"] {
        let heard = log.lines_with(line);
        assert_eq!(heard.len(), 1, "{line}");
        assert!(heard[0].contains(&id.to_string()), "{heard:?}");
    }
}

/// Sequential claims would each wait for a separate commit. A claimed job is worked on, whatever the result of the
/// other claims.
#[tokio::test(start_paused = true)]
async fn a_full_queue_is_claimed_from_side_by_side() {
    let bench = Bench::new();
    let starter = bench.process_without_worker().await;
    for _ in 0..7 {
        starter.start(research()).await;
    }
    let gate = Arc::new(Notify::new());
    let moods = [Mood::ready(), Mood::After(gate.clone()), Mood::Unavailable];
    bench.store.next(Method::Claim, moods);
    let _process = bench.process_with(Options { concurrency: 7, ..Options::default() }).await;
    bench.quiet().await;
    assert_eq!(bench.store.calls(Method::Claim).len(), 3, "one, and then two at a time");
    assert_eq!(bench.provider.keys().len(), 1);
    gate.notify_one();
    bench.at_once(|| bench.provider.keys().len() == 2).await;
    bench.until(|| bench.provider.keys().len() == 7).await;
    assert_eq!(bench.store.claimants().len(), 7, "and no more than there is room for");
}

/// Claims that follow a successful one are concurrent, twice as many each time, and share the store's commits.
#[tokio::test(start_paused = true)]
async fn claims_double_while_they_find_jobs() {
    let bench = Bench::new();
    let starter = bench.process_without_worker().await;
    for _ in 0..7 {
        starter.start(research()).await;
    }
    let gate = Arc::new(Notify::new());
    bench.store.next(Method::Claim, [Mood::ready(), Mood::ready(), Mood::ready()]);
    bench.store.next(Method::Claim, (0..4).map(|_| Mood::After(gate.clone())));
    let _process = bench.process_with(Options { concurrency: 7, ..Options::default() }).await;
    bench.quiet().await;
    assert_eq!(bench.store.calls(Method::Claim).len(), 1 + 2 + 4);
    gate.notify_waiters();
    bench.until(|| bench.provider.keys().len() == 7).await;
}

/// B7.
#[tokio::test(start_paused = true)]
async fn jobs_run_side_by_side_up_to_the_concurrency_and_a_free_slot_fills_at_once() {
    let bench = Bench::new();
    let process = bench.process_with(Options { concurrency: 3, ..Options::default() }).await;
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(process.start(research()).await);
    }
    bench.quiet().await;
    assert_eq!(bench.provider.keys().len(), 3, "three slots");
    tokio::time::sleep(seconds(20)).await;
    assert_eq!(bench.provider.keys().len(), 3, "and no more of them by waiting");
    let freed = Instant::now();
    deliver(&bench, 2);
    bench.at_once(|| bench.provider.keys().len() == 4).await;
    assert_eq!(freed.elapsed(), Duration::ZERO, "the free slot fills at once");
    assert_eq!(bench.kind(&ids[1]).await, StateKind::Succeeded);
    for run in [1, 3, 4] {
        bench.quiet().await;
        deliver(&bench, run);
    }
    bench.quiet().await;
    deliver(&bench, 5);
    for id in &ids {
        assert_eq!(text(&process.end(id).await.job), "because");
    }
}

/// B8.
#[tokio::test(start_paused = true)]
async fn the_highest_priority_comes_first_then_the_oldest() {
    let bench = Bench::new();
    let face = bench.process_without_worker().await;
    for (name, priority) in [("old", 0), ("late", -1), ("young", 0), ("urgent", 5)] {
        face.start(asking(name, priority)).await;
    }
    let _worker = bench.process_with(one_at_a_time()).await;
    for run in 1..=4 {
        bench.quiet().await;
        deliver(&bench, run);
    }
    bench.quiet().await;
    assert_eq!(
        bench.provider.asks(),
        [json!("urgent"), json!("old"), json!("young"), json!("late")]
    );
}

/// E11, B7: a panic in any part of an adapter fails only its own job, with a reason, and is logged with the job's id.
#[tokio::test(start_paused = true)]
async fn a_panic_fails_its_own_job_and_touches_no_other() {
    let log = Overheard::start();
    let bench = Bench::new();
    let process = bench.process().await;
    let bystander = process.under_way(&bench, 1).await;

    bench.provider.next_begins([Begin::Panic]);
    let in_begin = process.start(research()).await;
    bench.quiet().await;
    let in_next = process.under_way(&bench, 3).await;
    bench.provider.act(3, Act::Panic);
    bench.quiet().await;
    bench.provider.panic_in_semantics(1);
    let in_semantics = process.start(research()).await;
    bench.quiet().await;
    bench.provider.next_resumes([Answer::Panic]);
    let in_resume = process.under_way(&bench, 4).await;
    bench.provider.act(4, Act::Fail(ProviderErrorKind::Unreachable));

    for id in [in_begin, in_next, in_semantics, in_resume] {
        let asked = Instant::now();
        let job = process.end(&id).await.job;
        assert!(asked.elapsed() < LEASE, "not only when its lease ran out");
        assert_eq!(job.state.kind(), StateKind::Failed);
        let failure = job.failures.last().unwrap();
        // A panic in `begin` may have bought something.
        let code = if id == in_begin { Code::SubmitUnknown } else { Code::InternalError };
        assert_eq!(failure.code, code);
        assert!(failure.message.contains("the worker failed"), "{}", failure.message);
        let had_a_run = id == in_next || id == in_resume;
        assert_eq!(job.run_left().is_some(), had_a_run, "it can be resumed");
        let heard = log.lines_with("panicked");
        assert!(heard.iter().any(|line| line.contains(&id.to_string())), "{heard:?}");
    }
    assert!(!process.worker.as_ref().unwrap().is_finished(), "the worker is still there");
    deliver(&bench, 1);
    assert_eq!(text(&process.end(&bystander).await.job), "because");
}

/// E11: a panic during a stop does not end the worker.
#[tokio::test(start_paused = true)]
async fn a_panic_while_a_run_is_stopped_touches_no_job() {
    let bench = Bench::new();
    let process = bench.process().await;
    let bystander = process.under_way(&bench, 1).await;
    let id = process.under_way(&bench, 2).await;
    bench.provider.next_stops([Answer::Panic]);
    process.cancel(&id).await;
    tokio::time::sleep(seconds(5)).await;
    assert_eq!(bench.provider.stops(), ["run-2", "run-2"], "tried again");
    deliver(&bench, 1);
    assert_eq!(text(&process.end(&bystander).await.job), "because");
}

/// A worker claims only jobs that its providers can do.
#[tokio::test(start_paused = true)]
async fn a_job_of_another_profile_is_left_alone() {
    let bench = Bench::new();
    let process = bench.process().await;
    let foreign = NewJob { profile: outlast_core::Profile::new("other"), ..research() };
    let foreign = process.start(foreign).await;
    process.under_way(&bench, 1).await;
    assert_eq!(bench.kind(&foreign).await, StateKind::Queued);
}

/// A defect outside the provider's code is logged. Its job is resumed when its lease has ended, and no other job is
/// harmed.
#[tokio::test(start_paused = true)]
async fn a_try_that_panics_is_logged_and_its_job_is_not_lost() {
    let log = Overheard::start();
    let bench = Bench::new();
    let process = bench.process().await;
    let other = process.under_way(&bench, 1).await;
    bench.store.next(Method::Settle, [Mood::Panics]);
    deliver(&bench, 1);
    bench.quiet().await;
    assert_eq!(log.lines_with("ended without settling its job").len(), 1);
    bench.until(|| bench.provider.resumes() == 1).await;
    bench.quiet().await;
    deliver(&bench, 1);
    assert_eq!(text(&process.end(&other).await.job), "because");
}

/// B15: a failed attempt is logged, and so is (C4) a report that is shorter than its effort asks for.
#[tokio::test(start_paused = true)]
async fn a_failed_try_and_a_short_report_are_logged() {
    let log = Overheard::start();
    let bench = Bench::new();
    let process = bench.process().await;
    let request =
        json!({"messages": [{"role": "user", "content": "why"}], "effort": "high"}).into();
    let conversation = Some(ConversationId::new("c"));
    let id = process.start(NewJob { request, conversation, ..research() }).await;
    bench.quiet().await;
    bench.provider.act(1, Act::Fail(ProviderErrorKind::RunFailed));
    bench.until(|| bench.provider.keys().len() == 2).await;
    assert_eq!(log.lines_with("Job failed").len(), 1);
    bench.quiet().await;
    deliver(&bench, 2);
    process.end(&id).await;
    bench.quiet().await;
    assert_eq!(log.lines_with("shorter than was asked for").len(), 1);
}
