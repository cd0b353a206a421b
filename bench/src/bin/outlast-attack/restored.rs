//! A backup restored by hand and by command: jobs that were queued in it and have been paid for since are not bought
//! again.

use std::fs;

use crate::target::{START, Target, start};
use crate::{Setting, Verdict};

/// Queues jobs, backs them up, lets them run and be paid for, then restores the backup.
pub(crate) async fn backup(setting: Setting) -> Verdict {
    let target = Target::new(&setting).await;
    let jobs: u64 = 10;
    let mut server = target.serve(&["--no-worker"]).await;
    for number in 0..jobs {
        let scenario = "ok;words=60;delay_ms=0";
        server.structured(START, start(usize::try_from(number).unwrap(), scenario)).await;
    }
    server.close_input();
    server.ended().await;
    let data = target.folder.path().join("data");
    let copy = target.folder.path().join("backup.db");
    let (code, _, said) = target.run(&["store", "backup", copy.to_str().unwrap()]).await;
    if code != Some(0) {
        return Err(format!("no backup: {said}"));
    }
    let mut server = target.serve(&[]).await;
    target.all_become("succeeded").await?;
    server.close_input();
    server.ended().await;
    target.paid(jobs)?;

    // By hand, as people do it.
    for ending in ["", "-wal", "-shm"] {
        drop(fs::remove_file(data.join(format!("outlast.db{ending}"))));
    }
    fs::copy(&copy, data.join("outlast.db")).unwrap();
    let (code, _, said) = target.run(&["worker", "--until-idle"]).await;
    target.paid(jobs).map_err(|how| format!("copied back by hand: {how}"))?;
    if code == Some(0) || !said.contains("restore") {
        return Err(format!("a store that was set back is used without a word: {code:?} {said}"));
    }
    let (code, listed, said) = target.run(&["store", "restore", "--in-place"]).await;
    if code != Some(0) {
        return Err(format!("`store restore --in-place` fails: {listed}{said}"));
    }
    drop(target.run(&["worker", "--until-idle"]).await);
    target.paid(jobs).map_err(|how| format!("restored in place: {how}"))
}
