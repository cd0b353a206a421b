//! Inspections of a store from outside: their results, and that they change nothing.

#![expect(clippy::unwrap_used, reason = "helpers end the test, like the tests")]

use std::path::Path;
use std::sync::Arc;

use outlast_core::{
    EndNotices, InsertOutcome, NoticeClaim, Prune, Scope, StateKind, Store, StoreError,
};
use outlast_store::{
    Inspection, SqliteStore, hold_locks, inspect, locks_that_give_way, sqlite_version,
};
use outlast_testkit::clock::ManualClock;
use outlast_testkit::store_suite::{LEASE, a_job, an_insert, profiles, worker};
use tempfile::TempDir;

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, Arc::new(ManualClock::default())).unwrap()
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_store_that_is_not_there_is_not_made() {
    let dir = TempDir::new().unwrap();
    assert_eq!(inspect(&dir.path().join("far/jobs.db")).unwrap(), None);
    assert_eq!(names(dir.path()), [""; 0]);
    std::fs::write(dir.path().join("jobs.db-wal"), "log").unwrap();
    let found = inspect(&dir.path().join("jobs.db"));
    assert!(matches!(found, Err(StoreError::Corrupt { .. })), "{found:?}");
    assert_eq!(names(dir.path()), ["jobs.db-wal"]);
}

#[tokio::test]
async fn a_store_that_is_read_shows_what_is_there_and_changes_nothing() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("jobs.db");
    let store = open(&path).with_notices(EndNotices::Kept);
    let InsertOutcome::New(job) = store.insert(an_insert(a_job())).await.unwrap() else { panic!() };
    store.cancel(&Scope::Operator, &job.id).await.unwrap();
    assert!(matches!(store.claim_notice(LEASE).await.unwrap(), NoticeClaim::Claimed(_)));
    let read = SqliteStore::read(&path, Arc::new(ManualClock::default())).unwrap().unwrap();
    let found = read.job(&Scope::Operator, &job.id).await.unwrap().unwrap();
    assert_eq!(found.state.kind(), StateKind::Cancelled);
    // No notice is due, which the store can report without writing.
    let notice = read.claim_notice(LEASE).await.unwrap();
    assert!(matches!(notice, NoticeClaim::NoneDue { next: Some(_) }), "{notice:?}");
    assert_eq!(read.prune(&Scope::Operator, &Prune::Expired).await.unwrap().jobs, 0);
    let refused = read.insert(an_insert(a_job())).await;
    assert!(matches!(refused, Err(StoreError::Unavailable { .. })), "{refused:?}");
}

#[test]
fn why_a_store_cannot_be_made_is_said() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("x".repeat(300));
    let refused = SqliteStore::open(&path, Arc::new(ManualClock::default())).err().unwrap();
    assert!(format!("{refused:?}").contains("File name too long"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unfinished_jobs_and_live_workers_are_counted() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("jobs.db");
    let store = open(&path);
    let new = inspect(&path).unwrap().unwrap();
    let newest_schema = new.newest_schema;
    assert_eq!(
        new,
        Inspection { schema: newest_schema, newest_schema, unfinished: 0, live_workers: 0 }
    );
    for _ in 0..2 {
        store.insert(an_insert(a_job())).await.unwrap();
    }
    store.claim(&worker("w1"), &profiles(), LEASE).await.unwrap().unwrap();
    let busy = inspect(&path).unwrap().unwrap();
    assert_eq!((busy.unfinished, busy.live_workers), (2, 1));
    // Dropped like a process that is killed: its lock is free, and its job is still assigned to it.
    drop(store);
    let left = inspect(&path).unwrap().unwrap();
    assert_eq!((left.unfinished, left.live_workers), (2, 0));
}

#[expect(clippy::disallowed_methods, reason = "tests open the database directly")]
#[tokio::test(flavor = "multi_thread")]
async fn older_newer_and_foreign_files_are_distinguished_and_left_alone() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("jobs.db");
    open(&path).close().await;
    let raw = || rusqlite::Connection::open(&path).unwrap();
    let newest = inspect(&path).unwrap().unwrap().newest_schema;
    raw().execute_batch(&format!("PRAGMA user_version = {}", newest + 1)).unwrap();
    assert!(matches!(inspect(&path), Err(StoreError::Newer { schema }) if schema == newest + 1));
    raw().execute_batch("PRAGMA user_version = 1").unwrap();
    assert_eq!(inspect(&path).unwrap().unwrap().schema, 1, "seen, not migrated");
    raw().execute_batch("PRAGMA application_id = 7").unwrap();
    let found = inspect(&path);
    assert!(
        matches!(&found, Err(StoreError::Unavailable(why)) if why.to_string().contains("another program")),
        "{found:?}"
    );
    let holder = raw();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(matches!(inspect(&path), Err(StoreError::Unavailable(_))), "a lock that is held");
}

#[test]
fn locks_give_way_only_when_they_are_let_go() {
    let dir = TempDir::new().unwrap();
    let held = hold_locks(dir.path()).unwrap();
    assert_eq!(locks_that_give_way(dir.path()).unwrap(), [""; 0]);
    drop(held);
    assert_eq!(locks_that_give_way(dir.path()).unwrap(), ["file locks", "SQLite's locks"]);
}

#[test]
fn sqlite_is_new_enough() {
    let version: Vec<u32> = sqlite_version().split('.').map(|part| part.parse().unwrap()).collect();
    assert!(version >= vec![3, 53, 2], "{version:?}");
}
