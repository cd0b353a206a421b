//! Measures the SQLite store alone: durable inserts beside a store that commits each by itself, claims with their
//! settlements, and both again with a long history in the same file. All figures of one run, because disks differ.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measuring tool stops at the first thing that is not as it should be, and prints"
)]

mod history;
mod plain;

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
}

#[tokio::main]
async fn main() {
    let cli = Cli::parse();
    let dir = match &cli.dir {
        Some(dir) => tempfile::tempdir_in(dir).unwrap(),
        None => tempfile::tempdir().unwrap(),
    };
    let each = cli.jobs / CALLERS;

    let plain = Arc::new(plain::Plain::open(&dir.path().join("plain.db")));
    // A sixteenth is enough to know the pace of one commit after the other.
    let alone = pace("insert, a commit each", each / 16 + 1, move |_| {
        let plain = Arc::clone(&plain);
        async move { plain.insert(a_job()).await }
    })
    .await;

    let path = dir.path().join("outlast.db");
    let store = open(&path);
    let inserts = insert(&store, each, "insert, commits shared").await;
    println!("{:<44} {:>9.1} x", "  shared against one each", inserts / alone);
    let claims = claim_and_settle(&store, each, "claim and settle").await;
    store.close().await;

    let made = Instant::now();
    history::add(&path, cli.history);
    println!(
        "{:<44} {:>9.1} s",
        format!("making {} finished jobs", cli.history),
        made.elapsed().as_secs_f64()
    );
    let store = open(&path);
    let later = insert(&store, each, "insert, with that history").await;
    println!("{:<44} {:>9.2} x", "  slower than without", inserts / later);
    let later = claim_and_settle(&store, each, "claim and settle, with that history").await;
    println!("{:<44} {:>9.2} x", "  slower than without", claims / later);
    store.close().await;
}

fn open(path: &std::path::Path) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(path, Arc::new(SystemClock)).unwrap())
}

async fn insert(store: &Arc<SqliteStore>, each: usize, name: &str) -> f64 {
    let store = Arc::clone(store);
    pace(name, each, move |caller| {
        let store = Arc::clone(&store);
        async move {
            let job = NewJob { owner: OwnerId::new(format!("caller-{caller}")), ..a_job() };
            store.insert(Insert { job, key: None, max_unfinished: u32::MAX }).await.unwrap();
        }
    })
    .await
}

async fn claim_and_settle(store: &Arc<SqliteStore>, each: usize, name: &str) -> f64 {
    let (store, worker) = (Arc::clone(store), WorkerId::new("bench"));
    pace(name, each, move |_| {
        let (store, worker) = (Arc::clone(&store), worker.clone());
        async move {
            let claimed = store.claim(&worker, &profiles(), LEASE).await.unwrap().unwrap();
            let output = std::sync::Arc::new(Output {
                body: Body::report("because", Vec::new()),
                model: None,
                usage: Usage::default(),
                cost: Cost::Unknown,
            });
            let settlement = Settlement::Succeed { output, raw: None };
            store.settle(&claimed.lease, settlement).await.unwrap();
        }
    })
    .await
}

/// How many times a second 64 callers together do it, each `each` times in a row.
async fn pace<F, Fut>(name: &str, each: usize, step: F) -> f64
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
    let pace = (CALLERS * each) as f64 / begun.elapsed().as_secs_f64();
    println!("{name:<44} {pace:>9.0} /s");
    pace
}
