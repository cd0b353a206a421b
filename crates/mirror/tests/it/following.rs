//! One process follows at a time, starting where the last one stopped; an older state never replaces a newer
//! one.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use outlast_core::{NewJob, OwnerId, Scope};
use outlast_engine::Options;
use outlast_mirror::StatusWord;
use outlast_testkit::scripted::Act;

use crate::bench::{Files, Process, TestDir, ann, new_id, owner, turn, until, until_status};

fn inodes(folder: &Path) -> Vec<u64> {
    let files = ["conversation.json", "status.json"];
    files.map(|file| fs::metadata(folder.join(file)).unwrap().ino()).to_vec()
}

async fn completed(place: &TestDir, process: &Process, run: usize) -> outlast_core::ConversationId {
    let id = new_id();
    let job = process.start(turn(&id, "why?")).await;
    process.begun(run).await;
    process.provider.act(run, Act::Done("because"));
    process.end(&job).await;
    until_status(&place.folder(&id), StatusWord::Completed).await;
    id
}

#[tokio::test]
async fn after_a_crash_or_a_lost_cursor_the_files_catch_up_and_nothing_is_written_twice() {
    let place = TestDir::new();
    let mut process = place.process().await;
    let (kept, lost) = (completed(&place, &process, 1).await, completed(&place, &process, 2).await);
    process.stop_following_at_once().await;
    let behind = new_id();
    let job = process.start(turn(&behind, "late?")).await;
    process.begun(3).await;
    process.provider.act(3, Act::Done("late."));
    process.end(&job).await;
    // Only the start wrote this file; it may have seen the job running already.
    assert_ne!(Files::read(&place.folder(&behind)).word(), Some(StatusWord::Completed), "behind");
    process.leave().await;

    let before = inodes(&place.folder(&kept));
    fs::remove_dir_all(place.folder(&lost)).unwrap();
    drop(fs::remove_file(place.state_dir().join("cursor.json")));
    let mut process = place.face().await;
    process.follow();
    until_status(&place.folder(&behind), StatusWord::Completed).await;
    until_status(&place.folder(&lost), StatusWord::Completed).await;
    process.leave().await;
    assert_eq!(inodes(&place.folder(&kept)), before, "not written again");

    // With the cursor of a follower that stopped cleanly, old conversations are not even checked.
    fs::remove_dir_all(place.folder(&lost)).unwrap();
    let process = place.process().await;
    completed(&place, &process, 1).await;
    process.leave().await;
    assert!(!place.folder(&lost).exists());
}

#[tokio::test]
async fn a_second_process_follows_when_the_first_is_gone() {
    let place = TestDir::new();
    let mut first = place.process().await;
    let id = new_id();
    let job = first.start(turn(&id, "why?")).await;
    until_status(&place.folder(&id), StatusWord::InProgress).await;
    let mut second = place.face().await;
    second.follow();
    first.begun(1).await;
    first.provider.act(1, Act::Done("because"));
    first.end(&job).await;
    until_status(&place.folder(&id), StatusWord::Completed).await;

    first.stop_following_at_once().await;
    let id = new_id();
    let job = first.start(turn(&id, "and?")).await;
    first.engine.cancel(&owner(), &job).await.unwrap().unwrap();
    until_status(&place.folder(&id), StatusWord::Cancelled).await;
    first.leave().await;
    second.leave().await;
}

/// Changes of another process show within a second: the follower has no worker, and the worker does not follow.
#[tokio::test]
async fn changes_of_another_process_are_followed() {
    let place = TestDir::new();
    let mut face = place.face().await;
    face.follow();
    let mut worker = place.face().await;
    worker.work();
    let id = new_id();
    let job = face.start(turn(&id, "why?")).await;
    worker.begun(1).await;
    worker.provider.act(1, Act::Done("because"));
    worker.end(&job).await;
    let ended = tokio::time::Instant::now();
    until(&place.folder(&id), "completed", |files| files.word() == Some(StatusWord::Completed))
        .await;
    assert!(ended.elapsed() < std::time::Duration::from_secs(1), "{:?}", ended.elapsed());
    face.leave().await;
    worker.leave().await;
}

/// The mirrors of two owners are independent: each has its follower.
#[tokio::test]
async fn two_owners_over_one_store_are_both_followed() {
    let place = TestDir::new();
    let bob = OwnerId::new("bob");
    let mut processes = Vec::new();
    for owner in [ann(), bob.clone()] {
        let mut process = place.face_of(owner, Options::default()).await;
        process.follow();
        processes.push(process);
    }
    for owner in [ann(), bob] {
        let id = new_id();
        let job = processes[0].start(NewJob { owner: owner.clone(), ..turn(&id, "why?") }).await;
        let cancelled = processes[0].engine.cancel(&Scope::Owner(owner), &job).await;
        cancelled.unwrap().unwrap();
        until_status(&place.folder(&id), StatusWord::Cancelled).await;
    }
    for process in processes {
        process.leave().await;
    }
}
