//! Measures lists, searches and sums of money in stores with very many jobs, for scripts/lists.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a measuring tool stops at the first thing that is not as it should be, and prints"
)]

mod fill;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use outlast_core::{
    Clock as _, ConversationQuery, Cursor, Day, EndNotices, JobQuery, OwnerId, Scope, SpendBy,
    SpendQuery, StateKind, Store,
};
use outlast_store::{
    ConnectionLimits, Judgement, PostgresOptions, PostgresStore, SqliteStore, SystemClock,
};
use outlast_testkit::postgres;
use tokio::time::Instant;

/// The number of times that each is read; the median counts.
const ROUNDS: usize = 5;
/// The number of days that the page adds up.
const PAGE_DAYS: i64 = 31;

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Database {
    Sqlite,
    Postgres,
}

/// Fills a store and prints the time of each list, as a Markdown table.
#[derive(Parser)]
struct Cli {
    database: Database,
    /// The number of jobs in the store
    #[arg(long, default_value_t = 1_000_000)]
    jobs: u64,
    /// Fails if a list of an owner takes longer than this many milliseconds
    #[arg(long)]
    at_most: Option<u128>,
    /// Measures this store (a file, or a database's address), which --keep left, and prints the time to open it
    #[arg(long)]
    reuse: Option<String>,
    /// Leaves the SQLite store here
    #[arg(long)]
    keep: Option<PathBuf>,
}

/// A read on behalf of a user.
enum Read {
    Conversations(ConversationQuery),
    Jobs(JobQuery),
    Counts,
    Spend(SpendQuery),
    /// All reads of the page's first view.
    Page,
}

#[tokio::main]
async fn main() {
    let cli = Cli::parse();
    let folder = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let place = match (&cli.reuse, cli.database) {
        (Some(place), _) => place.clone(),
        (None, Database::Sqlite) => {
            let folder = cli.keep.clone().unwrap_or_else(|| folder.path().to_owned());
            filled_sqlite(folder.join("jobs.db"), cli.jobs).await
        }
        (None, Database::Postgres) => filled_postgres(cli.jobs).await,
    };
    if cli.reuse.is_none() {
        eprintln!("filled {place} in {:.1} s", began.elapsed().as_secs_f64());
    }
    let began = Instant::now();
    let opened = || eprintln!("opened in {:.1} s", began.elapsed().as_secs_f64());
    let slowest = match cli.database {
        Database::Sqlite => {
            let store = open_sqlite(&place);
            titles_indexed(cli.jobs, async || segments_in_sqlite(&place)).await;
            opened();
            let slowest = measure(&store, cli.jobs).await;
            store.close().await;
            slowest
        }
        Database::Postgres => {
            let store = open_postgres(&place).await;
            let client = postgres::connect(&place).await;
            titles_indexed(cli.jobs, async || {
                client.query_one(SEGMENTS, &[]).await.unwrap().get::<_, i64>(0)
            })
            .await;
            opened();
            let slowest = measure(&store, cli.jobs).await;
            store.close().await;
            slowest
        }
    };
    if let Some(at_most) = cli.at_most {
        assert!(slowest.as_millis() <= at_most, "a list took {slowest:?}, more than {at_most} ms");
    }
}

fn open_sqlite(place: &str) -> SqliteStore {
    SqliteStore::open(Path::new(place), Arc::new(SystemClock)).unwrap()
}

async fn open_postgres(url: &str) -> PostgresStore {
    PostgresStore::open(options(url)).await.unwrap()
}

fn options(url: &str) -> PostgresOptions {
    let judgement = Judgement {
        free_for: Duration::ZERO,
        session_for: Duration::ZERO,
        leases_for: Duration::ZERO,
    };
    let notices = EndNotices::Kept;
    let limits =
        ConnectionLimits { statement: Duration::from_secs(60), ..ConnectionLimits::default() };
    PostgresOptions {
        url: url.to_owned(),
        clock: None,
        judgement,
        notices,
        limits,
        state_dir: None,
    }
}

#[expect(clippy::disallowed_methods, reason = "fills the tables past the store")]
async fn filled_sqlite(path: PathBuf, jobs: u64) -> String {
    let place = path.to_str().unwrap().to_owned();
    open_sqlite(&place).close().await;
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch(&fill::sqlite(jobs, SystemClock.now().as_millis())).unwrap();
    place
}

async fn filled_postgres(jobs: u64) -> String {
    let url = postgres::fresh_schema().await;
    open_postgres(&url).await.close().await;
    let client = postgres::connect(&url).await;
    client.batch_execute(&fill::postgres(jobs, SystemClock.now().as_millis())).await.unwrap();
    // As autovacuum does where jobs arrive one by one.
    client.batch_execute("vacuum (analyze)").await.unwrap();
    url
}

const SEGMENTS: &str = "select count(*) from title_segments";

#[expect(clippy::disallowed_methods, reason = "counts rows past the store")]
fn segments_in_sqlite(place: &str) -> i64 {
    let connection = rusqlite::Connection::open(place).unwrap();
    connection.query_row(SEGMENTS, [], |row| row.get(0)).unwrap()
}

/// Waits until the store has indexed the titles, which it does some time after jobs arrive.
async fn titles_indexed(jobs: u64, segments: impl AsyncFn() -> i64) {
    let wanted = i64::try_from(jobs / 4_096).unwrap() - 1;
    while segments().await < wanted {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Prints the table and returns the slowest time of a list that is not the operator's.
async fn measure(store: &dyn Store, jobs: u64) -> Duration {
    let scopes = fill::OWNERS.map(|owner| Scope::Owner(OwnerId::new(owner)));
    println!("| {jobs} jobs, milliseconds | no jobs | small owner | biggest owner | operator |");
    println!("|---|---|---|---|---|");
    let mut slowest = Duration::ZERO;
    for (name, read) in reads(jobs) {
        let mut line = format!("| {name} |");
        for scope in scopes.iter().chain([&Scope::Operator]) {
            let Some(time) = median(store, scope, &read).await else {
                line += " - |";
                continue;
            };
            if scope.owner().is_some() {
                slowest = slowest.max(time);
            }
            line += &format!(" {:.1} |", time.as_secs_f64() * 1_000.0);
        }
        println!("{line}");
    }
    slowest
}

/// Returns the median time; `None` if this reader cannot read this.
async fn median(store: &dyn Store, scope: &Scope, read: &Read) -> Option<Duration> {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        once(store, scope, read).await?;
        times.push(began.elapsed());
        // A read that takes seconds is not repeated.
        if began.elapsed() > Duration::from_secs(2) {
            break;
        }
    }
    times.sort();
    times.get(times.len() / 2).copied()
}

async fn once(store: &dyn Store, scope: &Scope, read: &Read) -> Option<()> {
    match read {
        Read::Conversations(query) => {
            store.conversations(scope.owner()?, query).await.unwrap();
        }
        Read::Jobs(query) => drop(store.list(scope, query).await.unwrap()),
        Read::Counts => drop(store.counts(scope, 1_000).await.unwrap()),
        Read::Spend(query) => drop(store.spend(scope, query).await.unwrap()),
        Read::Page => {
            store.counts(scope, 1_000).await.unwrap();
            store.list(scope, &newest()).await.unwrap();
            store.spend(scope, &spend(SpendBy::Day, PAGE_DAYS)).await.unwrap();
        }
    }
    Some(())
}

fn newest() -> JobQuery {
    JobQuery { limit: 50, ..JobQuery::default() }
}

fn spend(by: SpendBy, days: i64) -> SpendQuery {
    SpendQuery { by, since: Day(SystemClock.now().day().0 - days) }
}

fn reads(jobs: u64) -> Vec<(&'static str, Read)> {
    let deep = Some(Cursor(jobs / 20));
    let talks = |states: &[StateKind], after| {
        Read::Conversations(ConversationQuery { states: states.to_vec(), limit: 50, after })
    };
    let of = |states: &[StateKind]| Read::Jobs(JobQuery { states: states.to_vec(), ..newest() });
    let words = |words: &str| JobQuery { words: Some(words.to_owned()), ..newest() };
    let title = |text: &str| Read::Jobs(JobQuery { search: Some(text.to_owned()), ..newest() });
    let provider = |name: &str| Some(name.to_owned());
    vec![
        ("conversations", talks(&[], None)),
        ("conversations, deep page", talks(&[], deep)),
        ("conversations, completed", talks(&[StateKind::Succeeded], None)),
        ("conversations, failed", talks(&[StateKind::Failed], None)),
        ("conversations, cancelled, deep page", talks(&[StateKind::Cancelled], deep)),
        ("conversations, in progress", talks(&[StateKind::Running], None)),
        ("jobs", Read::Jobs(newest())),
        ("jobs, deep page", Read::Jobs(JobQuery { after: deep, ..newest() })),
        ("jobs, failed", of(&[StateKind::Failed])),
        ("jobs, failed or cancelled", of(&[StateKind::Failed, StateKind::Cancelled])),
        ("jobs, queued or running", of(&[StateKind::Queued, StateKind::Running])),
        ("jobs of a provider", Read::Jobs(JobQuery { provider: provider("library"), ..newest() })),
        (
            "jobs of a provider, failed",
            Read::Jobs(JobQuery {
                provider: provider("library"),
                states: vec![StateKind::Failed],
                ..newest()
            }),
        ),
        (
            "jobs of an unknown provider",
            Read::Jobs(JobQuery { provider: provider("none"), ..newest() }),
        ),
        (
            "jobs by the beginning of an id",
            Read::Jobs(JobQuery { id_prefix: Some("4d19".to_owned()), ..newest() }),
        ),
        ("title, many", title("question 1")),
        ("title, few", title("question 77777 ")),
        ("title, none", title("nothing has it")),
        ("search, a word of all", Read::Jobs(words("question"))),
        ("search, two common words", Read::Jobs(words("question half"))),
        ("search, a rare word", Read::Jobs(words("w19000"))),
        ("search, the beginning of words", Read::Jobs(words("w19"))),
        ("search, no such word", Read::Jobs(words("nothing"))),
        ("search, deep page", Read::Jobs(JobQuery { after: deep, ..words("half") })),
        (
            "search, failed",
            Read::Jobs(JobQuery { states: vec![StateKind::Failed], ..words("half") }),
        ),
        (
            "search, cancelled",
            Read::Jobs(JobQuery { states: vec![StateKind::Cancelled], ..words("half") }),
        ),
        (
            "search, a provider",
            Read::Jobs(JobQuery { provider: provider("library"), ..words("half") }),
        ),
        ("counts by state", Read::Counts),
        ("spend by day, 31 days", Read::Spend(spend(SpendBy::Day, PAGE_DAYS))),
        ("spend by provider, 31 days", Read::Spend(spend(SpendBy::Provider, PAGE_DAYS))),
        ("spend by model, 31 days", Read::Spend(spend(SpendBy::Model, PAGE_DAYS))),
        ("spend by owner, 31 days", Read::Spend(spend(SpendBy::Owner, PAGE_DAYS))),
        ("spend by day, all", Read::Spend(spend(SpendBy::Day, 400))),
        ("page load", Read::Page),
    ]
}
