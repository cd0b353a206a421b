//! A mirror that cannot write delays no caller and no job: it logs one line and recovers by itself.

use std::fs;
use std::time::Duration;

use outlast_mirror::StatusWord;
use outlast_testkit::scripted::Act;
use tokio::time::Instant;

use crate::bench::{TestDir, eventually, new_id, turn, until_status};
use crate::log_lines::LogLines;

/// C2: if the mirror cannot write, the call is still answered and a warning is logged.
#[tokio::test]
async fn c2_without_room_for_files_jobs_are_answered_and_files_are_written_later() {
    let log = LogLines::collect();
    let place = TestDir::new();
    let process = place.process().await;
    // A file in place of the directory stops every user, including root.
    fs::write(place.logs_dir(), "in the way").unwrap();
    let began = Instant::now();
    let mut jobs = Vec::new();
    for number in 1..=20 {
        let id = new_id();
        jobs.push((process.start(turn(&id, "why?")).await, id, number));
    }
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    for (job, _, number) in jobs.iter().take(3) {
        process.begun(*number).await;
        process.provider.act(*number, Act::Done("because"));
        process.end(job).await;
    }
    let warnings = log.with("cannot be written");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].starts_with("WARN"), "{warnings:?}");

    fs::remove_file(place.logs_dir()).unwrap();
    for (_, id, number) in &jobs {
        let word = match number {
            1..=3 => StatusWord::Completed,
            4..=8 => StatusWord::InProgress,
            _ => StatusWord::Pending,
        };
        until_status(&place.folder(id), word).await;
    }
    assert_eq!(log.with("cannot be written").len(), 1);
    // Logged after the last file was written, so a reader of files may be ahead of it.
    let over = || log.with("written again").len();
    eventually("the recovery is logged", || over() > 0).await;
    process.leave().await;
    assert_eq!(over(), 1);
}

/// A lock that another process never releases does not delay a start for long.
#[tokio::test]
async fn a_stuck_writer_does_not_delay_a_start_for_long() {
    let log = LogLines::collect();
    let place = TestDir::new();
    let face = place.face().await;
    face.start(turn(&new_id(), "makes the directories")).await;
    let lanes = place.state_dir().join("turns");
    let mut stuck = Vec::new();
    for lane in 0..16 {
        let path = lanes.join(format!("{lane:02}.lock"));
        let file = fs::File::options().create(true).truncate(false).write(true).open(path).unwrap();
        file.lock().unwrap();
        stuck.push(file);
    }
    let began = Instant::now();
    let id = new_id();
    face.start(turn(&id, "why?")).await;
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert_eq!(log.with("holds the lock").len(), 1);
    assert!(!place.folder(&id).exists());
    drop(stuck);
    face.start(turn(&new_id(), "and on")).await;
    assert_eq!(log.with("written again").len(), 1);
    face.leave().await;
}
