//! The three files during the lifetime of a conversation.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use outlast_core::{BeginError, Insert, Key, NewJob, ProviderErrorKind, Store as _};
use outlast_mirror::StatusWord;
use outlast_testkit::scripted::{Act, Begin, error};
use tokio::time::Instant;

use crate::bench::{
    Files, MODEL, TestDir, ann, eventually, new_id, owner, turn, until, until_status,
};

#[tokio::test]
async fn c2_the_three_files_exist_before_a_start_returns() {
    let place = TestDir::new();
    // No process follows, so the start itself wrote the files.
    let face = place.face().await;
    let id = new_id();
    let job = face.start(NewJob { priority: 7, ..turn(&id, "why?") }).await;
    let files = Files::read(&place.folder(&id));
    assert_eq!(files.said(), ["why?"]);
    let said = files.conversation.unwrap();
    assert_eq!((said.model.as_deref(), said.message_count), (Some(MODEL), 1));
    let status = files.status.unwrap();
    assert_eq!((status.status, status.attempts), (StatusWord::Pending, 0));
    assert_eq!(status.tool_name, "perplexity_deep_research");
    assert_eq!(status.started_at, said.created_at);
    let todo = files.job.unwrap();
    assert_eq!((todo.job_id, todo.priority, todo.max_attempts), (job.to_string(), 7, 3));
    assert_eq!(todo.params.query, "why?");
    assert_eq!(face.mirror.logs_dir(&ann()), Some(place.logs_dir().as_path()));

    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&place.folder(&id)), 0o700);
    assert_eq!(mode(&place.folder(&id).join("job.json")), 0o600);
    let text = std::fs::read_to_string(place.folder(&id).join("job.json")).unwrap();
    assert!(text.starts_with("{\n  \"conversationId\""), "two spaces: {text}");
}

/// C2 also holds if the process that created the job crashed before writing its files, and the caller asks
/// again.
#[tokio::test]
async fn c2_a_repeated_call_finds_its_files_too() {
    let place = TestDir::new();
    let face = place.face().await;
    let id = new_id();
    let key = || Some(Key::from_caller("again", [7; 32]));
    let insert = Insert {
        job: turn(&id, "why?"),
        key: key(),
        max_unfinished: 10,
        max_bytes: u64::MAX,
        resumed_run: None,
        takeover: None,
        reservation: None,
        initial_worker: None,
    };
    face.store.insert(insert).await.unwrap();
    assert!(!place.folder(&id).exists());
    assert!(face.engine.start(turn(&id, "why?"), key()).await.unwrap().existed);
    let files = Files::read(&place.folder(&id));
    assert!(files.word() == Some(StatusWord::Pending) && files.job.is_some(), "{files:?}");
    face.leave().await;
}

/// B3, B14, C3.
#[tokio::test]
async fn b3_a_job_goes_from_pending_to_completed_and_its_job_file_is_removed() {
    let place = TestDir::new();
    let mut process = place.face().await;
    process.follow();
    let id = new_id();
    let folder = place.folder(&id);
    let job = process.start(turn(&id, "why?")).await;
    until_status(&folder, StatusWord::Pending).await;

    process.work();
    let files = until_status(&folder, StatusWord::InProgress).await;
    assert_eq!(files.status.unwrap().progress.unwrap().percentage, 25);
    process.begun(1).await;
    process.provider.act(1, Act::Progress(60));
    let at_60 = |files: &Files| {
        let status = files.status.as_ref().unwrap();
        status.progress.as_ref().is_some_and(|progress| progress.percentage == 60)
    };
    until(&folder, "B6: progress is shown", at_60).await;

    process.provider.act(1, Act::Done("because"));
    process.end(&job).await;
    let ended = Instant::now();
    let files = until_status(&folder, StatusWord::Completed).await;
    assert!(ended.elapsed() < Duration::from_secs(1), "within a second: {:?}", ended.elapsed());
    assert_eq!(files.said(), ["why?", "because"]);
    let status = files.status.unwrap();
    assert!(status.completed_at.is_some() && status.progress.is_none() && status.error.is_none());
    process.leave().await;
}

/// B3, B9: after a failed attempt the job is pending again, with its error in the history. Then it is
/// cancelled.
#[tokio::test]
async fn b3_a_retry_goes_back_to_pending_and_a_cancel_ends_it() {
    let place = TestDir::new();
    let process = place.process().await;
    process
        .provider
        .next_begins([Begin::Fail(BeginError::NotSent(error(ProviderErrorKind::Unreachable)))]);
    let id = new_id();
    let folder = place.folder(&id);
    let job = process.start(turn(&id, "why?")).await;
    let once = |files: &Files| {
        files.word() == Some(StatusWord::Pending)
            && files.job.as_ref().is_some_and(|job| job.attempts == 1)
    };
    let files = until(&folder, "a failed try", once).await;
    let status = files.status.unwrap();
    assert_eq!((status.attempts, status.error_history.len()), (1, 1));
    assert!(status.error.is_none(), "it has not failed for good");
    assert!(status.error_history[0].timestamp.is_some());

    process.engine.cancel(&owner(), &job).await.unwrap().unwrap();
    let files = until_status(&folder, StatusWord::Cancelled).await;
    assert!(files.status.unwrap().completed_at.is_some());
    process.leave().await;
}

#[tokio::test]
async fn b14_a_job_that_failed_for_good_keeps_its_error_and_its_question() {
    let place = TestDir::new();
    let process = place.process().await;
    process
        .provider
        .next_begins([Begin::Fail(BeginError::Refused(error(ProviderErrorKind::Unauthorized)))]);
    let id = new_id();
    let folder = place.folder(&id);
    process.start(turn(&id, "why?")).await;
    let files = until_status(&folder, StatusWord::Failed).await;
    assert_eq!(files.said(), ["why?"]);
    let status = files.status.unwrap();
    assert_eq!(status.error.unwrap().code, "UNAUTHORIZED");
    assert_eq!(status.error_history.len(), 1);
    process.leave().await;
}

#[tokio::test]
async fn b13_a_follow_up_starts_over_in_the_same_folder() {
    let place = TestDir::new();
    let process = place.process().await;
    let id = new_id();
    let folder = place.folder(&id);
    process
        .provider
        .next_begins([Begin::Fail(BeginError::Refused(error(ProviderErrorKind::Unauthorized)))]);
    process.start(turn(&id, "one?")).await;
    let first = until_status(&folder, StatusWord::Failed).await.status.unwrap();

    let second = process.start(turn(&id, "two?")).await;
    // C2 holds for a follow-up too: its files existed before it was answered.
    let files = Files::read(&folder);
    assert_eq!(files.job.unwrap().params.query, "two?");
    process.begun(2).await;
    process.provider.act(2, Act::Done("two."));
    process.end(&second).await;
    let files = until_status(&folder, StatusWord::Completed).await;
    assert_eq!(files.said(), ["one?", "two?", "two."]);
    let status = files.status.unwrap();
    assert_eq!(status.tool_name, "perplexity_deep_research_followup");
    assert_eq!((status.attempts, status.error_history.len()), (0, 0), "fresh");
    assert!(status.error.is_none() && status.started_at >= first.completed_at.unwrap());
    process.leave().await;
}

/// The files are never a second source of truth.
#[tokio::test]
async fn manual_edits_are_overwritten_by_the_next_change() {
    let place = TestDir::new();
    let mut process = place.face().await;
    process.follow();
    let id = new_id();
    let folder = place.folder(&id);
    process.start(turn(&id, "why?")).await;
    for file in ["conversation.json", "status.json", "job.json"] {
        std::fs::write(folder.join(file), r#"{"status": "completed", "messages": []}"#).unwrap();
    }
    let told = process.engine.conversation(&ann(), &id).await.unwrap().unwrap();
    assert_eq!(told.messages()[0].content, "why?", "not read back");
    process.work();
    // Read as text, because the manual edits do not match the types of the contract until they are overwritten.
    // This file is written last.
    let todo = || std::fs::read_to_string(folder.join("job.json")).unwrap();
    eventually("overwritten", || todo().contains("conversationId")).await;
    assert_eq!(Files::read(&folder).said(), ["why?"]);
    process.leave().await;
}

/// A process that stops writes its last state.
#[tokio::test]
async fn a_graceful_stop_leaves_the_files_up_to_date() {
    let place = TestDir::new();
    let process = place.process().await;
    let id = new_id();
    process.start(turn(&id, "why?")).await;
    process.begun(1).await;
    until_status(&place.folder(&id), StatusWord::InProgress).await;
    process.leave().await;
    let files = Files::read(&place.folder(&id));
    assert_eq!(files.word(), Some(StatusWord::Pending), "released");
    assert!(files.job.is_some());
}
