//! What the page asks of a store with many jobs (I6), and what the words by which jobs are found cost their jobs.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{
    Body, Cost, Insert, Inserted, JobQuery, NewJob, Output, Scope, Settlement, StateKind, Store,
    Usage, WorkerId,
};
use outlast_testkit::store_suite::profiles;
use tokio::time::Instant;

use crate::callers::new_job;

const LEASE: Duration = Duration::from_secs(60);
/// How many jobs are made at a time, so that they share commits.
const TOGETHER: usize = 500;
/// How often each question is asked.
const ROUNDS: usize = 15;
/// How long each may take.
const GOAL: Duration = Duration::from_millis(100);
/// How many different words reports have.
const VOCABULARY: f64 = 20_000.0;
/// Words of a report in the store, and of one whose cost is measured.
const SHORT: usize = 100;
const LONG: usize = 2_000;
const BIG_OWNER: &str = "ann";
const SMALL_OWNER: &str = "bob";

/// Fills the store, asks it, and prints a row for each question; whether all were answered in time.
pub(crate) async fn measure(name: &str, store: Arc<dyn Store>, jobs: usize) -> bool {
    for begun in (0..jobs).step_by(TOGETHER) {
        make(&store, begun..(begun + TOGETHER).min(jobs)).await;
    }
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
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        with.push(pace(&store, &report(LONG, 7)).await);
        without.push(pace(&store, &"a".repeat(report(LONG, 7).len())).await);
    }
    let ratio = crate::middle(without) / crate::middle(with);
    println!(
        "\ninsert and settle a report of {LONG} words, against one of one long word: {ratio:.2} x the time"
    );
    is_good
}

fn print(case: &str, found: usize, mut taken: Vec<Duration>) -> bool {
    taken.sort();
    let middle = taken[taken.len() / 2];
    println!("| {case} | {found} | {:.1} |", middle.as_secs_f64() * 1_000.0);
    middle < GOAL
}

/// A text in which the same words are frequent as in any other, a few of its own apart.
fn report(words: usize, seed: u64) -> String {
    let mut random = fastrand::Rng::with_seed(seed);
    let word = |_| format!("w{}", VOCABULARY.powf(random.f64()) as u64);
    (0..words).map(word).collect::<Vec<_>>().join(" ")
}

/// Jobs from the first question to the report; one in a thousand is another owner's, and the first is cancelled.
async fn make(store: &Arc<dyn Store>, numbers: std::ops::Range<usize>) {
    let each = numbers.map(|number| {
        let store = Arc::clone(store);
        tokio::spawn(async move {
            let owner = if number % 1_000 == 999 { SMALL_OWNER } else { BIG_OWNER };
            let Insert { job, .. } = new_job(owner);
            let job = NewJob { title: format!("Question {number}"), ..job };
            let inserted = store.insert(Insert { job, ..new_job(owner) }).await.unwrap();
            match inserted {
                Inserted::New(job) if number == 0 => {
                    store.cancel(&Scope::Operator, &job.id).await.unwrap();
                }
                Inserted::New(_) | Inserted::Existing { .. } => {
                    settle(&*store, &report(SHORT, number as u64)).await;
                }
            }
        })
    });
    for made in each.collect::<Vec<_>>() {
        made.await.unwrap();
    }
}

/// Settles some job with this text.
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

/// Jobs a second that are inserted and settled with this text, one after the other.
async fn pace(store: &Arc<dyn Store>, text: &str) -> f64 {
    const JOBS: u32 = 100;
    let begun = Instant::now();
    for _ in 0..JOBS {
        store.insert(new_job(BIG_OWNER)).await.unwrap();
        settle(&**store, text).await;
    }
    f64::from(JOBS) / begun.elapsed().as_secs_f64()
}
