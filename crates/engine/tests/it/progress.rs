//! The progress and the text of a running job.

use std::sync::Arc;

use outlast_core::Progress;
use outlast_engine::Options;
use outlast_testkit::scripted::Act;
use tokio::sync::Notify;

use crate::bench::{Bench, deliver, millis, remote_run, text};
use crate::moody::{Method, Mood};

/// The time after which the first progress of a run is written.
const FIRST_WORD: std::time::Duration = millis(60);

fn at(percent: u8) -> Option<Progress> {
    Some(Progress { percent: Some(percent), message: format!("at {percent}") })
}

/// B6: the first progress is shown after a moment, then one per 250 ms, and the latest one wins.
#[tokio::test(start_paused = true)]
async fn progress_is_written_at_most_every_250_ms_and_the_last_word_wins() {
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    for percent in 1..=100 {
        bench.provider.act(1, Act::Progress(percent));
        tokio::time::sleep(millis(7)).await;
        match percent {
            5 => assert_eq!(bench.job(&id).await.progress, None, "not in the first 50 ms"),
            10 => assert!(bench.job(&id).await.progress.is_some(), "the first word, soon after"),
            _ => {}
        }
    }
    tokio::time::sleep(millis(260)).await;
    assert_eq!(bench.job(&id).await.progress, at(100));
    let notes = bench.store.calls(Method::Note);
    assert!(notes.len() <= 5, "{} notes in 960 ms", notes.len());
    for pair in notes.windows(2) {
        assert!(pair[1] - pair[0] >= millis(250), "{:?}", pair[1] - pair[0]);
    }
}

/// B6: a worker of many jobs writes the progress of each less often.
#[tokio::test(start_paused = true)]
async fn a_worker_of_many_jobs_writes_less_often() {
    let bench = Bench::new();
    let process = bench.process_with(Options { concurrency: 200, ..Options::default() }).await;
    for run in 1..=200 {
        process.under_way(&bench, run).await;
    }
    for percent in 1..=100 {
        bench.provider.act(1, Act::Progress(percent));
        tokio::time::sleep(millis(20)).await;
    }
    let notes = bench.store.calls(Method::Note);
    assert!(notes.len() > 2);
    for pair in notes.windows(2) {
        assert!(pair[1] - pair[0] >= millis(400), "{:?}", pair[1] - pair[0]);
    }
}

/// Progress may be lost; the run may not.
#[tokio::test(start_paused = true)]
async fn progress_that_cannot_be_written_harms_nothing() {
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    bench.store.next(Method::Note, [Mood::Full]);
    bench.provider.act(1, Act::Progress(10));
    tokio::time::sleep(FIRST_WORD).await;
    assert_eq!(bench.job(&id).await.progress, None);
    bench.provider.act(1, Act::Progress(20));
    tokio::time::sleep(millis(260)).await;
    assert_eq!(bench.job(&id).await.progress, at(20));
    deliver(&bench, 1);
    assert_eq!(text(&process.end(&id).await.job), "because");
}

/// B6: a new attempt starts without progress.
#[tokio::test(start_paused = true)]
async fn a_released_job_shows_no_progress() {
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    bench.provider.act(1, Act::Progress(60));
    tokio::time::sleep(FIRST_WORD).await;
    assert_eq!(bench.job(&id).await.progress, at(60));
    process.leave().await;
    assert_eq!(bench.job(&id).await.progress, None);
}

/// The position in a stream is recorded for the next worker.
#[tokio::test(start_paused = true)]
async fn a_run_that_moved_is_recorded() {
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    bench.provider.act(1, Act::Moved("event 7"));
    bench.quiet().await;
    assert_eq!(remote_run(&bench.job(&id).await).cursor.as_deref(), Some("event 7"));
    deliver(&bench, 1);
    assert_eq!(text(&process.end(&id).await.job), "because");
}

/// G4: after a run reported that it moved, its next step waits until that is recorded, because that step may cost
/// money.
#[tokio::test(start_paused = true)]
async fn g4_a_run_that_moved_is_not_asked_again_before_that_is_on_record() {
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    let writing = Arc::new(Notify::new());
    bench.store.next(Method::Checkpoint, [Mood::Unavailable, Mood::After(writing.clone())]);
    bench.provider.act(1, Act::Moved("sending"));
    bench.provider.act(1, Act::Progress(60));
    // Beginning, the run, and the two attempts to record that it moved.
    bench.until(|| bench.store.calls(Method::Checkpoint).len() == 4).await;
    bench.quiet().await;
    let job = bench.job(&id).await;
    assert_eq!((remote_run(&job).cursor.as_deref(), job.progress.clone()), (None, None));
    writing.notify_one();
    tokio::time::sleep(FIRST_WORD).await;
    let job = bench.job(&id).await;
    assert_eq!(
        (remote_run(&job).cursor.as_deref(), job.progress.clone()),
        (Some("sending"), at(60))
    );
    deliver(&bench, 1);
    assert_eq!(text(&process.end(&id).await.job), "because");
}

/// B6: the last progress before the end is written, however soon the end follows.
#[tokio::test(start_paused = true)]
async fn b6_the_last_progress_is_written_before_the_end() {
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    bench.provider.act(1, Act::Progress(25));
    tokio::time::sleep(FIRST_WORD).await;
    let before = bench.store.calls(Method::Note).len();
    bench.provider.act(1, Act::Progress(75));
    deliver(&bench, 1);
    assert_eq!(text(&process.end(&id).await.job), "because");
    assert_eq!(bench.store.calls(Method::Note).len(), before + 1);
}

/// For a run that ends at once, only its end is written.
#[tokio::test(start_paused = true)]
async fn a_run_that_ends_at_once_leaves_no_progress() {
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    bench.provider.act(1, Act::Progress(75));
    deliver(&bench, 1);
    assert_eq!(text(&process.end(&id).await.job), "because");
    assert_eq!(bench.store.calls(Method::Note).len(), 0);
}
