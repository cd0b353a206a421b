//! Compares the PostgreSQL store with the memory store by random operations: see `outlast_testkit::model`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};

use outlast_core::{Clock, Store, Timestamp};
use outlast_store::{MemoryStore, PostgresStore};
use outlast_testkit::model::{self, TestedStore};
use tokio_postgres::Client;

use crate::database::Database;

/// A schema for each thread, which its cases reuse one after the other. Connections and the statements prepared on them take
/// longer than most cases.
#[derive(Default)]
struct Postgres(Mutex<HashMap<ThreadId, Schema>>);

struct Schema {
    database: Database,
    client: Client,
    clock: Arc<CaseClock>,
    /// The folder of the case that is using the schema.
    dir: PathBuf,
    /// Stores that the case has not opened yet.
    idle: Vec<PostgresStore>,
}

impl Schema {
    async fn fresh() -> Self {
        let database = Database::fresh().await;
        let client = database.client().await;
        Self { database, client, clock: Arc::default(), dir: PathBuf::new(), idle: Vec::new() }
    }

    /// Removes the data of the previous case.
    async fn begin(&mut self, clock: Arc<dyn Clock>, dir: &Path) {
        if !self.dir.as_os_str().is_empty() {
            self.database.empty(&self.client).await;
        }
        *self.clock.0.lock().unwrap() = Some(clock);
        dir.clone_into(&mut self.dir);
    }
}

/// The clock of the case that is using a store.
#[derive(Default)]
struct CaseClock(Mutex<Option<Arc<dyn Clock>>>);

impl Clock for CaseClock {
    fn now(&self) -> Timestamp {
        self.0.lock().unwrap().as_ref().expect("a case has begun").now()
    }
}

impl Postgres {
    fn schema_of_this_thread(&self) -> Option<Schema> {
        self.0.lock().unwrap().remove(&thread::current().id())
    }

    fn put_back(&self, schema: Schema) {
        self.0.lock().unwrap().insert(thread::current().id(), schema);
    }
}

impl TestedStore for Postgres {
    type Handle = PostgresStore;
    const CARRIES: bool = false;
    const BEGUN_WAITS_FOR_ITS_LEASE: bool = true;

    fn model(&self, clock: Arc<dyn Clock>) -> Box<dyn Store> {
        Box::new(MemoryStore::new(clock))
    }

    async fn open(&self, clock: Arc<dyn Clock>, dir: &Path) -> PostgresStore {
        let mut schema = match self.schema_of_this_thread() {
            Some(schema) => schema,
            None => Schema::fresh().await,
        };
        if schema.dir != dir {
            schema.begin(clock, dir).await;
        }
        let store = match schema.idle.pop() {
            Some(store) => store,
            None => schema.database.open_with(Some(schema.clock.clone())).await,
        };
        self.put_back(schema);
        store
    }

    async fn end(&self, handles: Vec<PostgresStore>) {
        if let Some(mut schema) = self.schema_of_this_thread() {
            schema.idle = handles;
            self.put_back(schema);
        }
    }

    async fn crash(&self, handle: PostgresStore) {
        handle.close().await;
    }

    async fn problems(&self, handle: &PostgresStore) -> Vec<String> {
        handle.check().await.unwrap()
    }
}

/// F2: the store gives the same answers as the model for all operations.
#[test]
fn f2_the_postgresql_store_does_what_the_memory_store_does() {
    model::run(&Postgres::default(), 400);
}
