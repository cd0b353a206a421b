//! A cancel: terminal at once, the slot free, the remote run stopped, one outcome.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{
    BeginError, CancelOutcome, Cost, JobId, NanoUsd, OwnerId, ProviderErrorKind, RecoverySemantics,
    RemoteStop, ResendPolicy, ResumePolicy, Scope, StateKind, StopOutcome,
};
use outlast_engine::Options;
use outlast_testkit::scripted::{Act, Answer, Begin, Scripted, error};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::bench::{Bench, deliver, remote_run, remote_stop, research, seconds, text};
use crate::moody::{Method, Mood};

fn one_at_a_time() -> Options {
    Options { concurrency: 1, ..Options::default() }
}

/// A3.
#[tokio::test(start_paused = true)]
async fn a_cancelled_queued_job_is_never_begun() {
    let bench = Bench::new();
    let process = bench.process_with(one_at_a_time()).await;
    process.under_way(&bench, 1).await;
    let queued = process.start(research()).await;
    let CancelOutcome::Now(job) = process.cancel(&queued).await else { panic!("it was queued") };
    assert_eq!(remote_stop(&job), RemoteStop::NotNeeded);
    deliver(&bench, 1);
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(bench.provider.keys().len(), 1);
    assert!(bench.provider.stops().is_empty());
}

/// A3: the slot is free when the call returns, the run is stopped, and its later output is void.
#[tokio::test(start_paused = true)]
async fn a_cancelled_running_job_frees_its_slot_at_once_and_its_run_is_stopped() {
    let bench = Bench::new();
    let process = bench.process_with(one_at_a_time()).await;
    let id = process.under_way(&bench, 1).await;
    let next = process.start(research()).await;
    let poll = process.parked_poll(&bench, id, seconds(45)).await;
    let asked = Instant::now();
    let CancelOutcome::Now(job) = process.cancel(&id).await else { panic!("it was running") };
    assert_eq!(remote_stop(&job), RemoteStop::Owed);
    let (reading, answered) = poll.await.unwrap();
    assert_eq!(reading.unwrap().job.state.kind(), StateKind::Cancelled);
    assert_eq!(answered, asked, "the waiting caller is notified at once");
    bench.at_once(|| bench.provider.keys().len() == 2 && !bench.provider.stops().is_empty()).await;
    assert_eq!(asked.elapsed(), Duration::ZERO, "the next job is begun and the old run stopped");
    deliver(&bench, 1);
    bench.quiet().await;
    assert_eq!(remote_stop(&bench.job(&id).await), RemoteStop::Ended);
    assert_eq!(bench.provider.stops(), ["run-1"]);
    deliver(&bench, 2);
    assert_eq!(text(&process.end(&next).await.job), "because");
}

/// A3, design "cancel": a request on its way is still completed after a cancel, and the resulting run is stopped.
#[tokio::test(start_paused = true)]
async fn a_cancel_during_begin_waits_for_the_run_and_stops_it() {
    let bench = Bench::new();
    let process = bench.process().await;
    let answer = Arc::new(Notify::new());
    bench.provider.next_begins([Begin::RunAfter(answer.clone())]);
    let id = process.start(research()).await;
    bench.quiet().await;
    let CancelOutcome::Now(job) = process.cancel(&id).await else { panic!("it was running") };
    assert_eq!(remote_stop(&job), RemoteStop::MaybeBegun, "no run is known yet");
    let reported = job.stop_text().unwrap();
    assert!(reported.contains("may have been begun and paid for"), "{reported}");
    tokio::time::sleep(seconds(40)).await;
    assert_eq!(bench.provider.begins_dropped(), 0);
    assert!(bench.provider.stops().is_empty());
    answer.notify_one();
    bench.quiet().await;
    assert_eq!(bench.provider.stops(), ["run-1"]);
    let job = bench.job(&id).await;
    assert_eq!(remote_stop(&job), RemoteStop::Ended);
    assert_eq!(remote_run(&job).id, "run-1");
    assert_eq!(bench.provider.followers(), 0);
}

/// The same when the request was refused: there is nothing to stop, and the cancel remains.
#[tokio::test(start_paused = true)]
async fn a_cancel_during_begin_is_kept_when_the_request_is_refused() {
    let bench = Bench::new();
    let process = bench.process().await;
    let hang = Arc::new(Notify::new());
    bench.store.next(Method::Settle, [Mood::After(hang.clone())]);
    bench
        .provider
        .next_begins([Begin::Fail(BeginError::Refused(error(ProviderErrorKind::Unreachable)))]);
    let id = process.start(research()).await;
    bench.quiet().await;
    process.cancel(&id).await;
    assert_eq!(remote_stop(&bench.job(&id).await), RemoteStop::MaybeBegun);
    hang.notify_one();
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(remote_stop(&bench.job(&id).await), RemoteStop::NotNeeded, "the doubt is cleared");
    assert!(bench.provider.stops().is_empty());
}

/// A3: a kill between the cancel and the provider's answer leaves the doubt on record, not a plain "Cancelled".
#[tokio::test(start_paused = true)]
async fn a3_a_process_that_dies_after_a_cancel_during_begin_leaves_the_doubt_on_record() {
    let bench = Bench::new();
    let process = bench.process().await;
    bench.provider.next_begins([Begin::RunAfter(Arc::new(Notify::new()))]);
    let id = process.start(research()).await;
    bench.quiet().await;
    process.cancel(&id).await;
    process.die().await;
    let _second = bench.process().await;
    tokio::time::sleep(seconds(120)).await;
    let job = bench.job(&id).await;
    assert_eq!(remote_stop(&job), RemoteStop::MaybeBegun);
    assert!(job.stop_text().unwrap().contains("could not be stopped"), "{:?}", job.stop_text());
    assert_eq!(bench.provider.keys().len(), 1, "nothing is sent again");
}

/// A3: if the provider has no cancel call, the answer does not state that it was asked.
#[tokio::test(start_paused = true)]
async fn a3_a_cancel_does_not_promise_a_stop_that_the_provider_cannot_make() {
    let semantics = RecoverySemantics {
        resend: ResendPolicy::WithKey,
        resume: ResumePolicy::Always,
        can_stop: false,
    };
    let bench = Bench::over(Scripted::with_semantics(semantics));
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    let CancelOutcome::Now(job) = process.cancel(&id).await else { panic!("it was running") };
    assert_eq!(remote_stop(&job), RemoteStop::GoesOn);
    assert!(job.stop_text().unwrap().contains("may still finish"), "{:?}", job.stop_text());
    bench.quiet().await;
    let job = bench.job(&id).await;
    assert_eq!(remote_stop(&job), RemoteStop::GoesOn);
    assert_eq!(job.run_left(), Some(remote_run(&job)), "another job can resume it");
    assert!(bench.provider.stops().is_empty(), "no worker tries without effect");
}

/// A3: while the request is on its way, there is no run yet, whether or not the provider can stop runs. The outcome
/// is recorded once it is known.
#[tokio::test(start_paused = true)]
async fn a3_a_cancel_during_begin_does_not_say_that_a_run_cannot_be_stopped() {
    let semantics = RecoverySemantics {
        resend: ResendPolicy::WithKey,
        resume: ResumePolicy::Always,
        can_stop: false,
    };
    let bench = Bench::over(Scripted::with_semantics(semantics));
    let process = bench.process().await;
    let answer = Arc::new(Notify::new());
    bench.provider.next_begins([Begin::RunAfter(answer.clone())]);
    let id = process.start(research()).await;
    bench.quiet().await;
    let CancelOutcome::Now(job) = process.cancel(&id).await else { panic!("it was running") };
    assert_eq!(remote_stop(&job), RemoteStop::MaybeBegun);
    assert!(job.stop_text().unwrap().contains("where the provider can stop runs"));
    answer.notify_one();
    bench.quiet().await;
    assert_eq!(remote_stop(&bench.job(&id).await), RemoteStop::GoesOn);
}

/// E14, A3: a pending stop is not lost if the store cannot write it at first.
#[tokio::test(start_paused = true)]
async fn a_run_found_after_a_cancel_has_a_pending_stop_even_if_the_store_fails_for_a_while() {
    let bench = Bench::new();
    let process = bench.process().await;
    let answer = Arc::new(Notify::new());
    bench.provider.next_begins([Begin::RunAfter(answer.clone())]);
    let id = process.start(research()).await;
    bench.quiet().await;
    process.cancel(&id).await;
    bench.store.next(Method::Owe, [Mood::Unavailable, Mood::Full, Mood::Unavailable]);
    answer.notify_one();
    tokio::time::sleep(seconds(30)).await;
    assert_eq!(bench.provider.stops(), ["run-1"]);
    assert_eq!(remote_stop(&bench.job(&id).await), RemoteStop::Ended);
}

/// A3: a stop that fails is repeated, and one that hangs delays no other.
#[tokio::test(start_paused = true)]
async fn a_stop_that_fails_is_repeated_and_holds_up_no_other() {
    let bench = Bench::new();
    let process = bench.process().await;
    let failing = process.under_way(&bench, 1).await;
    let hanging = process.under_way(&bench, 2).await;
    let plain = process.under_way(&bench, 3).await;
    bench.provider.next_stops([Answer::Fail(ProviderErrorKind::Unreachable), Answer::Never]);
    process.cancel(&failing).await;
    bench.quiet().await;
    process.cancel(&hanging).await;
    process.cancel(&plain).await;
    tokio::time::sleep(seconds(120)).await;
    for id in [failing, hanging, plain] {
        assert_eq!(remote_stop(&bench.job(&id).await), RemoteStop::Ended);
    }
}

/// A3: a stop that the provider refuses for good is not repeated, and the worker stops looking once all stops are
/// done.
#[tokio::test(start_paused = true)]
async fn a_stop_that_is_refused_for_good_is_recorded_and_tried_once() {
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    bench.provider.next_stops([Answer::Fail(ProviderErrorKind::Unauthorized)]);
    process.cancel(&id).await;
    bench.quiet().await;
    assert_eq!(remote_stop(&bench.job(&id).await), RemoteStop::Unsupported);
    let looks = bench.store.calls(Method::OwedStops).len();
    tokio::time::sleep(seconds(120)).await;
    assert_eq!(bench.provider.stops().len(), 1);
    assert_eq!(bench.store.calls(Method::OwedStops).len(), looks);
}

/// A3: a run that the provider does not stop is tried a few times. It is then reported to continue, and never to have
/// been stopped.
#[tokio::test(start_paused = true)]
async fn a3_a_run_that_is_seen_at_work_after_its_cancel_goes_on() {
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    bench.provider.next_stops((0..9).map(|_| Answer::Stopped(StopOutcome::StillRunning)));
    process.cancel(&id).await;
    bench.quiet().await;
    assert_eq!(remote_stop(&bench.job(&id).await), RemoteStop::Owed, "worth another try");
    tokio::time::sleep(seconds(120)).await;
    let job = bench.job(&id).await;
    assert_eq!(remote_stop(&job), RemoteStop::GoesOn);
    assert_eq!(bench.provider.stops().len(), 5, "bounded");
    assert!(job.stop_text().unwrap().contains("goes on and may still finish"));
    assert!(job.run_left().is_some());
}

/// A3: a run that had completed leaves its report to be fetched, and its cost on record.
#[tokio::test(start_paused = true)]
async fn a3_a_run_that_completed_before_its_cancel_can_be_fetched() {
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    let cost = Cost::Reported(NanoUsd(410_000_000));
    let completed = StopOutcome::Completed { cost };
    bench
        .provider
        .next_stops([Answer::Stopped(StopOutcome::StillRunning), Answer::Stopped(completed)]);
    process.cancel(&id).await;
    tokio::time::sleep(seconds(10)).await;
    let job = bench.job(&id).await;
    assert_eq!(job.state.kind(), StateKind::Cancelled, "it stays cancelled");
    assert_eq!(remote_stop(&job), RemoteStop::Completed);
    let reported = job.stop_text().unwrap();
    assert!(reported.contains("$0.4100") && reported.contains("fetches its report"), "{reported}");
    let retried = process
        .engine
        .start_after(&job, job.new.clone(), None, outlast_core::Resend::Refuse)
        .await
        .unwrap()
        .job;
    deliver(&bench, 1);
    assert_eq!(text(&process.end(&retried.id).await.job), "because");
    assert_eq!(bench.provider.keys().len(), 1, "nothing was sent");
}

/// A3: a retry that cannot wait for a worker settles the stop itself.
#[tokio::test(start_paused = true)]
async fn a3_a_stop_can_be_settled_without_a_worker() {
    let bench = Bench::new();
    let first = bench.process().await;
    let id = first.under_way(&bench, 1).await;
    first.die().await;
    let face = bench.process_without_worker().await;
    face.cancel(&id).await;
    bench.provider.next_stops([
        Answer::Fail(ProviderErrorKind::Unreachable),
        Answer::Stopped(StopOutcome::StillRunning),
    ]);
    let job = face.engine.settle_stop(bench.job(&id).await).await.unwrap();
    assert_eq!(remote_stop(&job), RemoteStop::Owed, "nothing was seen");
    assert!(job.may_run_on(), "so nothing may be bought");
    let job = face.engine.settle_stop(job).await.unwrap();
    assert_eq!(remote_stop(&job), RemoteStop::GoesOn);
}

/// A3: a crash does not lose the pending stop.
#[tokio::test(start_paused = true)]
async fn a_stop_left_pending_by_a_dead_process_is_done_by_the_next() {
    let bench = Bench::new();
    let first = bench.process().await;
    let id = first.under_way(&bench, 1).await;
    first.die().await;
    let face = bench.process_without_worker().await;
    face.cancel(&id).await;
    bench.quiet().await;
    assert_eq!(remote_stop(&bench.job(&id).await), RemoteStop::Owed);
    let _second = bench.process().await;
    bench.quiet().await;
    assert_eq!(remote_stop(&bench.job(&id).await), RemoteStop::Ended);
}

/// Promise 3: the first commit decides, and there is one outcome.
#[tokio::test(start_paused = true)]
async fn a_cancel_that_races_completion_gives_exactly_one_outcome() {
    for completion_first in [true, false] {
        let bench = Bench::new();
        let process = bench.process().await;
        let id = process.under_way(&bench, 1).await;
        let hang = Arc::new(Notify::new());
        if !completion_first {
            bench.store.next(Method::Settle, [Mood::After(hang.clone())]);
        }
        deliver(&bench, 1);
        bench.quiet().await;
        let cancelled = process.cancel(&id).await;
        hang.notify_one();
        tokio::time::sleep(seconds(60)).await;
        let job = bench.job(&id).await;
        match cancelled {
            CancelOutcome::Already(finished) => {
                assert!(completion_first);
                assert_eq!(text(&finished), "because");
                assert_eq!(job, finished);
                assert!(bench.provider.stops().is_empty());
            }
            CancelOutcome::Now(_) => {
                assert!(!completion_first);
                assert_eq!(job.state.kind(), StateKind::Cancelled);
                assert_eq!(bench.provider.stops(), ["run-1"]);
            }
        }
        assert_eq!(bench.provider.keys().len(), 1);
    }
}

/// A3: a job that is being resumed frees its slot too.
#[tokio::test(start_paused = true)]
async fn a_cancel_during_resume_frees_the_slot_at_once() {
    let bench = Bench::new();
    let process = bench.process_with(one_at_a_time()).await;
    let id = process.under_way(&bench, 1).await;
    bench.provider.next_resumes([Answer::Never]);
    bench.provider.act(1, Act::Fail(ProviderErrorKind::Unreachable));
    tokio::time::sleep(seconds(5)).await;
    assert_eq!(bench.provider.resumes(), 1);
    process.start(research()).await;
    process.cancel(&id).await;
    bench.quiet().await;
    assert_eq!(bench.provider.keys().len(), 2);
}

/// A3: unknown and foreign are the same.
#[tokio::test(start_paused = true)]
async fn a_cancel_of_an_unknown_or_foreign_job_finds_nothing() {
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    let unknown: JobId = "0f8fad5bd9cb469fa16570867728950e".parse().unwrap();
    let bob = Scope::Owner(OwnerId::new("bob"));
    assert!(process.engine.cancel(&bob, &id).await.unwrap().is_none());
    assert!(process.engine.cancel(&Scope::Operator, &unknown).await.unwrap().is_none());
    assert_eq!(bench.kind(&id).await, StateKind::Running);
}
