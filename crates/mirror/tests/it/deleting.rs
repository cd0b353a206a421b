//! A conversation that a person deletes loses its files; no other files are touched.

use std::fs;

use outlast_core::{ConversationId, Prune, Scope, Store as _, StoreError};
use outlast_mirror::StatusWord;

use crate::bench::{Process, TestDir, ann, eventually, new_id, owner, turn, until_status};

async fn cancelled(place: &TestDir, process: &Process) -> ConversationId {
    let id = new_id();
    let job = process.start(turn(&id, "why?")).await;
    process.engine.cancel(&owner(), &job).await.unwrap().unwrap();
    until_status(&place.folder(&id), StatusWord::Cancelled).await;
    id
}

/// A8: conversations are deleted only by a person, and then with their files.
#[tokio::test]
async fn a8_a_deleted_conversation_takes_its_files_along() {
    let place = TestDir::new();
    let mut process = place.face().await;
    process.follow();
    let (gone, annotated) = (cancelled(&place, &process).await, cancelled(&place, &process).await);
    fs::write(place.folder(&annotated).join("notes.md"), "mine").unwrap();
    // Deleted through another process, which does not follow.
    let other = place.face().await;
    for id in [&gone, &annotated] {
        other.engine.prune(&owner(), &Prune::Conversation(id.clone())).await.unwrap();
    }
    assert!(!place.folder(&gone).exists());
    let left: Vec<_> = fs::read_dir(place.folder(&annotated)).unwrap().collect();
    assert_eq!(left.len(), 1, "files that we did not write stay: {left:?}");
    assert!(process.mirror.read_archived(&ann(), &gone).await.unwrap().is_none());
    process.leave().await;
    other.leave().await;
}

#[tokio::test]
async fn a_busy_conversation_and_an_older_servers_folder_keep_their_files() {
    let place = TestDir::new();
    let mut process = place.face().await;
    process.follow();
    let busy = new_id();
    process.start(turn(&busy, "why?")).await;
    let refused = process.engine.prune(&owner(), &Prune::Conversation(busy.clone())).await;
    assert!(matches!(refused, Err(StoreError::ConversationBusy(_))));
    until_status(&place.folder(&busy), StatusWord::Pending).await;

    let old = ConversationId::new("20251031-1761930000000");
    fs::create_dir_all(place.folder(&old)).unwrap();
    fs::write(place.folder(&old).join("conversation.json"), r#"{"messages": []}"#).unwrap();
    for scope in [owner(), Scope::Operator] {
        let refused = process.engine.prune(&scope, &Prune::Conversation(old.clone())).await;
        assert!(matches!(refused, Err(StoreError::NotFound)));
    }
    assert!(place.folder(&old).join("conversation.json").exists());
    process.leave().await;
}

#[tokio::test]
async fn a_deletion_that_a_crash_cut_short_is_finished_by_the_next_follower() {
    let place = TestDir::new();
    let mut process = place.face().await;
    process.follow();
    let (gone, kept) = (cancelled(&place, &process).await, cancelled(&place, &process).await);
    process.stop_following_at_once().await;
    // The leftovers of a process that crashed during a deletion: its note, and the store without the
    // conversation.
    let notes = place.state_dir().join("going");
    fs::create_dir_all(&notes).unwrap();
    for id in [&gone, &kept] {
        fs::write(notes.join(id.as_str()), "").unwrap();
    }
    process.store.prune(&owner(), &Prune::Conversation(gone.clone())).await.unwrap();
    assert!(
        process.mirror.read_archived(&ann(), &gone).await.unwrap().is_none(),
        "not read either"
    );
    process.follow();
    eventually("the files are gone", || !place.folder(&gone).exists()).await;
    eventually("no note is left", || fs::read_dir(&notes).unwrap().count() == 0).await;
    assert!(place.folder(&kept).join("conversation.json").exists(), "it was not deleted after all");
    process.leave().await;
}
