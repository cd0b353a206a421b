//! The PostgreSQL store against the memory store, by random operations: see `outlast_testkit::model`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use outlast_core::{Clock, Store};
use outlast_store::{MemoryStore, PostgresStore};
use outlast_testkit::model::{self, TestedStore};

use crate::database::Database;

/// Schemas of the cases, found by their folders.
#[derive(Default)]
struct Postgres(Mutex<HashMap<PathBuf, Database>>);

impl Postgres {
    /// The schema of an ended case, whose folder is gone, without what was in it: to make one takes longer than most cases.
    fn left_behind(&self) -> Option<Database> {
        let mut known = self.0.lock().unwrap();
        let ended = known.keys().find(|dir| !dir.exists())?.clone();
        known.remove(&ended)
    }

    async fn for_a_new_case(&self) -> Database {
        match self.left_behind() {
            Some(database) => {
                database.empty().await;
                database
            }
            None => Database::fresh().await,
        }
    }
}

impl TestedStore for Postgres {
    type Handle = PostgresStore;
    const CARRIES: bool = false;

    fn model(&self, clock: Arc<dyn Clock>) -> Box<dyn Store> {
        Box::new(MemoryStore::new(clock))
    }

    async fn open(&self, clock: Arc<dyn Clock>, dir: &Path) -> PostgresStore {
        let known = self.0.lock().unwrap().get(dir).cloned();
        let database = match known {
            Some(database) => database,
            None => {
                let database = self.for_a_new_case().await;
                self.0.lock().unwrap().insert(dir.to_owned(), database.clone());
                database
            }
        };
        database.open_with(Some(clock)).await
    }

    async fn crash(&self, handle: PostgresStore) {
        handle.close().await;
    }

    async fn problems(&self, handle: &PostgresStore) -> Vec<String> {
        handle.check().await.unwrap()
    }
}

/// F2: the same answers as the model, whatever is done.
#[test]
fn f2_the_postgresql_store_does_what_the_memory_store_does() {
    model::run(&Postgres::default(), 400);
}
