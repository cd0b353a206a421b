//! Calls that leave no trace in the files.

use std::time::Duration;

use outlast_core::{
    BeginError, ConversationId, JobId, Key, NewJob, OwnerId, ProviderErrorKind, Visibility,
};
use outlast_mirror::StatusWord;
use outlast_testkit::scripted::{Act, Begin, error};

use crate::bench::{Files, Process, TestDir, new_id, turn, until, until_status};

async fn hold(process: &Process, id: &ConversationId) -> JobId {
    let held = NewJob { visibility: Visibility::Unpromised, ..turn(id, "why?") };
    process
        .engine
        .start_held(held, Key::for_held_call("perplexity_deep_research", [7; 32]))
        .await
        .unwrap()
        .job
        .id
}

/// Waits until the follower has processed every earlier change.
async fn caught_up(place: &TestDir, process: &Process) {
    let last = new_id();
    process.start(turn(&last, "last")).await;
    until_status(&place.folder(&last), StatusWord::InProgress).await;
}

#[tokio::test]
async fn c5_a_held_call_that_fails_leaves_nothing() {
    let place = TestDir::new();
    let process = place.process().await;
    process
        .provider
        .next_begins([Begin::Fail(BeginError::Refused(error(ProviderErrorKind::Unauthorized)))]);
    let id = new_id();
    let job = hold(&process, &id).await;
    assert!(!place.folder(&id).exists(), "not while it runs");
    process.end(&job).await;
    caught_up(&place, &process).await;
    assert!(!place.folder(&id).exists());
    process.leave().await;
}

#[tokio::test]
async fn c5_a_held_call_that_succeeds_leaves_its_messages() {
    let place = TestDir::new();
    let process = place.process().await;
    let id = new_id();
    hold(&process, &id).await;
    process.begun(1).await;
    process.provider.act(1, Act::Done("because"));
    let answered = |files: &Files| files.said() == ["why?", "because"];
    let files = until(&place.folder(&id), "answered", answered).await;
    assert!(files.status.is_none() && files.job.is_none(), "no turn was promised");
    process.leave().await;
}

#[tokio::test]
async fn only_the_owners_conversations_are_shown() {
    let place = TestDir::new();
    let process = place.process().await;
    let (theirs, hostile) = (new_id(), ConversationId::new("../outside-of-it"));
    process.start(NewJob { owner: OwnerId::new("bob"), ..turn(&theirs, "theirs") }).await;
    process.start(NewJob { conversation: None, ..turn(&theirs, "no conversation") }).await;
    process.start(turn(&hostile, "hostile")).await;
    caught_up(&place, &process).await;
    let folders = std::fs::read_dir(place.logs_dir()).unwrap().count();
    assert_eq!(folders, 1, "the one that was waited for");
    assert!(!place.dir.path().join("outside-of-it").exists());
    assert_eq!(process.mirror.logs_dir(&OwnerId::new("bob")), None);
    process.leave().await;
}

/// A held follow-up is shown once it succeeds, and the status includes it, because an earlier turn was
/// promised.
#[tokio::test]
async fn a_held_follow_up_is_shown_when_it_succeeds() {
    let place = TestDir::new();
    let process = place.process().await;
    let id = new_id();
    let folder = place.folder(&id);
    let first = process.start(turn(&id, "one?")).await;
    process.begun(1).await;
    process.provider.act(1, Act::Done("one."));
    process.end(&first).await;
    let before = until_status(&folder, StatusWord::Completed).await.status;

    let held = hold(&process, &id).await;
    process.begun(2).await;
    caught_up(&place, &process).await;
    assert_eq!(Files::read(&folder).status, before, "hidden so far");
    process.provider.act(2, Act::Done("because"));
    process.end(&held).await;
    let more = |files: &Files| files.said().len() == 4;
    until(&folder, "the second answer", more).await;
    let of_the_second = |files: &Files| files.status != before && files.job.is_none();
    let status = until(&folder, "its status", of_the_second).await.status.unwrap();
    assert_eq!((status.status, status.job_id), (StatusWord::Completed, Some(held.to_string())));
    tokio::time::timeout(Duration::from_secs(10), process.leave()).await.unwrap();
}
