//! A store that fails for a while: everything waits, then ends correctly, and nothing happens twice (E14, promise 6).

use std::sync::Arc;

use outlast_core::{
    NewJob, RecoverySemantics, RemoteStop, ResendPolicy, ResumePolicy, StateKind, Visibility,
};
use outlast_testkit::scripted::{Begin, Scripted};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::bench::{
    Bench, LEASE, deliver, millis, remote_stop, research, seconds, semantics_of, text,
};
use crate::moody::{Method, Mood};
use crate::overheard::Overheard;

fn provider_error() -> [Mood; 3] {
    [Mood::Full, Mood::Unavailable, Mood::Full]
}

/// E14: a claim that fails is logged and repeated.
#[tokio::test(start_paused = true)]
async fn a_worker_that_cannot_claim_tries_again() {
    let log = Overheard::start();
    let bench = Bench::new();
    bench.store.next(Method::Claim, provider_error());
    bench.store.next(Method::Rescue, provider_error());
    let process = bench.process().await;
    let id = process.start(research()).await;
    tokio::time::sleep(seconds(5)).await;
    assert!(!log.lines_with("failed to claim a job").is_empty());
    deliver(&bench, 1);
    assert_eq!(text(&process.end(&id).await.job), "because");
}

/// E14: a claim that fails next to one that finds no job is repeated too.
#[tokio::test(start_paused = true)]
async fn a_claim_that_fails_beside_another_is_tried_again() {
    let bench = Bench::new();
    let waiting = bench.process_without_worker().await;
    waiting.start(research()).await;
    // The first claim gets the job; of the two that follow, one fails and one finds no other job.
    bench.store.next(Method::Claim, [Mood::ready(), Mood::Unavailable]);
    let _process = bench.process().await;
    bench.quiet().await;
    assert_eq!(bench.store.calls(Method::Claim).len(), 3);
    tokio::time::sleep(seconds(1)).await;
    assert_eq!(bench.store.calls(Method::Claim).len(), 4);
}

/// E14: if a held call cannot be found or claimed, the next look follows after a second, not without a pause.
#[tokio::test(start_paused = true)]
async fn a_held_call_that_cannot_be_taken_is_tried_again_after_a_pause() {
    for method in [Method::Orphans, Method::Take] {
        let bench = Bench::new();
        let elsewhere = bench.process_without_worker().await;
        elsewhere.start(NewJob { visibility: Visibility::Unpromised, ..research() }).await;
        bench.store.next(method, [Mood::Unavailable]);
        let _process = bench.process().await;
        tokio::time::sleep(millis(900)).await;
        assert!(bench.provider.keys().is_empty(), "{method:?}");
        tokio::time::sleep(millis(200)).await;
        assert_eq!(bench.provider.keys().len(), 1, "{method:?}");
    }
}

/// Nothing is sent before its checkpoint is written.
#[tokio::test(start_paused = true)]
async fn a_request_is_not_sent_before_its_checkpoint_is_stored() {
    let bench = Bench::new();
    let process = bench.process().await;
    bench.store.next(Method::Checkpoint, provider_error());
    let id = process.start(research()).await;
    bench.quiet().await;
    assert!(bench.provider.keys().is_empty());
    tokio::time::sleep(seconds(10)).await;
    assert_eq!(bench.provider.keys().len(), 1);
    deliver(&bench, 1);
    assert_eq!(text(&process.end(&id).await.job), "because");
}

/// The id of a paid run is written as soon as the store can, and nothing is begun twice.
#[tokio::test(start_paused = true)]
async fn the_name_of_a_run_is_stored_as_soon_as_the_store_can() {
    let log = Overheard::start();
    let bench = Bench::new();
    let process = bench.process().await;
    let answer = Arc::new(Notify::new());
    bench.provider.next_begins([Begin::RunAfter(answer.clone())]);
    let id = process.start(research()).await;
    bench.quiet().await;
    bench.store.next(Method::Checkpoint, provider_error());
    answer.notify_one();
    tokio::time::sleep(seconds(10)).await;
    assert_eq!(bench.store.calls(Method::Checkpoint).len(), 5, "one, three that failed, one more");
    let heard = log.lines_with("a checkpoint is not stored");
    assert!(heard.iter().all(|line| line.contains(&id.to_string())), "{heard:?}");
    deliver(&bench, 1);
    assert_eq!(text(&process.end(&id).await.job), "because");
    assert_eq!(bench.provider.keys().len(), 1);
}

/// E14: a settlement that fails is logged with the job's id and repeated; the job ends once.
#[tokio::test(start_paused = true)]
async fn an_end_that_cannot_be_stored_is_stored_later_and_once() {
    let log = Overheard::start();
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    bench.store.next(Method::Settle, provider_error());
    deliver(&bench, 1);
    bench.quiet().await;
    assert_eq!(bench.kind(&id).await, StateKind::Running, "nothing is said before it is stored");
    let asked = Instant::now();
    let job = process.end(&id).await.job;
    assert_eq!(text(&job), "because");
    assert!(asked.elapsed() < seconds(5));
    let heard = log.lines_with("the end of a try is not stored");
    assert_eq!(heard.len(), 3);
    assert!(heard.iter().all(|line| line.contains(&id.to_string())));
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(bench.store.calls(Method::Settle).len(), 4);
    assert_eq!(bench.job(&id).await, job, "and never changes again");
}

/// E14: an end that was stored, but not confirmed to the worker, is not stored again.
#[tokio::test(start_paused = true)]
async fn an_end_whose_answer_was_lost_is_not_stored_twice() {
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    bench.store.next(Method::Settle, [Mood::AnswerLost]);
    deliver(&bench, 1);
    let job = process.end(&id).await.job;
    assert_eq!(text(&job), "because");
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(bench.job(&id).await, job);
}

/// A cancel that is stored while the end cannot be stored wins.
#[tokio::test(start_paused = true)]
async fn a_cancel_ends_the_attempt_to_store_an_end() {
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    bench.store.next(Method::Settle, (0..50).map(|_| Mood::Full));
    deliver(&bench, 1);
    tokio::time::sleep(seconds(3)).await;
    process.cancel(&id).await;
    bench.quiet().await;
    let tries = bench.store.calls(Method::Settle).len();
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(bench.store.calls(Method::Settle).len(), tries, "the attempt tries no more");
    assert_eq!(remote_stop(&bench.job(&id).await), RemoteStop::Ended);
}

/// Renewals that fail for less than a lease lose nothing.
#[tokio::test(start_paused = true)]
async fn leases_survive_a_store_that_cannot_renew_for_a_while() {
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    bench.store.next(Method::Renew, [Mood::Unavailable, Mood::Full]);
    tokio::time::sleep(seconds(100)).await;
    assert_eq!(bench.provider.resumes(), 0);
    deliver(&bench, 1);
    assert_eq!(text(&process.end(&id).await.job), "because");
}

/// Changes that cannot be read for a while are read later; no waiting caller is forgotten.
#[tokio::test(start_paused = true)]
async fn a_poll_is_answered_although_changes_could_not_be_read_for_a_while() {
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    bench.store.next(Method::Changes, provider_error());
    let poll = process.parked_poll(&bench, id, seconds(45)).await;
    let asked = Instant::now();
    deliver(&bench, 1);
    assert_eq!(text(&poll.await.unwrap().0.unwrap().job), "because");
    assert!(asked.elapsed() < seconds(3), "{:?}", asked.elapsed());
}

/// Pending stops are found although the store could not return them for a while.
#[tokio::test(start_paused = true)]
async fn pending_stops_are_done_although_they_could_not_be_read_for_a_while() {
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    bench.store.next(Method::OwedStops, provider_error());
    process.cancel(&id).await;
    tokio::time::sleep(seconds(30)).await;
    assert_eq!(remote_stop(&bench.job(&id).await), RemoteStop::Ended);
}

/// F3: a worker that cannot reach the store for the length of its lease ends what another worker may begin again, and
/// only that.
#[tokio::test(start_paused = true)]
async fn f3_what_could_run_twice_ends_with_a_lease_that_cannot_be_renewed() {
    let cases = [
        (semantics_of(ResendPolicy::Idempotent, ResumePolicy::Never), 0),
        (semantics_of(ResendPolicy::Never, ResumePolicy::Never), 0),
        (semantics_of(ResendPolicy::Never, ResumePolicy::Always), 1),
        // K2: nor what another worker may continue, step by step.
        (semantics_of(ResendPolicy::Idempotent, ResumePolicy::FromJournal), 0),
        (
            RecoverySemantics {
                can_stop: false,
                ..semantics_of(ResendPolicy::Never, ResumePolicy::Never)
            },
            1,
        ),
    ];
    for (semantics, followers) in cases {
        let bench = Bench::over(Scripted::with_semantics(semantics));
        let process = bench.process().await;
        process.under_way(&bench, 1).await;
        for method in [Method::Renew, Method::Rescue] {
            bench.store.next(method, std::iter::repeat_n(Mood::Unavailable, 1_000));
        }
        tokio::time::sleep(LEASE / 2).await;
        assert_eq!(bench.provider.followers(), 1, "the lease is still good");
        tokio::time::sleep(LEASE).await;
        assert_eq!(bench.provider.followers(), followers, "{semantics:?}");
    }
}
