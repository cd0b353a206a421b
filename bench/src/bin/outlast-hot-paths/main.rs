//! Repeats one hot path on one thread, for scripts/hot-paths to count its instructions.

#![expect(
    clippy::unwrap_used,
    reason = "a measuring tool stops at the first thing that is not as it should be"
)]

use std::sync::Arc;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use outlast_core::{
    Body, Cost, InsertOutcome, JobId, JobQuery, NewJob, Output, OwnerId, Scope, Settlement, Store,
    Usage, WorkerId,
};
use outlast_provider::fuzzing::follow;
use outlast_store::SqliteStore;
use outlast_testkit::clock::ManualClock;
use outlast_testkit::store_suite::{a_job, an_insert, profiles};
use serde_json::json;

#[derive(Clone, Copy, ValueEnum)]
enum Path {
    /// A job is made durable
    Insert,
    /// A job is made, claimed and ended with a report of 30 kB
    Settle,
    /// A job with such a report is read
    Read,
    /// The newest fifty of an owner are listed
    List,
    /// A run's event stream is parsed
    Stream,
}

#[derive(Parser)]
struct Cli {
    path: Path,
    times: usize,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let Cli { path, times } = Cli::parse();
    let folder = tempfile::tempdir().unwrap();
    // The clock does not move: the search index is updated by the clock, and would be counted with the measured
    // operation.
    let clock = Arc::new(ManualClock::default());
    let store = SqliteStore::open(&folder.path().join("jobs.db"), clock).unwrap();
    let (stream, ended) = (stream(), ended(&store).await);
    if let Path::List = path {
        for _ in 0..50 {
            insert(&store).await;
        }
    }
    for _ in 0..times {
        match path {
            Path::Insert => drop(insert(&store).await),
            Path::Settle => drop(self::ended(&store).await),
            Path::Read => drop(store.job(&owner(), &ended).await.unwrap().unwrap()),
            Path::List => drop(store.list(&owner(), &newest()).await.unwrap()),
            Path::Stream => drop(follow(&stream, 16 * 1024).unwrap()),
        }
    }
    store.close().await;
}

fn owner() -> Scope {
    Scope::Owner(OwnerId::new("ann"))
}

fn newest() -> JobQuery {
    JobQuery { limit: 50, ..JobQuery::default() }
}

async fn insert(store: &SqliteStore) -> JobId {
    let insert = an_insert(NewJob { owner: OwnerId::new("ann"), ..a_job() });
    match store.insert(insert).await.unwrap() {
        InsertOutcome::New(job) | InsertOutcome::Existing { job, .. } => job.id,
    }
}

/// Creates a job that has ended.
async fn ended(store: &SqliteStore) -> JobId {
    let id = insert(store).await;
    let worker = WorkerId::new("worker");
    let claimed =
        store.claim(&worker, &profiles(), Duration::from_secs(60)).await.unwrap().unwrap();
    let output = Arc::new(Output {
        body: Body::report("Words of a report, and some more. ".repeat(900), Vec::new()),
        model: None,
        usage: Usage::default(),
        cost: Cost::Unknown,
    });
    store.settle(&claimed.lease, Settlement::Succeed { output, raw: None }).await.unwrap();
    id
}

/// Returns the stream of a run with a report of 4,000 words.
fn stream() -> Vec<u8> {
    let mut events = vec![json!({"type": "response.created", "response": {"id": "resp_1"}})];
    let text = "word ".repeat(4_000);
    for number in 1..=500 {
        events.push(json!({"type": "response.output_text.delta", "sequence_number": number,
            "item_id": "msg_1", "output_index": 1, "content_index": 0, "delta": "word ".repeat(8)}));
    }
    let message = json!({"type": "message", "content": [{"type": "output_text", "text": text}]});
    let response = json!({"id": "resp_1", "status": "completed", "output": [message]});
    events.push(json!({"type": "response.completed", "response": response}));
    let frame = |event: &serde_json::Value| {
        format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())
    };
    events.iter().map(frame).collect::<String>().into_bytes()
}
