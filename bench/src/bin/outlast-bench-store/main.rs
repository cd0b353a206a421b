//! Measures the SQLite store alone: durable inserts that share commits beside the same inserts one commit each, claims
//! with their settlements, and both again with a long history in the same file. All of one run, because disks differ.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measuring tool stops at the first thing that is not as it should be, and prints"
)]

mod history;

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use outlast_core::{
    Body, Cost, Insert, NewJob, Output, OwnerId, Settlement, Store, Usage, WorkerId,
};
use outlast_store::{SqliteStore, SystemClock};
use outlast_testkit::store_suite::{a_job, profiles};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How many call at a time.
const CALLERS: usize = 64;
const LEASE: Duration = Duration::from_secs(30);

/// Measures the SQLite store.
#[derive(Parser)]
struct Cli {
    /// Where to put the databases; on the disk that is to be measured
    #[arg(long)]
    dir: Option<PathBuf>,
    /// How many jobs each measurement makes
    #[arg(long, default_value_t = 6_400)]
    jobs: usize,
    /// How many finished jobs the long history has
    #[arg(long, default_value_t = 1_000_000)]
    history: u64,
    /// How often everything is measured; the middle one counts
    #[arg(long, default_value_t = 7)]
    rounds: usize,
}

/// Times a second, of every round.
#[derive(Default)]
struct Paces {
    one_each: Vec<f64>,
    insert: Vec<f64>,
    settle: Vec<f64>,
    late_insert: Vec<f64>,
    late_settle: Vec<f64>,
}

#[tokio::main]
async fn main() {
    let cli = Cli::parse();
    let dir = match &cli.dir {
        Some(dir) => tempfile::tempdir_in(dir).unwrap(),
        None => tempfile::tempdir().unwrap(),
    };
    let each = (cli.jobs / CALLERS).max(1);
    let (young, old) = (open(&dir.path().join("young.db")), dir.path().join("old.db"));
    let old = with_history(&old, cli.history).await;
    let mut paces = Paces::default();
    // In turns, so that a disk that is slow for a while is so for all.
    for _ in 0..cli.rounds {
        // A part is enough to know the pace of one commit after the other.
        paces.one_each.push(insert(&young, each / 8 + 1, Commits::OneEach).await);
        settle_all(&young).await;
        paces.insert.push(insert(&young, each, Commits::Shared).await);
        paces.late_insert.push(insert(&old, each, Commits::Shared).await);
        paces.settle.push(claim_and_settle(&young, each).await);
        paces.late_settle.push(claim_and_settle(&old, each).await);
    }
    young.close().await;
    old.close().await;
    paces.print(cli.history);
}

impl Paces {
    fn print(self, history: u64) {
        let [one_each, insert, settle, late_insert, late_settle] =
            [self.one_each, self.insert, self.settle, self.late_insert, self.late_settle]
                .map(middle);
        let pace = |name: &str, pace: f64| println!("{name:<44} {pace:>9.0} /s");
        let ratio = |name: &str, ratio: f64| println!("{name:<44} {ratio:>9.2} x");
        pace("insert, a commit each", one_each);
        pace("insert, commits shared", insert);
        ratio("  shared against one each", insert / one_each);
        pace("claim and settle", settle);
        pace(&format!("insert, with {history} finished jobs"), late_insert);
        ratio("  slower than without", insert / late_insert);
        pace("claim and settle, with them", late_settle);
        ratio("  slower than without", settle / late_settle);
    }
}

fn middle(mut paces: Vec<f64>) -> f64 {
    paces.sort_by(f64::total_cmp);
    paces[paces.len() / 2]
}

/// A store with so many finished jobs.
async fn with_history(path: &std::path::Path, jobs: u64) -> Arc<SqliteStore> {
    let store = open(path);
    insert(&store, 1, Commits::Shared).await;
    claim_and_settle(&store, 1).await;
    store.close().await;
    history::add(path, jobs);
    open(path)
}

fn open(path: &std::path::Path) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(path, Arc::new(SystemClock)).unwrap())
}

/// Whether callers find others to share a commit with.
#[derive(Clone, Copy)]
enum Commits {
    OneEach,
    Shared,
}

async fn insert(store: &Arc<SqliteStore>, each: usize, commits: Commits) -> f64 {
    let (store, turn) = (Arc::clone(store), Arc::new(Mutex::new(())));
    pace(each, move |caller| {
        let (store, turn) = (Arc::clone(&store), Arc::clone(&turn));
        async move {
            let job = NewJob { owner: OwnerId::new(format!("caller-{caller}")), ..a_job() };
            let _alone = match commits {
                Commits::OneEach => Some(turn.lock().await),
                Commits::Shared => None,
            };
            store
                .insert(Insert {
                    job,
                    key: None,
                    max_unfinished: u32::MAX,
                    max_bytes: u64::MAX,
                    takes_up: None,
                    reservation: None,
                })
                .await
                .unwrap();
        }
    })
    .await
}

async fn claim_and_settle(store: &Arc<SqliteStore>, each: usize) -> f64 {
    let store = Arc::clone(store);
    pace(each, move |_| {
        let store = Arc::clone(&store);
        async move { assert!(settle_one(&store).await, "there is one for each task") }
    })
    .await
}

/// Settles what the rounds of other measurements left.
async fn settle_all(store: &SqliteStore) {
    while settle_one(store).await {}
}

/// Claims a job and settles it; false where none was left.
async fn settle_one(store: &SqliteStore) -> bool {
    let claimed = store.claim(&WorkerId::new("bench"), &profiles(), LEASE).await.unwrap();
    let Some(claimed) = claimed else { return false };
    let output = Arc::new(Output {
        body: Body::report("because", Vec::new()),
        model: None,
        usage: Usage::default(),
        cost: Cost::Unknown,
    });
    store.settle(&claimed.lease, Settlement::Succeed { output, raw: None }).await.unwrap();
    true
}

/// How many times a second 64 callers together do it, each `each` times in a row.
async fn pace<F, Fut>(each: usize, step: F) -> f64
where
    F: Fn(usize) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send,
{
    let step = Arc::new(step);
    let begun = Instant::now();
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let step = Arc::clone(&step);
            tokio::spawn(async move {
                for _ in 0..each {
                    step(caller).await;
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    (CALLERS * each) as f64 / begun.elapsed().as_secs_f64()
}
