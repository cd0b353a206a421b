//! The output of every command on success, in files under `snapshots/`.

use serde_json::Value;

use super::left_behind::LeftBehind;
use super::snapshot::{Mask, compare};
use crate::support::World;

const ASK: &str = "Why is the sky blue? [[sim:ok;words=60;sources=2;delay_ms=0]]";

/// Creates a finished job, and returns it with its conversation.
pub(super) async fn asked(world: &World, question: &str) -> (String, String) {
    let ran = world.run(&["research", question, "--effort", "low", "--json"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let job: Value = serde_json::from_str(&ran.stdout).unwrap();
    (text(&job["id"]), text(&job["conversation"]))
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

/// Creates a job that failed.
pub(super) async fn failed(world: &World) -> String {
    let ran = world.run(&["research", "Why? [[sim:http;status=400]]"]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let list = world.run(&["jobs", "list", "--json", "--state", "failed", "--limit", "1"]).await;
    let list: Value = serde_json::from_str(&list.stdout).unwrap();
    text(&list["jobs"][0]["id"])
}

#[tokio::test]
async fn every_command_prints_what_it_always_did() {
    let world = World::new().await;
    let (job, conversation) = asked(&world, ASK).await;
    let failed = failed(&world).await;
    let mask = || {
        Mask::new(&world).id(&job, "job").id(&conversation, "conversation").id(&failed, "failed")
    };
    let export = world.data_dir().join("export.md");
    let export = export.to_str().unwrap();
    let commands: [(&str, &[&str]); 16] = [
        ("jobs-list", &["jobs", "list", "--state", "succeeded"]),
        ("jobs-list-json", &["jobs", "list", "--state", "succeeded", "--json"]),
        ("jobs-list-none", &["jobs", "list", "--search", "nothing like it"]),
        ("jobs-show", &["jobs", "show", &job]),
        ("jobs-show-failed", &["jobs", "show", &failed[..8]]),
        ("jobs-wait", &["jobs", "wait", &job[..8]]),
        ("jobs-wait-failed", &["jobs", "wait", &job, &failed]),
        ("jobs-watch", &["jobs", "watch", &job]),
        ("jobs-watch-none", &["jobs", "watch"]),
        ("jobs-prune", &["jobs", "prune"]),
        ("conversations-list", &["conversations", "list", "--state", "succeeded"]),
        ("conversations-list-json", &["conversations", "list", "--state", "succeeded", "--json"]),
        ("conversations-show", &["conversations", "show", &conversation[..12]]),
        ("conversations-export", &["conversations", "export", &conversation]),
        ("conversations-export-file", &["conversations", "export", &conversation, "-o", export]),
        ("conversations-delete", &["conversations", "delete", &conversation, "--yes"]),
    ];
    for (name, arguments) in commands {
        let ran = world.run(arguments).await;
        mask().check(name, arguments, &ran);
    }
}

#[tokio::test]
async fn research_prints_what_it_always_did() {
    let world = World::new().await;
    let arguments = ["research", ASK, "--effort", "low"];
    let ran = world.run(&arguments).await;
    let list = world.run(&["jobs", "list", "--json"]).await;
    let list: Value = serde_json::from_str(&list.stdout).unwrap();
    let (job, conversation) =
        (text(&list["jobs"][0]["id"]), text(&list["jobs"][0]["conversation"]));
    let mask = Mask::new(&world).id(&job, "job").id(&conversation, "conversation");
    // The visible steps of its progress depend on the moment.
    let mut ran = ran;
    ran.stderr = ran
        .stderr
        .lines()
        .filter(|line| !line.starts_with("  "))
        .map(|line| format!("{line}\n"))
        .collect();
    mask.check("research", &arguments, &ran);
    assert_eq!(ran.code, Some(0));
}

#[tokio::test]
async fn detached_research_prints_what_it_always_did() {
    let world = World::new().await;
    let arguments = ["research", ASK, "--effort", "low", "--detach"];
    let ran = world.run(&arguments).await;
    let job = ran.stdout.trim().to_owned();
    let worker = LeftBehind::of(&ran.stderr);
    let mask =
        Mask::new(&world).id(&job, "job").word(&format!("(pid {})", worker.pid), "(pid <pid>)");
    mask.check("research-detach", &arguments, &ran);
    assert!(world.data_dir().join("worker.log").exists());
    worker.leaves().await;
}

#[tokio::test]
async fn cancel_and_retry_print_what_they_always_did() {
    let world = World::new().await;
    let mut server = world.serve_with(&["--no-worker"]).await;
    let job = crate::support::start(&mut server, "ok;words=60;delay_ms=0").await;
    let ran = world.run(&["jobs", "cancel", &job[..8]]).await;
    let mask = || Mask::new(&world).id(&job, "job");
    mask().check("jobs-cancel", &["jobs", "cancel", &job[..8]], &ran);
    let ran = world.run(&["jobs", "retry", &job]).await;
    let retry = ran.stdout.trim().to_owned();
    let worker = LeftBehind::of(&ran.stderr);
    let mask = mask().id(&retry, "retry").word(&format!("(pid {})", worker.pid), "(pid <pid>)");
    mask.check("jobs-retry", &["jobs", "retry", &job], &ran);
    worker.leaves().await;
}

#[tokio::test]
async fn help_is_what_it_always_was() {
    let world = World::new().await;
    let pages: [(&str, &[&str]); 6] = [
        ("help", &["--help"]),
        ("help-research", &["research", "--help"]),
        ("help-jobs", &["jobs", "--help"]),
        ("help-jobs-list", &["jobs", "list", "--help"]),
        ("help-conversations", &["conversations", "--help"]),
        ("help-conversations-export", &["conversations", "export", "--help"]),
    ];
    for (name, arguments) in pages {
        let ran = world.run(arguments).await;
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{arguments:?}");
        compare(name, &ran.stdout);
    }
}
