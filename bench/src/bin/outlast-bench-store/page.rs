//! The page's queries on a store with many jobs (I6), and the cost of the search index for the jobs.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use outlast_core::{
    Body, Cost, Insert, InsertOutcome, JobQuery, Output, Scope, Settlement, StateKind, Store,
    Usage, WorkerId,
};
use outlast_store::{StorePlace, copy};
use outlast_testkit::store_suite::profiles;
use rusqlite::Connection;
use tokio::time::Instant;

use crate::beside_others;
use crate::callers::{new_job, settle_all};

const LEASE: Duration = Duration::from_secs(60);
/// The number of callers that fill the store, so that they share commits.
const CALLERS: usize = 256;
/// The number of times that each query runs.
const ROUNDS: usize = 15;
/// The time limit of each query.
const GOAL: Duration = Duration::from_millis(100);
/// The number of different words in reports.
const VOCABULARY: f64 = 20_000.0;
/// The number of words of a report in the store, and of one whose cost is measured.
const SHORT: usize = 100;
const LONG: usize = 2_000;
/// The number of jobs with the measured report.
const PACE_JOBS: u32 = 100;
const BIG_OWNER: &str = "ann";
const SMALL_OWNER: &str = "bob";

/// Fills an SQLite store in this folder, copies it to PostgreSQL, and queries both; returns true if every answer was in
/// time.
pub(crate) async fn measure(dir: &Path, jobs: usize) -> bool {
    let file = dir.join("outlast.db");
    let place = StorePlace::Sqlite((&file).into());
    let sqlite = crate::open(&file);
    let store: Arc<dyn Store> = Arc::clone(&sqlite) as _;
    let begun = Instant::now();
    fill(&store, jobs).await;
    println!("SQLite: {jobs} jobs came and ended in {:.0} s", begun.elapsed().as_secs_f64());
    let mut is_good = ask("SQLite", &*store, place, jobs).await;
    sqlite.close().await;
    let url = outlast_testkit::postgres::fresh_schema().await;
    let begun = Instant::now();
    copy(place, StorePlace::Postgres(&url), &mut |_, _, _| {}).await.unwrap();
    println!("\nPostgreSQL: they were copied in {:.0} s", begun.elapsed().as_secs_f64());
    let postgres = beside_others::open(&url).await;
    is_good &= ask("PostgreSQL", &postgres, StorePlace::Postgres(&url), jobs).await;
    is_good
}

/// Runs the page's queries, and prints a row for each; returns true if every answer was in time.
async fn ask(name: &str, store: &dyn Store, place: StorePlace<'_>, jobs: usize) -> bool {
    let words_took = put_words(store, place).await.as_secs_f64();
    println!("{name}: their words were put in {words_took:.0} s");
    let page = JobQuery { limit: 50, ..JobQuery::default() };
    let of = |state| JobQuery { states: vec![state], ..page.clone() };
    let words = |words: &str| JobQuery { words: Some(words.to_owned()), ..page.clone() };
    let both = |text: &str, state| JobQuery { words: words(text).words, ..of(state) };
    let cases = [
        ("newest", BIG_OWNER, page.clone()),
        ("a rare state", BIG_OWNER, of(StateKind::Cancelled)),
        ("a provider", BIG_OWNER, JobQuery { provider: Some("none".to_owned()), ..page.clone() }),
        ("a word of all", BIG_OWNER, words("question")),
        ("a word of few", BIG_OWNER, words("w19999")),
        ("two words", BIG_OWNER, words("w1 w77")),
        ("the start of many words", BIG_OWNER, words("w12")),
        ("a word of none", BIG_OWNER, words("nothing")),
        ("a word of all, a rare state", BIG_OWNER, both("question", StateKind::Cancelled)),
        ("a word of all, none running", BIG_OWNER, both("question", StateKind::Running)),
        ("a word of all, an owner of few", SMALL_OWNER, words("question")),
    ];
    println!("\n| {name}, {jobs} jobs | jobs found | ms |\n|---|---:|---:|");
    let mut is_good = true;
    for (case, owner, query) in cases {
        let scope = Scope::Owner(outlast_core::OwnerId::new(owner));
        let mut taken = Vec::new();
        let mut found = 0;
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            found = store.list(&scope, &query).await.unwrap().jobs.len();
            taken.push(begun.elapsed());
        }
        is_good &= print(case, found, taken);
    }
    let mut taken = Vec::new();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        store.counts(&Scope::Operator, 1_000).await.unwrap();
        taken.push(begun.elapsed());
    }
    is_good &= print("counts by state", 0, taken);
    print_cost_of_words(store, place).await;
    is_good
}

/// Prints the cost that the words of a long report have for its job, next to a report of as many bytes and one word.
async fn print_cost_of_words(store: &dyn Store, place: StorePlace<'_>) {
    let (mut with, mut without, mut later) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..3 {
        with.push(pace(store, &report(LONG, 7)).await);
        later.push(put_words(store, place).await.as_secs_f64());
        without.push(pace(store, &"a".repeat(report(LONG, 7).len())).await);
        put_words(store, place).await;
    }
    let ratio = crate::middle(without) / crate::middle(with);
    let later = crate::middle(later) * 1_000.0 / f64::from(PACE_JOBS);
    println!(
        "\ninsert and settle a report of {LONG} words, against one of one long word: {ratio:.2} x the time, and {later:.1} ms a job later"
    );
}

fn print(case: &str, found: usize, mut taken: Vec<Duration>) -> bool {
    taken.sort();
    let middle = taken[taken.len() / 2];
    println!("| {case} | {found} | {:.1} |", middle.as_secs_f64() * 1_000.0);
    middle < GOAL
}

/// Returns a text with the usual word frequencies, except for a few words that occur only in it.
fn report(words: usize, seed: u64) -> String {
    let mut random = fastrand::Rng::with_seed(seed);
    let word = |_| format!("w{}", VOCABULARY.powf(random.f64()) as u64);
    (0..words).map(word).collect::<Vec<_>>().join(" ")
}

/// Inserts and ends jobs, from question to report; one in a thousand belongs to another owner, and the first is
/// cancelled.
async fn fill(store: &Arc<dyn Store>, jobs: usize) {
    if let InsertOutcome::New(job) = store.insert(question(0)).await.unwrap() {
        store.cancel(&Scope::Operator, &job.id).await.unwrap();
    }
    let next = Arc::new(AtomicUsize::new(1));
    let caller = |_| {
        let (store, next) = (Arc::clone(store), Arc::clone(&next));
        tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= jobs {
                    return;
                }
                make(&*store, number).await;
            }
        })
    };
    for filled in (0..CALLERS).map(caller).collect::<Vec<_>>() {
        filled.await.unwrap();
    }
    settle_all(&**store).await;
}

async fn make(store: &dyn Store, number: usize) {
    store.insert(question(number)).await.unwrap();
    settle(store, &report(SHORT, number as u64)).await;
}

fn question(number: usize) -> Insert {
    let owner = if number % 1_000 == 999 { SMALL_OWNER } else { BIG_OWNER };
    let mut insert = new_job(owner);
    insert.job.title = format!("Question {number}");
    insert
}

/// Makes searches add the pending words to the index, and returns the time that this took.
async fn put_words(store: &dyn Store, place: StorePlace<'_>) -> Duration {
    let begun = Instant::now();
    let query = JobQuery { words: Some("nothing".to_owned()), limit: 1, ..JobQuery::default() };
    while owes_words(place).await {
        store.list(&Scope::Operator, &query).await.unwrap();
    }
    begun.elapsed()
}

#[expect(clippy::disallowed_methods, reason = "no store says what it still has to do for searches")]
async fn owes_words(place: StorePlace<'_>) -> bool {
    const OWED: &str = "select exists (select 1 from unindexed)";
    match place {
        StorePlace::Sqlite(file) => {
            let connection = Connection::open(file.path).unwrap();
            connection.query_row(OWED, [], |row| row.get(0)).unwrap()
        }
        StorePlace::Postgres(url) => {
            let client = outlast_testkit::postgres::connect(url).await;
            client.query_one(OWED, &[]).await.unwrap().get(0)
        }
    }
}

/// Settles any job with this text.
async fn settle(store: &dyn Store, text: &str) {
    let claimed = store.claim(&WorkerId::new("bench"), &profiles(), LEASE).await.unwrap();
    let Some(claimed) = claimed else { return };
    let output = Arc::new(Output {
        body: Body::report(text, Vec::new()),
        model: None,
        usage: Usage::default(),
        cost: Cost::Unknown,
    });
    store.settle(&claimed.lease, Settlement::Succeed { output, raw: None }).await.unwrap();
}

/// Returns the jobs per second that are inserted and settled with this text, one after the other.
async fn pace(store: &dyn Store, text: &str) -> f64 {
    let begun = Instant::now();
    for number in 0..PACE_JOBS {
        store.insert(question(number as usize)).await.unwrap();
        settle(store, text).await;
    }
    f64::from(PACE_JOBS) / begun.elapsed().as_secs_f64()
}
