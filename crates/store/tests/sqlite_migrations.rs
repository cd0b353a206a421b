//! Databases of earlier versions: this version keeps all their data, or leaves them unchanged.

#![expect(clippy::unwrap_used, reason = "helpers end the test, like the tests")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use outlast_core::{
    Body, Checkpoint, Day, Fence, HeldAnswer, Insert, InsertOutcome, Job, JobQuery, JobState, Key,
    KeyLife, NewJob, OwnerId, Prune, PruneOutcome, RemoteRun, RemoteStop, RescueBy, Rev, Scope,
    Settlement, SpendBy, SpendQuery, Store, StoreError, Timestamp, Visibility,
};
use outlast_store::SqliteStore;
use outlast_testkit::clock::{ManualClock, START};
use outlast_testkit::store_suite::{LEASE, a_job, a_report, an_insert, profiles, worker};
use serde_json::json;
use tempfile::TempDir;

#[tokio::test]
async fn every_job_of_schema_1_is_there_under_the_newest() {
    let dir = schema_1();
    let clock = Arc::new(ManualClock::default());
    assert!(SqliteStore::read(&dir.path().join("jobs.db"), clock).unwrap().is_none());
    let store = open(&dir.path().join("jobs.db"), START).unwrap();
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    let query = JobQuery { limit: 100, ..JobQuery::default() };
    let page = store.list(&Scope::Operator, &query).await.unwrap();
    let titles: Vec<_> = page.jobs.iter().map(|summary| summary.title.as_str()).collect();
    assert_eq!(titles, ["Six", "Five", "Four", "Three", "Two", "Über"]);
    assert_eq!(page.jobs[3].visibility, Visibility::Unpromised);
    assert_eq!(store.rev().await.unwrap(), Rev(21));

    let [one, two, three, four, five, six] = read_all(&store).await;
    let JobState::Succeeded { at: START, output } = &one.state else { panic!("{one:?}") };
    assert!(matches!(&output.body, Body::Report { text, .. } if text == "because"));
    assert_eq!(*one.new.request.json(), json!({ "question": "why", "weight": 0.1 }));
    assert_eq!((one.turn, one.new.priority, one.new.keep), (1, 3, Some(minutes(30))));
    assert!(matches!(two.state, JobState::Failed { .. }));
    assert_eq!((two.failures.len(), two.turn, two.fence), (1, 2, Fence(2)));
    let JobState::Cancelled { remote: RemoteStop::Owed, .. } = three.state else {
        panic!("{three:?}")
    };
    let run = RemoteRun {
        provider: "perplexity".to_owned(),
        id: "run-3".to_owned(),
        cursor: Some("7".to_owned()),
        begun_at: Timestamp::from_millis(1_794_709_240_000),
    };
    assert_eq!(store.pending_stops(&profiles(), 9).await.unwrap(), [(three.id, run)]);
    assert!(matches!(four.state, JobState::Cancelled { remote: RemoteStop::Told, .. }));
    assert!(matches!(five.state, JobState::Running { .. }));
    assert_eq!(five.checkpoint, Checkpoint::Beginning { key: "k-5".to_owned() });
    assert_eq!(five.progress.as_ref().and_then(|progress| progress.percent), Some(40));
    assert!(matches!(six.state, JobState::Queued { .. }));

    // The store continues to work: the dead worker's job returns to the queue and is completed.
    assert_eq!(store.rescue(&RescueBy::DeadProcess).await.unwrap().jobs, 1);
    let claimed = store.claim(&worker("w1"), &profiles(), LEASE).await.unwrap().unwrap();
    assert_eq!((claimed.job.id, claimed.lease.fence), (five.id, Fence(4)));
    assert!(store.has_worker(&profiles()[0]).await.unwrap());
    // G6: a job from before the ledger has no row, whatever its cost.
    let done = Settlement::Succeed { output: a_report().into(), raw: None };
    store.settle(&claimed.lease, done).await.unwrap();
    let query = SpendQuery { by: SpendBy::Day, since: Day(0) };
    assert!(store.spend(&Scope::Operator, &query).await.unwrap().is_empty());
}

#[tokio::test]
async fn keys_mean_the_same_after_the_migration() {
    let window_of_day = 1_794_795_600_000;
    // The owner, the key, the time, and whether the key still finds its job.
    let table = [
        ("alice", "day", START.as_millis(), true),
        ("alice", "day", window_of_day - 1, true),
        ("alice", "day", window_of_day, false),
        ("bob", "short", 1_794_709_262_999, true),
        ("bob", "short", 1_794_709_263_000, false),
        ("alice", "open", window_of_day, true),
    ];
    for (owner, text, now, is_valid) in table {
        let dir = schema_1();
        let store = open(&dir.path().join("jobs.db"), Timestamp::from_millis(now)).unwrap();
        let insert = |input| {
            let life = KeyLife::For(minutes(1));
            let key = Key { text: text.to_owned(), input_hash: [input; 32], life, identity: None };
            let job = NewJob { owner: OwnerId::new(owner), ..a_job() };
            store.insert(Insert { key: Some(key), ..an_insert(job) })
        };
        let other = insert(2).await;
        match is_valid {
            true => {
                assert!(
                    matches!(other, Err(StoreError::KeyConflict(_))),
                    "{text} {now}: {other:?}"
                );
                let same = insert(1).await;
                assert!(
                    matches!(same, Ok(InsertOutcome::Existing { .. })),
                    "{text} {now}: {same:?}"
                );
            }
            false => assert!(matches!(other, Ok(InsertOutcome::New(_))), "{text} {now}: {other:?}"),
        }
        assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    }
}

/// Promise 2: a held call from schema 3 is found again, and expires after a call was answered.
#[tokio::test]
async fn held_calls_of_schema_3_attach_after_the_migration() {
    let dir = schema_1();
    let path = dir.path().join("jobs.db");
    let old = raw(&path);
    old.execute_batch(include_str!("../src/sqlite/migrations/2.sql")).unwrap();
    old.execute_batch(include_str!("../src/sqlite/migrations/3.sql")).unwrap();
    let key = Key::research("perplexity_search", [3; 32], HeldAnswer::Quick);
    let insert = "INSERT INTO keys (owner, text, job, input_hash, made_at, holds, span)
                  SELECT owner, ?1, seq, ?2, created_at, 'until_answered', 1800000 FROM jobs WHERE seq = 2";
    old.execute("DELETE FROM keys WHERE job = 2", []).unwrap();
    old.execute(insert, (&key.text, &key.input_hash[..])).unwrap();
    old.execute_batch("PRAGMA user_version = 3").unwrap();
    drop(old);

    let store = open(&path, START).unwrap();
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    let ask = async || {
        let owner = read_all(&store).await[1].new.owner.clone();
        let (job, key) = (NewJob { owner, ..a_job() }, Some(key.clone()));
        store.insert(Insert { key, ..an_insert(job) }).await
    };
    let Ok(InsertOutcome::Existing { job, key: found }) = ask().await else { panic!("not found") };
    assert_eq!(found.answered_at, None);
    assert_eq!(found.life, KeyLife::UntilAnswered { after_end: minutes(30) });
    store.record_answer(&job.id).await.unwrap();
    let Ok(InsertOutcome::New(_)) = ask().await else { panic!("it was answered") };
    let Ok(InsertOutcome::Existing { key, .. }) = ask().await else { panic!("not found") };
    let life = KeyLife::Replays { unanswered: minutes(30), answered: minutes(1) };
    assert_eq!(key.life, life, "the new call has its own kind of key");
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn what_was_finished_before_the_migration_is_forgotten_after_it() {
    let dir = schema_1();
    let retention = Timestamp::from_millis(1_794_711_060_000);
    let window = Timestamp::from_millis(1_794_795_600_000);
    let store = open(&dir.path().join("jobs.db"), retention).unwrap();
    let expired = store.prune(&Scope::Operator, &Prune::Expired).await.unwrap();
    assert_eq!(
        expired,
        PruneOutcome { jobs: 1, next_expiry: Some(window) },
        "job 4; job 1 has its key"
    );
    drop(store);
    let store = open(&dir.path().join("jobs.db"), window).unwrap();
    let expired = store.prune(&Scope::Operator, &Prune::Expired).await.unwrap();
    assert_eq!(expired, PruneOutcome { jobs: 1, next_expiry: None }, "job 3 has a pending stop");
}

#[tokio::test]
async fn a_migration_that_fails_half_way_leaves_schema_1_as_it_was() {
    let dir = schema_1();
    let path = dir.path().join("jobs.db");
    // Blocks the last step of the migration.
    raw(&path).execute_batch("CREATE TABLE workers (obstacle TEXT)").unwrap();
    let before = dump(&path);
    for _ in 0..2 {
        let refused = open(&path, START).err();
        assert!(matches!(refused, Some(StoreError::Unavailable(_))), "{refused:?}");
        assert_eq!(dump(&path), before);
    }
    raw(&path).execute_batch("DROP TABLE workers").unwrap();
    let store = open(&path, START).unwrap();
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    read_all(&store).await;
}

#[tokio::test]
async fn a_process_killed_in_the_middle_of_a_migration_leaves_schema_1() {
    let dir = schema_1();
    let path = dir.path().join("jobs.db");
    let before = dump(&path);
    let dying = raw(&path);
    // The smallest possible cache, so that uncommitted pages reach the log.
    dying.execute_batch("PRAGMA cache_size = 1; BEGIN IMMEDIATE").unwrap();
    dying.execute_batch(include_str!("../src/sqlite/migrations/2.sql")).unwrap();
    let changed: i64 =
        dying.query_row("SELECT count(*) FROM workers", [], |row| row.get(0)).unwrap();
    assert_eq!(changed, 0, "the migration was under way");
    let crashed = TempDir::new().unwrap();
    for name in ["jobs.db", "jobs.db-wal"] {
        std::fs::copy(dir.path().join(name), crashed.path().join(name)).unwrap();
    }
    let path = crashed.path().join("jobs.db");
    assert!(std::fs::metadata(crashed.path().join("jobs.db-wal")).unwrap().len() > 0);
    assert_eq!(dump(&path), before);
    let store = open(&path, START).unwrap();
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    read_all(&store).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_processes_may_find_the_old_schema_at_once() {
    let dir = schema_1();
    let path = dir.path().join("jobs.db");
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let path = path.clone();
            tokio::task::spawn_blocking(move || open(&path, START).unwrap())
        })
        .collect();
    for task in tasks {
        read_all(&task.await.unwrap()).await;
    }
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_alone() {
    let dir = schema_1();
    let path = dir.path().join("jobs.db");
    drop(open(&path, START).unwrap());
    raw(&path).execute_batch("PRAGMA user_version = 999").unwrap();
    let before = dump(&path);
    let refused = open(&path, START).err();
    assert!(matches!(refused, Some(StoreError::Newer { schema: 999 })), "{refused:?}");
    assert_eq!(dump(&path), before);
}

/// Creates a database as the program of schema 1 left it.
fn schema_1() -> TempDir {
    let dir = TempDir::new().unwrap();
    let raw = raw(&dir.path().join("jobs.db"));
    raw.execute_batch("PRAGMA journal_mode = WAL").unwrap();
    raw.execute_batch(include_str!("schema/1.sql")).unwrap();
    raw.execute_batch(include_str!("schema/1_jobs.sql")).unwrap();
    dir
}

/// Returns the full content of a database, including its schema and version.
fn dump(path: &Path) -> Vec<String> {
    let raw = raw(path);
    let lines = |query: &str| -> Vec<String> {
        let mut statement = raw.prepare(query).unwrap();
        let columns = statement.column_count();
        let rows = statement.query_map([], |row| {
            let values: Result<Vec<rusqlite::types::Value>, _> =
                (0..columns).map(|column| row.get(column)).collect();
            Ok(format!("{:?}", values?))
        });
        rows.unwrap().collect::<Result<_, _>>().unwrap()
    };
    let mut dump = lines("PRAGMA user_version");
    dump.extend(lines("SELECT sql FROM sqlite_schema ORDER BY name"));
    for table in ["meta", "jobs", "bodies", "keys", "workers"] {
        let exists = lines(&format!("SELECT 1 FROM sqlite_schema WHERE name = '{table}'"));
        if !exists.is_empty() {
            dump.extend(lines(&format!("SELECT * FROM {table}")));
        }
    }
    dump
}

async fn read_all(store: &SqliteStore) -> [Job; 6] {
    let mut jobs = Vec::new();
    for digit in 1..=6 {
        let id = digit.to_string().repeat(32).parse().unwrap();
        jobs.push(store.job(&Scope::Operator, &id).await.unwrap().unwrap());
    }
    jobs.try_into().unwrap()
}

fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

fn open(path: &Path, now: Timestamp) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(path, Arc::new(ManualClock::new(now)))
}

#[expect(clippy::disallowed_methods, reason = "tests make what an earlier program made")]
fn raw(path: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(path).unwrap()
}
