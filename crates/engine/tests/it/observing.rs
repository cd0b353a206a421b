//! Observers of the engine's writes: they are notified of each write, and one that fails loses nothing.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use outlast_core::{FollowUp, Observer, StoreEvent};
use outlast_engine::{Observers, Options};

use crate::bench::{Bench, deliver, research, text};
use crate::moody::{Method, Mood};
use crate::overheard::Overheard;

#[derive(Default)]
struct Recorder(Mutex<Vec<&'static str>>);

impl Observer for Recorder {
    fn observe<'a>(&'a self, event: &StoreEvent<'a>) -> Option<FollowUp<'a>> {
        self.0.lock().unwrap().push(match event {
            StoreEvent::Inserted(_) => "inserted",
            StoreEvent::Claimed { .. } => "claimed",
            StoreEvent::Taken(_) => "taken",
            StoreEvent::Renewed { .. } => "renewed",
            StoreEvent::Checkpointed => "checkpointed",
            StoreEvent::Noted => "noted",
            StoreEvent::Settled { .. } => "settled",
            StoreEvent::Cancelled(_) => "cancelled",
            StoreEvent::Asked { .. } => "asked",
            StoreEvent::Answered(_) => "answered",
            StoreEvent::StopRecorded => "stop recorded",
            StoreEvent::Deleting { .. } => "deleting",
            StoreEvent::Deleted { .. } => "deleted",
            StoreEvent::WriteFailed(_) => "failed",
        });
        None
    }
}

/// An observer that panics at once, or in the work that follows.
struct Broken {
    later: bool,
}

impl Observer for Broken {
    fn observe<'a>(&'a self, _: &StoreEvent<'a>) -> Option<FollowUp<'a>> {
        assert!(self.later, "the observer is broken");
        Some(async { panic!("the observer is broken") }.boxed())
    }
}

fn observed_by(observers: Vec<Arc<dyn Observer>>) -> Options {
    let mut all = Observers::default();
    observers.into_iter().for_each(|observer| all.add(observer));
    Options { observers: all, ..Options::default() }
}

#[tokio::test(start_paused = true)]
async fn observers_are_notified_of_each_write_and_of_each_failure() {
    let bench = Bench::new();
    let recorder = Arc::new(Recorder::default());
    let process = bench.process_with(observed_by(vec![recorder.clone()])).await;
    let id = process.start(research()).await;
    bench.quiet().await;
    bench.store.next(Method::Settle, [Mood::Full]);
    deliver(&bench, 1);
    process.end(&id).await;
    let events = recorder.0.lock().unwrap().clone();
    let expected = ["inserted", "claimed", "checkpointed", "checkpointed", "failed", "settled"];
    assert_eq!(events, expected);
}

/// An observer that fails loses no job, and no wake-up of a caller in this process.
#[tokio::test(start_paused = true)]
async fn an_observer_that_panics_loses_no_job_and_no_wakeup() {
    for later in [false, true] {
        let log = Overheard::start();
        let bench = Bench::new();
        let recorder = Arc::new(Recorder::default());
        let observers: Vec<Arc<dyn Observer>> = vec![Arc::new(Broken { later }), recorder.clone()];
        let process = bench.process_with(observed_by(observers)).await;
        let id = process.start(research()).await;
        bench.quiet().await;
        deliver(&bench, 1);
        assert_eq!(text(&process.end(&id).await.job), "because", "later: {later}");
        assert!(!log.lines_with("an observer of the store panicked").is_empty());
        assert!(recorder.0.lock().unwrap().contains(&"settled"), "the next one is notified");
    }
}
