//! Several real processes on one directory, killed with SIGKILL at random moments.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use outlast_core::conversation::Conversation;
use outlast_core::{ConversationId, ConversationQuery, Scope, Store as _};
use outlast_mirror::{JobFile, StatusFile};

use crate::bench::{Files, MAX_WAIT, TestDir, ann};
use crate::child::Busy;

/// The number of kills: a few, or the number that the full run requests.
fn kills() -> u32 {
    #[expect(
        clippy::disallowed_methods,
        reason = "the size of the full run comes from the environment"
    )]
    let asked = std::env::var("OUTLAST_TEST_MIRROR_KILLS");
    asked.ok().map_or(10, |asked| asked.parse().unwrap())
}

/// The number of kills in the same directory.
const KILLS_EACH: u32 = 10;

/// Design, mirror: a crash at any moment leaves every file complete, and the next process corrects them.
#[tokio::test]
async fn after_a_kill_at_any_moment_files_are_complete_and_the_next_process_corrects_them() {
    let (mut killed, mut seen) = (0, 0);
    while killed < kills() {
        let place = TestDir::new();
        for _ in 0..KILLS_EACH {
            let mut busy = Busy::spawn(place.dir.path());
            busy.answered().await;
            // The moment is random on purpose.
            tokio::time::sleep(Duration::from_millis(fastrand::u64(0..150))).await;
            busy.kill().await;
            killed += 1;
            seen += every_file_is_whole(&place.logs_dir());
        }
        made_right(&place).await;
    }
    println!("{killed} kills, {seen} folders read, every file whole");
}

/// Two processes start, run and write conversations in the same directory; a reader never sees an older state
/// after a newer one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_never_write_an_older_state_over_a_newer_one() {
    let place = TestDir::new();
    let mut busy = [Busy::spawn(place.dir.path()), Busy::spawn(place.dir.path())];
    let mut latest: HashMap<String, (String, String)> = HashMap::new();
    let mut looks = 0;
    for _ in 0..30 {
        for process in &mut busy {
            process.answered().await;
        }
        for entry in fs::read_dir(place.logs_dir()).unwrap() {
            let entry = entry.unwrap();
            let Some(status) = Files::read(&entry.path()).status else { continue };
            let name = entry.file_name().into_string().unwrap();
            let now = (status.started_at, status.updated_at);
            let before = latest.insert(name, now.clone());
            assert!(before.as_ref().is_none_or(|before| *before <= now), "{before:?} then {now:?}");
            looks += 1;
        }
    }
    let [one, other] = busy;
    one.kill().await;
    other.kill().await;
    every_file_is_whole(&place.logs_dir());
    made_right(&place).await;
    println!("{looks} looks at {} conversations, none went back", latest.len());
}

/// Reads every file; returns the number of folders.
fn every_file_is_whole(logs_dir: &Path) -> usize {
    let mut folders = 0;
    for entry in fs::read_dir(logs_dir).unwrap() {
        let folder = entry.unwrap().path();
        let files = Files::read(&folder);
        assert!(files.conversation.is_some() || files.status.is_none(), "{}", folder.display());
        for file in fs::read_dir(&folder).unwrap() {
            let name = file.unwrap().file_name().into_string().unwrap();
            let known = ["conversation.json", "status.json", "job.json"];
            let unborn = known.iter().any(|known| name == format!(".{known}.tmp"));
            assert!(unborn || known.contains(&name.as_str()), "{name}");
        }
        folders += 1;
    }
    folders
}

/// A process that only follows brings every file up to date with the store.
async fn made_right(place: &TestDir) {
    let mut process = place.face().await;
    process.follow();
    let mut after = None;
    loop {
        let query = ConversationQuery { limit: 100, after, ..ConversationQuery::default() };
        let page = process.store.conversations(&ann(), &query).await.unwrap();
        for summary in &page.conversations {
            tokio::time::timeout(MAX_WAIT, right(place, &process.store, &summary.id))
                .await
                .unwrap_or_else(|_| panic!("{} is never right", summary.id));
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    process.leave().await;
}

async fn right(place: &TestDir, store: &outlast_store::SqliteStore, id: &ConversationId) {
    let turns = store.turns(&Scope::Owner(ann()), id).await.unwrap();
    let conversation = Conversation::from_turns(id.clone(), turns).unwrap();
    let status = StatusFile::of(&conversation, conversation.last().updated_at);
    let said: Vec<String> = conversation.messages().into_iter().map(|said| said.content).collect();
    loop {
        let files = Files::read(&place.folder(id));
        let unborn = fs::read_dir(place.folder(id)).into_iter().flatten().flatten();
        let unborn = unborn.filter(|file| file.file_name().to_string_lossy().starts_with('.'));
        if files.status.as_ref() == Some(&status)
            && files.said() == said
            && files.job == JobFile::of(&conversation)
            && unborn.count() == 0
        {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
