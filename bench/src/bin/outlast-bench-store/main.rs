//! Measures the stores. SQLite alone: durable inserts that share commits next to the same inserts with one commit each,
//! claims with their settlements, and both again with a long history in the same file. PostgreSQL: see `beside_others`;
//! the page: see `page`. All figures come from one run, because disks differ.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measuring tool stops at the first thing that is not as it should be, and prints"
)]

mod callers;
mod history;

mod beside_others;
mod page;
mod peers;
mod pgbench;
mod wakeups;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use callers::{Commits, Work};
use clap::Parser;
use outlast_core::Store;
use outlast_store::{SqliteStore, SystemClock};

/// The number of concurrent callers of the SQLite store.
const CALLERS: usize = 64;
/// The number of jobs for the page, unless the history is to be shorter.
const PAGE_JOBS: u64 = 100_000;

/// Measures the stores.
#[derive(Parser)]
struct Cli {
    /// The folder for the databases; on the disk that is to be measured
    #[arg(long)]
    dir: Option<PathBuf>,
    /// The number of jobs of each measurement
    #[arg(long, default_value_t = 6_400)]
    jobs: usize,
    /// The number of finished jobs in the long history
    #[arg(long, default_value_t = 1_000_000)]
    history: u64,
    /// The number of rounds; the median counts
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// The PostgreSQL store compared with others on one database, the server that scripts/with-postgres starts
    #[arg(long)]
    postgres: bool,
    /// The queries of the page on either store with 100,000 jobs; needs the server that scripts/with-postgres starts.
    /// Leaves the SQLite store in --dir
    #[arg(long)]
    page: bool,
    /// The folder of the other queues, in which scripts/bench postgres installs them. Without it only pgbench and
    /// SQLite are compared
    #[arg(long, value_name = "FOLDER")]
    peers: Option<PathBuf>,
}

/// Operations per second, of every round.
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
    if cli.page {
        let jobs = if cli.history < PAGE_JOBS { cli.history } else { PAGE_JOBS } as usize;
        let is_good = page::measure(cli.dir.as_deref().unwrap_or(dir.path()), jobs).await;
        std::process::exit(if is_good { 0 } else { 1 });
    }
    if cli.postgres {
        return beside_others::measure(dir.path(), cli.jobs, cli.rounds, cli.peers.as_deref())
            .await;
    }
    let work = Work { callers: CALLERS, each: (cli.jobs / CALLERS).max(1) };
    let (young, old) = (open(&dir.path().join("young.db")), dir.path().join("old.db"));
    let old = with_history(&old, cli.history).await;
    let [young_jobs, old_jobs] =
        [&young, &old].map(|store| -> Arc<dyn Store> { Arc::clone(store) as _ });
    let mut paces = Paces::default();
    // The measurements take turns, so that a temporarily slow disk slows all of them.
    for _ in 0..cli.rounds {
        // A part is enough to measure the pace of sequential commits.
        let part = Work { each: work.each / 8 + 1, ..work };
        paces.one_each.push(part.insert(&young_jobs, Commits::OneEach).await);
        callers::settle_all(&*young).await;
        paces.insert.push(work.insert(&young_jobs, Commits::Shared).await);
        paces.late_insert.push(work.insert(&old_jobs, Commits::Shared).await);
        paces.settle.push(work.claim_and_settle(&young_jobs).await);
        paces.late_settle.push(work.claim_and_settle(&old_jobs).await);
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

/// Opens a store with this number of finished jobs.
async fn with_history(path: &Path, jobs: u64) -> Arc<SqliteStore> {
    let store = open(path);
    let one = Work { callers: CALLERS, each: 1 };
    let all: Arc<dyn Store> = Arc::clone(&store) as _;
    one.insert(&all, Commits::Shared).await;
    one.claim_and_settle(&all).await;
    store.close().await;
    history::add(path, jobs);
    open(path)
}

fn open(path: &Path) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(path, Arc::new(SystemClock)).unwrap())
}
