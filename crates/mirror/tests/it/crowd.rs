//! Many concurrent conversations.

use std::fs;
use std::time::Duration;

use outlast_engine::Options;
use outlast_mirror::StatusWord;
use tokio::time::Instant;

use crate::bench::{TestDir, new_id, owner, turn, until_status};

const CONVERSATIONS: usize = 300;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hundreds_of_conversations_are_mirrored_in_bounded_time() {
    let place = TestDir::new();
    let options = Options { max_unfinished: 10_000, ..Options::default() };
    let mut process = place.face_with(options).await;
    process.follow();
    let began = Instant::now();
    let mut jobs = Vec::new();
    let mut slowest = Duration::ZERO;
    for _ in 0..CONVERSATIONS {
        let (id, asked) = (new_id(), Instant::now());
        let job = process.start(turn(&id, "why?")).await;
        slowest = slowest.max(asked.elapsed());
        jobs.push((id, job));
    }
    let started = began.elapsed();

    let began = Instant::now();
    for (_, job) in &jobs {
        process.engine.cancel(&owner(), job).await.unwrap().unwrap();
    }
    for (id, _) in &jobs {
        until_status(&place.folder(id), StatusWord::Cancelled).await;
    }
    let cancelled = began.elapsed();
    process.leave().await;

    let began = Instant::now();
    fs::remove_file(place.state_dir().join("cursor.json")).unwrap();
    let last = jobs.first().unwrap();
    fs::remove_dir_all(place.folder(&last.0)).unwrap();
    let mut process = place.face().await;
    process.follow();
    // The newest come first, so the first one is checked last.
    until_status(&place.folder(&last.0), StatusWord::Cancelled).await;
    let caught_up = began.elapsed();
    process.leave().await;
    println!(
        "{CONVERSATIONS} conversations: started in {started:.1?} (slowest {slowest:.1?}), ended in \
         {cancelled:.1?}, looked through without a cursor in {caught_up:.1?}"
    );
    assert!(started + cancelled + caught_up < Duration::from_secs(120));
}
