//! Compares the SQLite store with the memory store by random operations: see `outlast_testkit::model`.

#![expect(clippy::unwrap_used, reason = "a store that cannot be opened ends the test")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outlast_core::{Clock, Store};
use outlast_store::{MemoryStore, SqliteStore};
use outlast_testkit::clock::ManualClock;
use outlast_testkit::model::{self, TestedStore};
use tempfile::TempDir;

/// Starts every case from a copy of an empty database, because creating the tables takes longer than using them.
struct Sqlite {
    _dir: TempDir,
    empty: PathBuf,
}

impl TestedStore for Sqlite {
    type Handle = SqliteStore;

    fn model(&self, clock: Arc<dyn Clock>) -> Box<dyn Store> {
        Box::new(MemoryStore::new(clock))
    }

    async fn open(&self, clock: Arc<dyn Clock>, dir: &Path) -> SqliteStore {
        let path = dir.join("jobs.db");
        if !path.exists() {
            std::fs::copy(&self.empty, &path).unwrap();
        }
        SqliteStore::open(&path, clock).unwrap()
    }

    async fn crash(&self, handle: SqliteStore) {
        drop(handle);
    }

    async fn problems(&self, handle: &SqliteStore) -> Vec<String> {
        handle.check().await.unwrap()
    }
}

#[test]
fn the_sqlite_store_does_what_the_memory_store_does() {
    let dir = TempDir::new().unwrap();
    let empty = dir.path().join("empty.db");
    let store = SqliteStore::open(&empty, Arc::new(ManualClock::default())).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(store.close());
    model::run(&Sqlite { _dir: dir, empty }, 500);
}
