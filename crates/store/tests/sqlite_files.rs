//! The SQLite store's handling of its files: reopening, damage, privacy, and files of other programs.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers end the test, like the tests")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use outlast_core::{
    Checkpoint, ConversationId, Cost, Insert, InsertOutcome, Job, JobQuery, NewJob, Progress,
    RemoteStop, Rev, Scope, Settlement, Store, StoreError,
};
use outlast_store::SqliteStore;
use outlast_testkit::clock::ManualClock;
use outlast_testkit::store_suite::{
    LEASE, a_failure, a_job, a_key, a_report, a_run, an_insert, profiles, worker,
};
use tempfile::TempDir;

const LOOK_ONCE: outlast_core::ChangeWait =
    outlast_core::ChangeWait { at_most: Duration::ZERO, look_every: Duration::from_millis(25) };

#[tokio::test]
async fn everything_survives_reopening() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("jobs.db");
    let clock = Arc::new(ManualClock::default());
    let store = SqliteStore::open(&path, clock.clone()).unwrap();
    lead_a_life(&store).await;
    let query = JobQuery { limit: 100, ..JobQuery::default() };
    let page = store.list(&Scope::Operator, &query).await.unwrap();
    assert_eq!(page.jobs.len(), 5);
    let mut jobs = Vec::new();
    for summary in &page.jobs {
        jobs.push(store.job(&Scope::Operator, &summary.id).await.unwrap());
    }
    let changes = store.changes(Rev(0), LOOK_ONCE).await.unwrap();
    let owed = store.pending_stops(&profiles(), 10).await.unwrap();
    assert_eq!(owed.len(), 1);
    store.close().await;
    drop(store);

    let store = SqliteStore::open(&path, clock).unwrap();
    assert_eq!(store.list(&Scope::Operator, &query).await.unwrap(), page);
    for (summary, job) in page.jobs.iter().zip(jobs) {
        assert_eq!(store.job(&Scope::Operator, &summary.id).await.unwrap(), job);
    }
    assert_eq!(store.changes(Rev(0), LOOK_ONCE).await.unwrap(), changes);
    assert_eq!(store.pending_stops(&profiles(), 10).await.unwrap(), owed);
    let again = Insert { key: Some(a_key("k", 1)), ..an_insert(a_job()) };
    assert!(matches!(store.insert(again).await, Ok(InsertOutcome::Existing { .. })));
    store.close().await;
}

/// Adds one job in each state, with all its related rows.
async fn lead_a_life(store: &SqliteStore) {
    let w1 = worker("w1");
    let claim = || async { store.claim(&w1, &profiles(), LEASE).await.unwrap().unwrap() };
    let talk = NewJob { conversation: Some(ConversationId::new("talk")), ..a_job() };
    insert(store, talk).await;
    let lease = claim().await.lease;
    let succeed = Settlement::Succeed { output: a_report().into(), raw: Some(vec![1].into()) };
    store.settle(&lease, succeed).await.unwrap();

    insert(store, a_job()).await;
    let lease = claim().await.lease;
    let fail = Settlement::Fail { failure: a_failure("no"), raw: None };
    store.settle(&lease, fail).await.unwrap();

    insert(store, a_job()).await;
    let lease = claim().await.lease;
    store.checkpoint(&lease, &Checkpoint::Running(a_run("run-1"))).await.unwrap();
    store.cancel(&Scope::Operator, &lease.job).await.unwrap();

    insert(store, a_job()).await;
    let lease = claim().await.lease;
    let progress = Progress { percent: Some(40), message: "reading".to_owned() };
    store.show_progress(&lease, &progress).await.unwrap();

    let keyed = Insert { key: Some(a_key("k", 1)), ..an_insert(a_job()) };
    assert!(matches!(store.insert(keyed).await, Ok(InsertOutcome::New(_))));
}

#[tokio::test]
async fn a_job_whose_writer_was_never_closed_is_there_after_all() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("jobs.db");
    let store = open(&path).unwrap();
    let job = insert(&store, a_job()).await;
    // As after a crash: no close, no checkpoint of the log.
    std::mem::forget(store);
    let store = open(&path).unwrap();
    assert_eq!(store.job(&Scope::Operator, &job.id).await.unwrap(), Some(job));
}

#[tokio::test]
async fn a_closed_store_leaves_one_file_and_answers_nothing() {
    let dir = TempDir::new().unwrap();
    let store = open(&dir.path().join("jobs.db")).unwrap();
    insert(&store, a_job()).await;
    store.claim(&worker("w1"), &profiles(), LEASE).await.unwrap();
    store.changes(Rev(0), LOOK_ONCE).await.unwrap();
    assert!(dir.path().join("workers/w1.lock").exists());
    store.close().await;
    store.close().await;
    assert!(!dir.path().join("workers/w1.lock").exists());
    assert!(!dir.path().join("jobs.db-wal").exists(), "the log is empty and gone");
    let query = JobQuery { limit: 1, ..JobQuery::default() };
    let refused = store.list(&Scope::Operator, &query).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    let refused = store.changes(Rev(0), LOOK_ONCE).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    let refused =
        store.record_stop(&"0".repeat(32).parse().unwrap(), RemoteStop::Ended, Cost::Unknown).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_left_alone() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("jobs.db");
    open(&path).unwrap().close().await;
    raw(&path).execute_batch("PRAGMA user_version = 99").unwrap();
    let refused = open(&path).err();
    assert!(matches!(refused, Some(StoreError::Newer { schema: 99 })), "{refused:?}");
    let version: u32 = raw(&path).query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    assert_eq!(version, 99);
}

#[tokio::test]
async fn what_is_not_a_database_is_called_damaged_and_left_alone() {
    let dir = TempDir::new().unwrap();
    for (name, garbage) in [("short", "hello".to_owned()), ("long", "garbage ".repeat(4096))] {
        let path = dir.path().join(name);
        std::fs::write(&path, &garbage).unwrap();
        let refused = open(&path).err();
        assert!(matches!(refused, Some(StoreError::Corrupt { .. })), "{refused:?}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), garbage);
    }
}

#[tokio::test]
async fn another_programs_database_is_refused_and_left_alone() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("other.db");
    raw(&path).execute_batch("CREATE TABLE bookmarks (url TEXT); PRAGMA user_version = 1").unwrap();
    let before = std::fs::read(&path).unwrap();
    let refused = open(&path).err();
    assert!(matches!(refused, Some(StoreError::Unavailable(_))), "{refused:?}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn a_directory_is_refused_by_name() {
    let dir = TempDir::new().unwrap();
    let Some(StoreError::Unavailable(source)) = open(dir.path()).err() else { panic!("it opened") };
    assert!(source.to_string().contains(&dir.path().display().to_string()), "{source}");
}

#[tokio::test]
async fn a_path_below_a_file_is_refused_by_name() {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("file"), "").unwrap();
    let refused = open(&dir.path().join("file/jobs.db")).err();
    let Some(StoreError::Unavailable(source)) = refused else { panic!("{refused:?}") };
    assert!(source.to_string().contains("file"), "{source}");
}

#[tokio::test]
async fn a_damaged_row_is_named() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("jobs.db");
    let store = open(&path).unwrap();
    let job = insert(&store, a_job()).await;
    raw(&path).execute_batch("UPDATE jobs SET checkpoint = 'nonsense'").unwrap();
    let read = store.job(&Scope::Operator, &job.id).await;
    let Err(StoreError::Corrupt { at }) = read else { panic!("{read:?}") };
    assert_eq!(at, format!("checkpoint of job {}", job.id));
}

#[cfg(unix)]
#[tokio::test]
async fn files_are_their_owners_alone() {
    use std::os::unix::fs::PermissionsExt;

    let dir = TempDir::new().unwrap();
    let home = dir.path().join("made/here");
    let store = open(&home.join("jobs.db")).unwrap();
    insert(&store, a_job()).await;
    store.claim(&worker("w1"), &profiles(), LEASE).await.unwrap();
    let table = [
        ("", 0o700),
        ("jobs.db", 0o600),
        ("jobs.db-wal", 0o600),
        ("jobs.db-shm", 0o600),
        ("jobs.db.wlock", 0o600),
        ("workers", 0o700),
        ("workers/w1.lock", 0o600),
    ];
    for (name, expected) in table {
        let mode = std::fs::metadata(home.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, expected, "{name} has {mode:o}");
    }
}

async fn insert(store: &SqliteStore, job: NewJob) -> Job {
    match store.insert(an_insert(job)).await {
        Ok(InsertOutcome::New(job)) => job,
        other => panic!("{other:?}"),
    }
}

fn open(path: &Path) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(path, Arc::new(ManualClock::default()))
}

#[expect(clippy::disallowed_methods, reason = "tests open the database directly")]
fn raw(path: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(path).unwrap()
}
