//! Held calls (promise 2): the same call is the same job, also for a while after its end.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use outlast_core::{
    Checkpoint, HeldAnswer, JobId, Key, NewJob, OwnerId, Profile, Scope, StateKind, Visibility,
};
use outlast_engine::{Options, StartOutcome, WorkerRole};
use outlast_testkit::scripted::Begin;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::bench::{Bench, LEASE, LONG, Process, deliver, owner, research, seconds, text};
use crate::moody::{Method, Mood};

const INPUT: [u8; 32] = [7; 32];

fn held() -> NewJob {
    NewJob { visibility: Visibility::Unpromised, ..research() }
}

async fn hold(process: &Process) -> (JobId, bool) {
    let started =
        process.engine.start_held(held(), Key::for_held_call("workflow", INPUT)).await.unwrap();
    assert_eq!(started.replay, None, "a workflow's outcome is reported to one call");
    (started.job.id, started.existed)
}

async fn ask(process: &Process, answer: HeldAnswer) -> StartOutcome {
    process.engine.start_held(held(), Key::research("research", INPUT, answer)).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn two_identical_held_calls_at_once_share_one_job() {
    let bench = Bench::new();
    let process = bench.process().await;
    let ((first, _), (second, _)) = tokio::join!(hold(&process), hold(&process));
    assert_eq!(first, second);
    bench.quiet().await;
    assert_eq!(bench.provider.keys().len(), 1, "bought once");
}

#[tokio::test(start_paused = true)]
async fn a_repeated_call_attaches_and_receives_the_result_once() {
    let bench = Bench::new();
    let process = bench.process().await;
    let (id, _) = hold(&process).await;
    bench.quiet().await;
    assert_eq!(hold(&process).await, (id, true), "while it runs");
    deliver(&bench, 1);
    process.end(&id).await;
    tokio::time::sleep(seconds(29 * 60)).await;
    assert_eq!(hold(&process).await, (id, true), "after its end, while no call was answered");
    assert_eq!(text(&process.end(&id).await.job), "because");
    process.engine.record_answer(&id).await.unwrap();
    let (other, existed) = hold(&process).await;
    assert!(other != id && !existed, "answered: the same call is a new one");
    bench.quiet().await;
    deliver(&bench, 2);
    process.end(&other).await;
    process.engine.record_answer_soon(&other);
    assert!(!hold(&process).await.1, "it is recorded before what is asked later");
}

/// Promise 2: a report is replayed for ten minutes after its end, a quick answer for one, and the caller learns this.
#[tokio::test(start_paused = true)]
async fn research_is_replayed_for_a_while_after_an_answer() {
    for (answer, span) in [(HeldAnswer::Report, 600), (HeldAnswer::Quick, 60)] {
        let bench = Bench::new();
        let process = bench.process().await;
        let id = ask(&process, answer).await.job.id;
        bench.quiet().await;
        deliver(&bench, 1);
        let ended_at = process.end(&id).await.job.ended_at().unwrap();
        let unanswered = ask(&process, answer).await;
        assert_eq!((unanswered.job.id, unanswered.replay), (id, None));
        process.engine.record_answer(&id).await.unwrap();
        tokio::time::sleep(seconds(span - 1)).await;
        let again = ask(&process, answer).await;
        let repeat = again.replay.expect("a call was answered with it");
        assert_eq!((again.job.id, repeat.ended_at), (id, ended_at));
        assert_eq!(repeat.until, ended_at.after(seconds(span)));
        tokio::time::sleep(seconds(1)).await;
        let anew = ask(&process, answer).await;
        assert!(anew.job.id != id && anew.replay.is_none(), "its time is over");
    }
}

#[tokio::test(start_paused = true)]
async fn an_outcome_no_call_was_answered_with_is_held_for_half_an_hour() {
    let bench = Bench::new();
    let process = bench.process().await;
    let (id, _) = hold(&process).await;
    bench.quiet().await;
    deliver(&bench, 1);
    process.end(&id).await;
    tokio::time::sleep(seconds(30 * 60)).await;
    assert_ne!(hold(&process).await.0, id);
}

#[tokio::test(start_paused = true)]
async fn a_call_after_a_cancel_is_a_new_one() {
    let bench = Bench::new();
    let process = bench.process().await;
    let (id, _) = hold(&process).await;
    process.cancel(&id).await;
    assert_ne!(hold(&process).await.0, id);
}

#[tokio::test(start_paused = true)]
async fn another_owner_tool_or_input_is_another_call() {
    let bench = Bench::new();
    let process = bench.process().await;
    let (id, _) = hold(&process).await;
    let theirs = NewJob { owner: OwnerId::new("bob"), ..held() };
    let others = [
        process.engine.start_held(theirs, Key::for_held_call("workflow", INPUT)).await,
        process.engine.start_held(held(), Key::for_held_call("other", INPUT)).await,
        process.engine.start_held(held(), Key::for_held_call("workflow", [8; 32])).await,
        process.engine.start(held(), None).await,
    ];
    for other in others {
        assert_ne!(other.unwrap().job.id, id);
    }
}

/// B1: the process that accepted a held call runs it, whether or not it claims jobs from the queue.
#[tokio::test(start_paused = true)]
async fn a_held_call_needs_no_background_worker() {
    let bench = Bench::new();
    let process = bench.process_that_takes(WorkerRole::HeldCallsOnly, Options::default()).await;
    let queued = process.start(research()).await;
    let (id, _) = hold(&process).await;
    bench.quiet().await;
    deliver(&bench, 1);
    assert_eq!(text(&process.end(&id).await.job), "because");
    assert_eq!(bench.kind(&queued).await, StateKind::Queued, "the queue is not its business");
}

/// B1: a held call does not count toward the concurrency of the queue.
#[tokio::test(start_paused = true)]
async fn a_held_call_does_not_wait_for_a_free_slot() {
    let bench = Bench::new();
    let process = bench.process_with(Options { concurrency: 1, ..Options::default() }).await;
    process.under_way(&bench, 1).await;
    let waiting = process.start(research()).await;
    let (id, _) = hold(&process).await;
    bench.quiet().await;
    assert_eq!(bench.kind(&id).await, StateKind::Running);
    assert_eq!(bench.kind(&waiting).await, StateKind::Queued);
    deliver(&bench, 2);
    process.end(&id).await;
    assert_eq!(bench.kind(&waiting).await, StateKind::Queued, "its end frees no slot of the queue");
}

/// B1: the next process resumes what a crashed process was holding, and it is bought once.
#[tokio::test(start_paused = true)]
async fn an_orphaned_held_call_is_resumed_by_the_next_process() {
    let bench = Bench::new();
    let process = bench.process_that_takes(WorkerRole::HeldCallsOnly, Options::default()).await;
    let (id, _) = hold(&process).await;
    bench.quiet().await;
    process.die().await;
    tokio::time::sleep(LEASE).await;
    let next = bench.process_that_takes(WorkerRole::HeldCallsOnly, Options::default()).await;
    bench.quiet().await;
    assert_eq!(bench.kind(&id).await, StateKind::Running);
    deliver(&bench, 1);
    assert_eq!(text(&next.end(&id).await.job), "because");
    assert_eq!(bench.provider.keys().len(), 1, "bought once");
}

/// B1: a process that is already running takes over as well, once the other is known to be dead.
#[tokio::test(start_paused = true)]
async fn an_orphaned_held_call_is_resumed_by_a_process_that_runs() {
    let bench = Bench::new();
    let first = bench.process_that_takes(WorkerRole::HeldCallsOnly, Options::default()).await;
    let second = bench.process().await;
    let (id, _) = hold(&first).await;
    bench.quiet().await;
    first.die().await;
    bench.until(|| bench.provider.resumes() == 1).await;
    deliver(&bench, 1);
    assert_eq!(text(&second.end(&id).await.job), "because");
}

/// A held call is created, claimed and recorded as about to be sent in one step.
#[tokio::test(start_paused = true)]
async fn a_held_call_has_a_worker_from_the_start() {
    let bench = Bench::new();
    let process = bench.process().await;
    bench.quiet().await;
    let (id, _) = hold(&process).await;
    let made = bench.job(&id).await;
    assert_eq!(made.state.kind(), StateKind::Running);
    bench.quiet().await;
    assert_eq!(bench.store.calls(Method::Checkpoint).len(), 1, "its run, and nothing before it");
    deliver(&bench, 1);
    assert_eq!(text(&process.end(&id).await.job), "because");
}

/// A7: if a caller disconnects while its call is being created, no held job is left without an attempt.
#[tokio::test(start_paused = true)]
async fn a_held_call_whose_caller_leaves_runs_all_the_same() {
    let bench = Bench::new();
    let process = bench.process().await;
    bench.quiet().await;
    let engine = process.engine.clone();
    let call =
        async move { engine.start_held(held(), Key::for_held_call("workflow", INPUT)).await };
    let mut call = Box::pin(call);
    assert!(call.as_mut().now_or_never().is_none(), "it is being made");
    drop(call);
    bench.quiet().await;
    let (id, existed) = hold(&process).await;
    assert!(existed);
    deliver(&bench, 1);
    assert_eq!(text(&process.end(&id).await.job), "because");
    assert_eq!(bench.provider.keys().len(), 1, "bought once");
}

/// B9a: a request that was recorded as about to be sent, but was not sent, is begun by the next process.
#[tokio::test(start_paused = true)]
async fn a_held_call_of_a_worker_that_leaves_is_released_as_not_begun() {
    let bench = Bench::new();
    let process = bench.process().await;
    bench.quiet().await;
    process.stop.ask();
    let (id, _) = hold(&process).await;
    process.leave().await;
    let job = bench.job(&id).await;
    assert_eq!((job.state.kind(), &job.checkpoint), (StateKind::Queued, &Checkpoint::NotBegun));
    let next = bench.process().await;
    bench.quiet().await;
    deliver(&bench, 1);
    assert_eq!(text(&next.end(&id).await.job), "because");
    assert_eq!(bench.provider.keys().len(), 1, "bought once");
}

/// The same for a call that is made while its worker is shutting down but still busy with another request.
#[tokio::test(start_paused = true)]
async fn a_held_call_made_while_its_worker_leaves_is_released() {
    let bench = Bench::new();
    let process = bench.process().await;
    bench.quiet().await;
    let (answer, inserting) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    bench.provider.next_begins([Begin::RunAfter(answer.clone())]);
    process.start(research()).await;
    bench.quiet().await;
    bench.store.next(Method::Insert, [Mood::After(inserting.clone())]);
    let engine = process.engine.clone();
    let call = tokio::spawn(async move {
        engine.start_held(held(), Key::for_held_call("workflow", INPUT)).await.unwrap().job.id
    });
    bench.quiet().await;
    process.stop.ask();
    bench.quiet().await;
    inserting.notify_one();
    let id = call.await.unwrap();
    bench.quiet().await;
    let job = bench.job(&id).await;
    assert_eq!((job.state.kind(), &job.checkpoint), (StateKind::Queued, &Checkpoint::NotBegun));
    answer.notify_one();
    process.leave().await;
}

/// And for a call that was handed to a worker which was asked to shut down before it looked.
#[tokio::test(start_paused = true)]
async fn a_held_call_that_its_worker_did_not_come_to_is_released() {
    let bench = Bench::new();
    let process = bench.process().await;
    bench.quiet().await;
    let claiming = Arc::new(Notify::new());
    bench.store.next(Method::Claim, [Mood::After(claiming.clone())]);
    process.start(research()).await;
    bench.quiet().await;
    let (id, _) = hold(&process).await;
    assert_eq!(bench.kind(&id).await, StateKind::Running);
    process.stop.ask();
    claiming.notify_one();
    process.leave().await;
    let job = bench.job(&id).await;
    assert_eq!((job.state.kind(), &job.checkpoint), (StateKind::Queued, &Checkpoint::NotBegun));
    assert!(bench.provider.keys().is_empty());
}

/// The caller of a held call that this process runs costs no read. Another owner is answered at once, not when it
/// ends.
#[tokio::test(start_paused = true)]
async fn the_caller_of_a_held_call_waits_without_a_read_and_a_stranger_does_not_wait() {
    let bench = Bench::new();
    let process = bench.process().await;
    bench.quiet().await;
    let (id, _) = hold(&process).await;
    let engine = process.engine.clone();
    let reads = || bench.store.calls(Method::Job).len();
    let before = reads();
    let caller = tokio::spawn(async move { engine.poll_own(&owner(), &id, LONG).await.unwrap() });
    bench.quiet().await;
    assert_eq!(reads(), before);
    let (stranger, since) = (Scope::Owner(OwnerId::new("bob")), Instant::now());
    assert!(process.engine.poll(&stranger, &id, LONG).await.unwrap().is_none());
    assert_eq!(since.elapsed(), Duration::ZERO);
    let before = reads();
    deliver(&bench, 1);
    assert_eq!(text(&caller.await.unwrap().unwrap().job), "because");
    assert_eq!(reads(), before, "the attempt reports its end");
}

/// The store is asked for dead workers only when another call attaches to a running held call.
#[tokio::test(start_paused = true)]
async fn dead_workers_are_looked_for_when_a_call_attaches_to_one_that_runs() {
    let bench = Bench::new();
    let process = bench.process().await;
    bench.quiet().await;
    let looks = || bench.store.calls(Method::Rescue).len();
    let before = looks();
    let (id, _) = hold(&process).await;
    assert_eq!(looks(), before, "it was made and taken in one step");
    bench.quiet().await;
    assert_eq!(hold(&process).await, (id, true));
    assert_eq!(looks(), before + 1);
    bench.quiet().await;
    assert_eq!((bench.provider.keys().len(), bench.provider.resumes()), (1, 0), "one try");
    deliver(&bench, 1);
    process.end(&id).await;
    let before = looks();
    assert_eq!(hold(&process).await, (id, true));
    assert_eq!(looks(), before, "it has ended");
}

/// A job that waits in the queue, or whose provider belongs to another process, is not run from the start.
#[tokio::test(start_paused = true)]
async fn only_a_held_call_of_an_own_provider_is_taken_as_it_is_made() {
    let bench = Bench::new();
    let process = bench.process().await;
    bench.quiet().await;
    let foreign = NewJob { profile: Profile::new("other"), ..held() };
    for (input, (new, state)) in (0..).zip([
        (held(), StateKind::Running),
        (research(), StateKind::Queued),
        (foreign, StateKind::Queued),
    ]) {
        let key = Key::for_held_call("workflow", [input; 32]);
        let started = process.engine.start_held(new, key).await.unwrap();
        assert_eq!(started.job.state.kind(), state, "{input}");
    }
}

/// A promised job that a caller waits for does not wait for a slot; one that a caller only polls does.
#[tokio::test(start_paused = true)]
async fn a_held_call_does_not_wait_in_the_queue() {
    let bench = Bench::new();
    let process = bench.process_with(Options { concurrency: 1, ..Options::default() }).await;
    bench.quiet().await;
    process.under_way(&bench, 1).await;
    let key = Key::for_held_call("workflow", INPUT);
    process.engine.start_held(research(), key).await.unwrap();
    bench.at_once(|| bench.provider.keys().len() == 2).await;

    let elsewhere = bench.process_without_worker().await;
    let promised = elsewhere.start(research()).await;
    process.engine.carry_if_held(&bench.job(&promised).await);
    bench.quiet().await;
    assert_eq!(bench.provider.keys().len(), 2);
    let unpromised = elsewhere.start(held()).await;
    process.engine.carry_if_held(&bench.job(&unpromised).await);
    bench.at_once(|| bench.provider.keys().len() == 3).await;
}
