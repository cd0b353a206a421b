//! The PostgreSQL store compared with others on one database and in one run: pgbench with the statements of our insert,
//! other queues with the same number of jobs, our SQLite store on the same disk. Prints Markdown.

use std::path::Path;
use std::sync::Arc;

use outlast_core::Store;
use outlast_store::{Judgement, PostgresOptions, PostgresStore};
use outlast_testkit::postgres;

use crate::callers::{Commits, Work};
use crate::wakeups::{self, Delays};
use crate::{peers, pgbench};

/// The number of concurrent callers.
const CALLERS: usize = 16;

/// The figures of one system, of every round.
struct Row {
    name: String,
    inserts: Vec<f64>,
    settles: Vec<f64>,
    log_bytes: Vec<f64>,
}

impl Row {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            inserts: Vec::new(),
            settles: Vec::new(),
            log_bytes: Vec::new(),
        }
    }
}

pub(crate) async fn measure(dir: &Path, jobs: usize, rounds: usize, peers: Option<&Path>) {
    let work = Work { callers: CALLERS, each: (jobs / CALLERS).max(1) };
    let url = postgres::fresh_schema().await;
    let ours: Arc<dyn Store> = Arc::new(open(&url).await);
    let bench_url = postgres::fresh_schema().await;
    let bench_store: Arc<dyn Store> = Arc::new(open(&bench_url).await);
    let script = pgbench::script_of_an_insert(&bench_url, dir).await;
    let sqlite: Arc<dyn Store> = crate::open(&dir.join("jobs.db"));

    let (mut our_row, mut bench_row) =
        (Row::new("outlast, PostgreSQL"), Row::new("pgbench, the statements of our insert"));
    let mut sqlite_row = Row::new("outlast, SQLite");
    let mut peer_rows: Vec<Row> = peers::PEERS
        .iter()
        .map(|peer| Row::new(peer.name))
        .take_while(|_| peers.is_some())
        .collect();
    // Round 0 creates tables and opens connections, and is not counted. The systems take turns, so that a temporarily
    // slow machine slows all of them.
    for round in 0..=rounds {
        let work = if round == 0 { Work { each: work.each.min(10), ..work } } else { work };
        // As in a database after its first minutes: no plan is made for empty tables.
        postgres::connect(&url).await.batch_execute("vacuum analyze").await.unwrap();
        bench_row.inserts.push(pgbench::run(&script, &bench_url, work));
        // As in our systems: its jobs must not accumulate.
        work.claim_and_settle(&bench_store).await;

        let log = Log::position(&url).await;
        our_row.inserts.push(work.insert(&ours, Commits::Shared).await);
        our_row.settles.push(work.claim_and_settle(&ours).await);
        our_row.log_bytes.push(log.grown(&url).await / work.jobs() as f64);

        for (row, peer) in peer_rows.iter_mut().zip(peers::PEERS) {
            let log = Log::position(&url).await;
            let folder = peers.unwrap();
            row.settles.push(peer.run(folder, &postgres::server().unwrap(), work));
            row.log_bytes.push(log.grown(&url).await / work.jobs() as f64);
        }

        let log = Log::written_here();
        sqlite_row.inserts.push(work.insert(&sqlite, Commits::Shared).await);
        sqlite_row.settles.push(work.claim_and_settle(&sqlite).await);
        sqlite_row.log_bytes.push((Log::written_here().0 - log.0) / work.jobs() as f64);
    }
    for row in [&mut our_row, &mut bench_row, &mut sqlite_row].into_iter().chain(&mut peer_rows) {
        for figures in [&mut row.inserts, &mut row.settles, &mut row.log_bytes] {
            figures.drain(..figures.len().min(1));
        }
    }
    let rows: Vec<Row> =
        [our_row, bench_row].into_iter().chain(peer_rows).chain([sqlite_row]).collect();
    print_paces(&rows, work, rounds);
    let each = (jobs / CALLERS).max(1);
    println!("\n| an end is seen by another process after | p50 | p99 | max |\n|---|---|---|---|");
    for writers in [4, 16] {
        let (mut delays, mut delays_sqlite) = (Delays::default(), Delays::default());
        for round in 0..rounds {
            let work = Work { callers: writers, each };
            let url = postgres::fresh_schema().await;
            delays.add(wakeups::measure(work, wakeups::Kind::Postgres(url)).await);
            let path = dir.join(format!("wakeups-{writers}-{round}.db"));
            delays_sqlite.add(wakeups::measure(work, wakeups::Kind::Sqlite(path)).await);
        }
        delays.print(&format!("PostgreSQL, {writers} writers at full load"));
        delays_sqlite.print(&format!("SQLite, {writers} writers at full load"));
    }
}

fn print_paces(rows: &[Row], work: Work, rounds: usize) {
    let cell = |value: Option<f64>, digits: usize| {
        value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
    };
    println!(
        "{} jobs by {} callers, {rounds} rounds in turns: the middle one, and in brackets the lowest and the highest.\n",
        work.jobs(),
        work.callers
    );
    println!("| | insert /s | ours to it | claim and settle /s | ours to it | log bytes a job |");
    println!("|---|---|---|---|---|---|");
    let spread = |paces: &[f64]| {
        let (low, high) =
            (paces.iter().copied().reduce(f64::min), paces.iter().copied().reduce(f64::max));
        middle(paces).map_or_else(
            || "-".to_owned(),
            |middle| format!("{middle:.0} ({}-{})", cell(low, 0), cell(high, 0)),
        )
    };
    let Some((ours, _)) = rows.split_first() else { return };
    for row in rows {
        // The ratio of each round: a temporarily slow machine slows both.
        let ratio = |ours: &[f64], theirs: &[f64]| {
            middle(&ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect::<Vec<_>>())
        };
        println!(
            "| {} | {} | {} | {} | {} | {} |",
            row.name,
            spread(&row.inserts),
            cell(ratio(&ours.inserts, &row.inserts), 2),
            spread(&row.settles),
            cell(ratio(&ours.settles, &row.settles), 2),
            cell(middle(&row.log_bytes), 0),
        );
    }
}

/// Returns the median; `None` without figures.
fn middle(figures: &[f64]) -> Option<f64> {
    let mut figures = figures.to_vec();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied()
}

pub(crate) async fn open(url: &str) -> PostgresStore {
    let options = PostgresOptions {
        url: url.to_owned(),
        clock: None,
        judgement: Judgement::default(),
        notices: outlast_core::EndNotices::Off,
        limits: outlast_store::ConnectionLimits::default(),
        state_dir: None,
    };
    PostgresStore::open(options).await.unwrap()
}

/// The number of bytes that a log has received, at one moment.
struct Log(f64);

impl Log {
    /// Returns the position of the database's write-ahead log.
    async fn position(url: &str) -> Self {
        let admin = postgres::connect(url).await;
        let position = "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8";
        Self(admin.query_one(position, &[]).await.unwrap().get(0))
    }

    async fn grown(&self, url: &str) -> f64 {
        Self::position(url).await.0 - self.0
    }

    /// Returns the bytes that this process has written to files: SQLite's log, and the copy from there into the
    /// database file.
    fn written_here() -> Self {
        let io = std::fs::read_to_string("/proc/self/io").unwrap();
        let written = io.lines().find_map(|line| line.strip_prefix("wchar: ")).unwrap();
        Self(written.parse().unwrap())
    }
}
