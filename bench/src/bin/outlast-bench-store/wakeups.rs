//! The delay from the acknowledgement of a job's end until another store sees it. The other store has its own
//! connections, session and thread, as another process has.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use outlast_core::{ChangeWait, JobId, Store};
use outlast_testkit::postgres;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::beside_others::open;
use crate::callers::{self, Commits, Work};

/// The store that is measured.
#[derive(Clone)]
pub(crate) enum Kind {
    Postgres(String),
    Sqlite(PathBuf),
}

impl Kind {
    async fn open(&self) -> Arc<dyn Store> {
        match self {
            Self::Postgres(url) => Arc::new(open(url).await),
            Self::Sqlite(path) => crate::open(path),
        }
    }
}

/// The wait for changes that a server uses while a caller waits.
const LOOK: ChangeWait =
    ChangeWait { at_most: Duration::from_secs(5), look_every: Duration::from_millis(25) };

/// Lets each writer, in a separate process, end this number of jobs as fast as it can; returns the delays of all of
/// them.
pub(crate) async fn measure(work: Work, kind: Kind) -> Vec<Duration> {
    let first = kind.open().await;
    work.insert(&first, Commits::Shared).await;
    if let Kind::Postgres(url) = &kind {
        postgres::connect(url).await.batch_execute("vacuum analyze").await.unwrap();
    }
    let (ready, is_ready) = oneshot::channel();
    let watched = kind.clone();
    let jobs = work.jobs();
    let watcher = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(watch(watched.open(), ready, jobs))
    });
    is_ready.await.unwrap();
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..work.callers {
        let store = kind.open().await;
        writers.spawn(async move {
            let mut acknowledged = Vec::new();
            let name = format!("writer-{writer}");
            while let Some(job) = callers::settle_one(&*store, &name).await {
                acknowledged.push((job, Instant::now()));
            }
            acknowledged
        });
    }
    let acknowledged = writers.join_all().await.concat();
    let seen = watcher.join().unwrap();
    acknowledged.iter().map(|(job, at)| seen[job].saturating_duration_since(*at)).collect()
}

/// Returns the time at which each end was seen, after all have been.
async fn watch(
    store: impl Future<Output = Arc<dyn Store>>,
    ready: oneshot::Sender<()>,
    jobs: usize,
) -> HashMap<JobId, Instant> {
    let store = store.await;
    let mut rev = store.rev().await.unwrap();
    ready.send(()).unwrap();
    let mut seen = HashMap::new();
    while seen.len() < jobs {
        let changes = store.changes(rev, LOOK).await.unwrap();
        let now = Instant::now();
        rev = changes.rev;
        for change in changes.jobs.iter().filter(|change| change.state.is_terminal()) {
            let before = seen.insert(change.id, now);
            assert!(before.is_none(), "an end was reported twice");
        }
    }
    seen
}

/// The delays of all rounds.
#[derive(Default)]
pub(crate) struct Delays(Vec<Duration>);

impl Delays {
    pub(crate) fn add(&mut self, delays: Vec<Duration>) {
        self.0.extend(delays);
    }

    pub(crate) fn print(mut self, name: &str) {
        self.0.sort();
        let last = self.0.len().saturating_sub(1) as f64;
        let at = |share: f64| {
            self.0
                .get((last * share).round() as usize)
                .map_or(f64::NAN, |at| at.as_secs_f64() * 1e3)
        };
        println!("| {name} | {:.1} ms | {:.1} ms | {:.1} ms |", at(0.5), at(0.99), at(1.0));
    }
}
