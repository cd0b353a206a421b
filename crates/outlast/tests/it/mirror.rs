//! Conversations as files, by the real binary. The test puts the turns into the store, as another process would.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outlast_core::{
    ConversationId, Insert, InsertOutcome, Job, NewJob, OwnerId, Profile, Scope, Store, Visibility,
};
use outlast_store::{SqliteStore, SystemClock};
use serde_json::{Value, json};

use crate::support::{START, World, eventually, question};

const ID: &str = "0f8fad5bd9cb469fa16570867728950e";

fn store(world: &World) -> SqliteStore {
    SqliteStore::open(&world.database(), Arc::new(SystemClock)).unwrap()
}

/// Inserts a turn into the store; a server of `profile` will run it.
async fn ask(world: &World, profile: Profile) -> Job {
    let store = store(world);
    let asked = question("ok;words=60;delay_ms=0");
    let job = NewJob {
        owner: OwnerId::new("local"),
        conversation: Some(ConversationId::new(ID)),
        subject: None,
        profile,
        workflow: "deep_research".to_owned(),
        title: "Why is the sky blue?".to_owned(),
        request: asked.into(),
        priority: 0,
        visibility: Visibility::Promised,
        max_failures: 2,
        attempt_timeout: std::time::Duration::from_secs(60),
        life: None,
        keep: None,
    };
    let inserted = store
        .insert(Insert {
            job,
            key: None,
            max_unfinished: 10,
            max_bytes: u64::MAX,
            resumed_run: None,
            takeover: None,
            reservation: None,
            initial_worker: None,
        })
        .await
        .unwrap();
    store.close().await;
    match inserted {
        InsertOutcome::New(job) | InsertOutcome::Existing { job, .. } => job,
    }
}

/// Returns the profile of the server's own jobs.
async fn profile(world: &World, server: &mut outlast_testkit::mcp_process::McpProcess) -> Profile {
    let started = server.structured(START, question("ok;words=20;delay_ms=0")).await;
    let id = started["jobId"].as_str().unwrap().parse().unwrap();
    let store = store(world);
    let job = store.job(&Scope::Operator, &id).await.unwrap().unwrap();
    store.close().await;
    job.new.profile
}

fn unserved() -> Profile {
    Profile::new("no worker has this")
}

fn status(folder: &Path) -> Value {
    let text = std::fs::read(folder.join("status.json")).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

fn logs(dir: PathBuf) -> PathBuf {
    dir.join("conversation-logs").join(ID)
}

/// C3, B14: the server's files have the whole history, with sources, usage and cost.
#[tokio::test]
async fn c3_a_server_shows_a_conversation_from_its_question_to_its_report() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let profile = profile(&world, &mut server).await;
    ask(&world, profile).await;
    let folder = logs(world.data_dir());
    eventually("completed", || status(&folder)["status"] == "completed").await;
    eventually("nothing left to do", || !folder.join("job.json").exists()).await;
    let said = std::fs::read(folder.join("conversation.json")).unwrap();
    let said: Value = serde_json::from_slice(&said).unwrap();
    assert_eq!(said["messageCount"], 2, "{said}");
    assert!(said["messages"][1]["content"].as_str().unwrap().contains("[1]"), "{said}");
    assert!(said["usage"]["total_tokens"].as_u64().unwrap() > 0, "{said}");
    assert!(said["cost"]["usd"].as_f64().unwrap() > 0.0 && said["model"].is_string(), "{said}");
    assert!(!said["searchResults"].as_array().unwrap().is_empty(), "{said}");

    server.close_input();
    let (ended, log) = server.ended().await;
    assert!(ended.success() && !log.contains("WARN"), "{log}");
    let left: Vec<_> =
        std::fs::read_dir(world.data_dir().join("conversation-logs")).unwrap().collect();
    assert_eq!(left.len(), 1, "conversations alone, and nothing of the mirror's own: {left:?}");
}

#[tokio::test]
async fn the_directory_is_where_the_configuration_says() {
    let mut world = World::new().await;
    let elsewhere = world.data_dir().join("else").join("where");
    world.set("CONVERSATION_LOGS_DIR", elsewhere.to_str().unwrap());
    let server = world.serve().await;
    ask(&world, unserved()).await;
    eventually("shown", || status(&elsewhere.join(ID))["status"] == "pending").await;
    assert!(!logs(world.data_dir()).exists());
    drop(server);
}

/// `--no-mirror` leaves no file; a later server without the flag writes the existing conversations.
#[tokio::test]
async fn without_a_mirror_nothing_is_written() {
    let world = World::new().await;
    let mut server = world.serve_with(&["--no-mirror"]).await;
    ask(&world, unserved()).await;
    server.close_input();
    assert!(server.ended().await.0.success());
    assert!(!world.data_dir().join("conversation-logs").exists());
    assert!(!world.data_dir().join("outlast.db.mirror").exists());

    let listed = world.run(&["jobs", "list"]).await;
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert!(!world.data_dir().join("conversation-logs").exists(), "to look leaves no trace");
    let worker = world.run(&["worker", "--until-idle"]).await;
    assert_eq!(worker.code, Some(0), "{worker:?}");
    assert_eq!(status(&logs(world.data_dir()))["status"], json!("pending"), "shown before it left");
}

/// Promise 7: the process that follows may be killed; the next one continues.
#[tokio::test]
async fn a_server_that_follows_may_be_killed() {
    let world = World::new().await;
    let mut first = world.serve().await;
    let second = world.serve().await;
    let profile = profile(&world, &mut first).await;
    first.kill().await;
    ask(&world, profile).await;
    let folder = logs(world.data_dir());
    eventually("completed", || status(&folder)["status"] == "completed").await;
    drop(second);
}
