//! Turns at writing a conversation's files. In real time, because a turn is waited for on the disk.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{ConversationId, Key, NewJob, OwnerId};
use outlast_engine::{Mirror, MirrorOptions, Options};
use serde_json::json;
use tokio::sync::Notify;

use crate::bench::{Bench, Process, owner, research};
use crate::moody::{Method, Mood};

fn asked() -> (NewJob, Option<Key>) {
    let job = NewJob {
        conversation: Some(ConversationId::new("conversation-1")),
        ask: json!({ "messages": [{ "role": "user", "content": "why?" }] }),
        ..research()
    };
    (job, Some(Key::given("again", [7; 32])))
}

/// A process of its own, as far as files and locks know.
async fn process(bench: &Bench, dir: &std::path::Path) -> Arc<Process> {
    let mirror = Mirror::open(MirrorOptions {
        logs_dir: dir.join("logs"),
        state_dir: dir.join("mirror"),
        owner: OwnerId::new("ann"),
    });
    let options = Options { mirror: Some(Arc::new(mirror.unwrap())), ..Options::default() };
    Arc::new(bench.process_without_worker_with(options).await)
}

/// Of two processes that write the same conversation, the one that read an older state has written it before the other
/// one reads the newer.
#[tokio::test]
async fn an_older_state_is_never_written_over_a_newer_one() {
    let dir = tempfile::tempdir().unwrap();
    let bench = Bench::new();
    let (slow, quick) = (process(&bench, dir.path()).await, process(&bench, dir.path()).await);
    let (job, key) = asked();
    let id = slow.engine.start(job, key).await.unwrap().job.id;

    // It has read that the job is pending, and is held up before it writes.
    let held_up = Arc::new(Notify::new());
    bench.store.next(Method::Turns, [Mood::After(held_up.clone())]);
    let read = bench.store.calls(Method::Turns).len();
    let again = |process: &Arc<Process>| {
        let (process, (job, key)) = (process.clone(), asked());
        tokio::spawn(async move { process.engine.start(job, key).await.unwrap() })
    };
    let older = again(&slow);
    while bench.store.calls(Method::Turns).len() == read {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    slow.engine.cancel(&owner(), &id).await.unwrap().unwrap();
    let mut newer = again(&quick);
    let waits = tokio::time::timeout(Duration::from_millis(300), &mut newer).await;
    assert!(waits.is_err(), "it waits for its turn");
    held_up.notify_one();
    older.await.unwrap();
    newer.await.unwrap();
    let status = std::fs::read_to_string(dir.path().join("logs/conversation-1/status.json"));
    assert!(status.unwrap().contains("\"status\": \"cancelled\""));
}
