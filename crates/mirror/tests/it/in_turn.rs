//! Two processes that write the same conversation.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{
    ConversationId, Insert, InsertOutcome, Job, Key, Observer as _, Scope, Store, StoreError,
    StoreEvent, StoreMethod, StoreWrapper,
};
use outlast_engine::Providers;
use outlast_mirror::{Mirror, MirrorOptions};
use outlast_store::{MemoryStore, SystemClock};
use tokio::sync::Notify;

use crate::bench::{ann, owner, turn};

/// A store whose next read of a conversation is delayed before it returns.
struct SlowReads {
    store: Arc<dyn Store>,
    next: Mutex<Option<Arc<HeldUp>>>,
}

#[derive(Default)]
struct HeldUp {
    has_read: Notify,
    go_on: Notify,
}

#[async_trait]
impl StoreWrapper for SlowReads {
    fn inner(&self) -> &dyn Store {
        &*self.store
    }

    fn after(&self, _: StoreMethod, _: Option<&StoreError>) {}

    async fn turns(&self, scope: &Scope, id: &ConversationId) -> Result<Vec<Job>, StoreError> {
        let turns = self.store.turns(scope, id).await;
        let held_up = self.next.lock().unwrap().take();
        if let Some(held_up) = held_up {
            held_up.has_read.notify_one();
            held_up.go_on.notified().await;
        }
        turns
    }
}

/// A separate process, as far as files and locks are concerned.
fn process(store: Arc<dyn Store>, dir: &std::path::Path) -> Arc<Mirror> {
    let options =
        MirrorOptions { logs_dir: dir.join("logs"), state_dir: dir.join("mirror"), owner: ann() };
    Arc::new(Mirror::open(store, Providers::new(), options).unwrap())
}

async fn insert(store: Arc<dyn Store>, process: Arc<Mirror>) -> Job {
    let insert = Insert {
        job: turn(&ConversationId::new("conversation-1"), "why?"),
        key: Some(Key::from_caller("again", [7; 32])),
        max_unfinished: 10,
        max_bytes: u64::MAX,
        resumed_run: None,
        takeover: None,
        reservation: None,
        initial_worker: None,
    };
    let inserted = store.insert(insert).await.unwrap();
    if let Some(files) = process.observe(&StoreEvent::Inserted(&inserted)) {
        files.await;
    }
    let (InsertOutcome::New(job) | InsertOutcome::Existing { job, .. }) = inserted;
    job
}

/// If two processes write the same conversation, the one that read an older state finishes writing before the
/// other one reads the newer state.
#[tokio::test]
async fn an_older_state_is_never_written_over_a_newer_one() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(MemoryStore::new(Arc::new(SystemClock)));
    let slow_reads = Arc::new(SlowReads { store: store.clone(), next: Mutex::default() });
    let slow = process(slow_reads.clone(), dir.path());
    let quick = process(store.clone(), dir.path());
    let job = insert(store.clone(), slow.clone()).await;

    // The slow process has read that the job is pending, and is delayed before it writes.
    let held_up = Arc::new(HeldUp::default());
    *slow_reads.next.lock().unwrap() = Some(held_up.clone());
    let older = tokio::spawn(insert(store.clone(), slow));
    held_up.has_read.notified().await;
    store.cancel(&owner(), &job.id).await.unwrap();
    let mut newer = tokio::spawn(insert(store.clone(), quick));
    let waits = tokio::time::timeout(Duration::from_millis(300), &mut newer).await;
    assert!(waits.is_err(), "the quick process waits for the lock");
    held_up.go_on.notify_one();
    older.await.unwrap();
    newer.await.unwrap();
    let status = std::fs::read_to_string(dir.path().join("logs/conversation-1/status.json"));
    assert!(status.unwrap().contains("\"status\": \"cancelled\""));
}
