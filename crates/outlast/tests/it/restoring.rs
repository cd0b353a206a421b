//! Promise 4 over a restored backup: its queued jobs may have been run and paid for since, so they are not sent again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use outlast_testkit::mcp_process::McpProcess;
use serde_json::{Value, json};

use crate::support::{POLL, Ran, World, eventually, finished, running, start};

const QUEUED: usize = 10;
const RUNNING: usize = 2;

/// A store that was backed up with jobs in the queue and at the provider, and then continued.
struct BackedUp {
    world: World,
    backup: PathBuf,
    running: Vec<String>,
    queued: Vec<String>,
}

/// Creates a store in which every job but the queued ones has ended, each paid for once.
async fn backed_up() -> BackedUp {
    let mut world = World::new().await;
    world.set("OUTLAST_CONCURRENCY", &RUNNING.to_string());
    let mut server = world.serve().await;
    let mut jobs = Vec::new();
    for _ in 0..RUNNING {
        let id = start(&mut server, "ok;words=60;hold=true").await;
        running(&world, &id).await;
        jobs.push(id);
    }
    let mut queued = Vec::new();
    for _ in 0..QUEUED {
        queued.push(start(&mut server, "ok;words=60;delay_ms=0").await);
    }
    let backup = world.data_dir().join("backup.db");
    let made = world.run(&["store", "backup", backup.to_str().unwrap()]).await;
    assert_eq!(made.code, Some(0), "{made:?}");
    assert_eq!(world.submits(), RUNNING as u64, "the others wait");
    world.simulator.release();
    for id in jobs.iter().chain(&queued) {
        assert_eq!(finished(&mut server, id).await["status"], "COMPLETED");
    }
    assert_eq!(world.submits(), (RUNNING + QUEUED) as u64, "each was paid for once");
    leave(server).await;
    BackedUp { world, backup, running: jobs, queued }
}

async fn leave(mut server: McpProcess) {
    server.close_input();
    let (status, log) = server.ended().await;
    assert!(status.success(), "{log}");
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Checks a server on the restored store: the runs are resumed, nothing is sent again.
async fn assert_nothing_is_bought(backed_up: &BackedUp) {
    let BackedUp { world, running, queued, .. } = backed_up;
    let mut server = world.serve().await;
    for id in queued {
        let ended = finished(&mut server, id).await;
        assert_eq!(ended["status"], "FAILED", "{ended}");
        let shown = world.shown(id).await;
        assert_eq!(shown["failures"][0]["code"], "SUBMIT_UNKNOWN", "{shown}");
        let message = shown["failures"][0]["message"].as_str().unwrap();
        assert!(
            message.contains("restored") && message.contains("may have been accepted and paid for"),
            "{message}"
        );
    }
    for id in running {
        let ended = finished(&mut server, id).await;
        assert_eq!(ended["status"], "COMPLETED", "its run is taken up: {ended}");
    }
    assert_eq!(world.submits(), (RUNNING + QUEUED) as u64, "nothing was sent again");
    // The store is as usable as any other.
    let id = start(&mut server, "ok;words=60;delay_ms=0").await;
    assert_eq!(finished(&mut server, &id).await["status"], "COMPLETED");
    leave(server).await;
    let check = world.run(&["store", "check"]).await;
    assert_eq!(check.code, Some(0), "{check:?}");
}

fn ids(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap()).collect()
}

/// B9a.
#[tokio::test]
async fn b9a_a_restored_backup_buys_nothing_again() {
    let backed_up = backed_up().await;
    let BackedUp { world, backup, running, queued } = &backed_up;
    let refused = world.run(&["store", "restore", text(backup)]).await;
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""), "{refused:?}");
    assert!(
        refused.stderr.contains("12 jobs") && refused.stderr.contains("--force"),
        "{refused:?}"
    );

    // As if an earlier attempt had been killed.
    let rest = world.data_dir().join("outlast.db.restoring");
    std::fs::write(&rest, "half a copy").unwrap();
    let restored = world.run(&["store", "restore", text(backup), "--force", "--json"]).await;
    assert_eq!(restored.code, Some(0), "{restored:?}");
    assert!(!rest.exists());
    let reported: Value = serde_json::from_str(&restored.stdout).unwrap();
    assert_eq!(ids(&reported["ended"]), *queued, "{reported}");
    assert_eq!(ids(&reported["resumed"]), *running, "{reported}");
    assert_eq!(reported["queued"], json!([]));
    let kept = reported["kept"].as_str().unwrap();
    let url = format!("sqlite:{kept}");
    let old = world.run(&["jobs", "list", "--json", "--store", &url]).await;
    let old: Value = serde_json::from_str(&old.stdout).unwrap();
    assert_eq!(old["jobs"].as_array().unwrap().len(), RUNNING + QUEUED, "{old}");
    assert!(old["jobs"].as_array().unwrap().iter().all(|job| job["state"] == "succeeded"), "{old}");
    assert_nothing_is_bought(&backed_up).await;
}

/// The mark next to the store records that the store was newer.
#[tokio::test]
async fn b9a_a_backup_copied_over_the_store_by_hand_does_not_start() {
    let backed_up = backed_up().await;
    let BackedUp { world, backup, queued, .. } = &backed_up;
    std::fs::copy(backup, world.database()).unwrap();
    let ran = world.run(&["serve"]).await;
    assert_is_outdated(&ran);
    let doctor = world.run(&["doctor"]).await;
    assert!(doctor.stdout.contains("outlast store restore --in-place"), "{doctor:?}");
    assert_eq!(world.run(&["jobs", "list"]).await.code, Some(0), "it can be read");

    let restored = world.run(&["store", "restore", "--in-place"]).await;
    assert_eq!(restored.code, Some(0), "{restored:?}");
    for id in queued {
        let line = restored.stdout.lines().find(|line| line.starts_with(id)).unwrap();
        assert!(line.contains("ended"), "{line}");
    }
    assert!(restored.stderr.contains("10 ended with SUBMIT_UNKNOWN"), "{restored:?}");
    assert_nothing_is_bought(&backed_up).await;
}

/// The same for files that were copied while no process had them open, which nothing in them shows.
#[tokio::test]
async fn b9a_an_older_copy_of_the_file_is_known_by_the_mark_beside_it() {
    let world = World::new().await;
    let mut server = world.serve_with(&["--no-worker"]).await;
    start(&mut server, "ok;words=60;delay_ms=0").await;
    leave(server).await;
    let copy = std::fs::read(world.database()).unwrap();
    let worker = world.run(&["worker", "--until-idle"]).await;
    assert_eq!((worker.code, world.submits()), (Some(0), 1), "{worker:?}");
    let whole = std::fs::read(world.database()).unwrap();

    std::fs::write(world.database(), copy).unwrap();
    assert_is_outdated(&world.run(&["serve"]).await);
    assert_is_outdated(&world.run(&["worker", "--until-idle"]).await);
    // The right file is accepted at once.
    std::fs::write(world.database(), whole).unwrap();
    let worker = world.run(&["worker", "--until-idle"]).await;
    assert_eq!((worker.code, world.submits()), (Some(0), 1), "{worker:?}");
}

/// Copies a folder with its content.
fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (kind, target) = (entry.file_type().unwrap(), to.join(entry.file_name()));
        if kind.is_dir() {
            copy_folder(&entry.path(), &target);
        } else if kind.is_file() {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// B9a: a snapshot of the whole data directory, including the mark, is rolled back after its jobs were paid for.
#[tokio::test]
async fn b9a_a_rolled_back_data_directory_is_refused_until_it_is_restored() {
    if outlast_testkit::postgres::everywhere() {
        return;
    }
    let world = World::new().await;
    let mut server = world.serve_with(&["--no-worker"]).await;
    for _ in 0..6 {
        start(&mut server, "ok;words=60;delay_ms=0").await;
    }
    leave(server).await;
    let (data, snapshot) = (world.data_dir(), world.data_dir().with_extension("snapshot"));
    copy_folder(&data, &snapshot);
    let worker = world.run(&["worker", "--until-idle"]).await;
    assert_eq!((worker.code, world.submits()), (Some(0), 6), "{worker:?}");

    std::fs::remove_dir_all(&data).unwrap();
    copy_folder(&snapshot, &data);
    assert_is_outdated(&world.run(&["worker", "--until-idle"]).await);
    assert_is_outdated(&world.run(&["serve"]).await);
    let doctor = world.run(&["doctor"]).await;
    assert!(doctor.stdout.contains("outlast store restore --in-place"), "{doctor:?}");
    assert_eq!(world.submits(), 6, "nothing was sent again");

    let restored = world.run(&["store", "restore", "--in-place"]).await;
    assert_eq!(restored.code, Some(0), "{restored:?}");
    let worker = world.run(&["worker", "--until-idle"]).await;
    assert_eq!((worker.code, world.submits()), (Some(0), 6), "{worker:?}");
    // And the next roll-back is noticed too.
    std::fs::remove_dir_all(&data).unwrap();
    copy_folder(&snapshot, &data);
    assert_is_outdated(&world.run(&["worker", "--until-idle"]).await);
}

/// A data directory at another path, moved or copied, is used as before; so is one whose second mark cannot be written.
#[tokio::test]
async fn b9a_a_moved_or_copied_data_directory_is_used_as_before() {
    if outlast_testkit::postgres::everywhere() {
        return;
    }
    let mut world = World::new().await;
    let mut server = world.serve_with(&["--no-worker"]).await;
    start(&mut server, "ok;words=60;delay_ms=0").await;
    leave(server).await;
    let (data, copy) = (world.data_dir(), world.data_dir().with_extension("copy"));
    copy_folder(&data, &copy);
    let worker = world.run(&["worker", "--until-idle"]).await;
    assert_eq!(worker.code, Some(0), "{worker:?}");
    world.set("OUTLAST_DATA_DIR", text(&copy));
    let worker = world.run(&["worker", "--until-idle"]).await;
    assert_eq!(worker.code, Some(0), "a copy elsewhere: {worker:?}");
    let moved = data.with_extension("moved");
    std::fs::rename(&data, &moved).unwrap();
    world.set("OUTLAST_DATA_DIR", text(&moved));
    let worker = world.run(&["worker", "--until-idle"]).await;
    assert_eq!(worker.code, Some(0), "moved: {worker:?}");
    std::fs::rename(&moved, &data).unwrap();
    world.set("OUTLAST_DATA_DIR", text(&data));
    let blocked = data.with_extension("state");
    std::fs::write(&blocked, "not a directory").unwrap();
    world.set("XDG_STATE_HOME", text(&blocked));
    let worker = world.run(&["worker", "--until-idle"]).await;
    assert_eq!(worker.code, Some(0), "moved back: {worker:?}");
    let warnings = worker.stderr.matches("would not be noticed").count();
    assert_eq!(warnings, 1, "one warning: {worker:?}");
}

fn assert_is_outdated(ran: &Ran) {
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
    assert!(ran.stderr.contains("the store is an older copy"), "{ran:?}");
    assert!(
        ran.stderr.contains("hint: ") && ran.stderr.contains("outlast store restore --in-place"),
        "{ran:?}"
    );
}

/// A backup on another machine, without a mark or other files next to it.
#[tokio::test]
async fn b9a_a_backup_on_a_new_machine_is_restored_without_force_and_never_started_as_it_is() {
    let BackedUp { world, backup, running, queued } = backed_up().await;
    let new = world.data_dir().join("new-machine");
    std::fs::create_dir(&new).unwrap();
    let copy = new.join("outlast.db");
    std::fs::copy(&backup, &copy).unwrap();
    assert_is_outdated(&world.run(&["serve", "--data-dir", text(&new)]).await);
    std::fs::remove_file(&copy).unwrap();

    let restored = world.run(&["store", "restore", text(&backup), "--data-dir", text(&new)]).await;
    assert_eq!(restored.code, Some(0), "{restored:?}");
    let listed: Vec<&str> =
        restored.stdout.lines().skip(1).map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(listed, [running, queued].concat(), "oldest first");
    let worker = world.run(&["worker", "--until-idle", "--data-dir", text(&new)]).await;
    assert_eq!(worker.code, Some(0), "{worker:?}");
    assert_eq!(world.submits(), (RUNNING + QUEUED) as u64);
}

/// A store that a process has open is left alone.
#[tokio::test]
async fn a_store_in_use_is_not_restored() {
    let BackedUp { world, backup, .. } = backed_up().await;
    let before = std::fs::read(world.database()).unwrap();
    let server = world.serve_with(&["--no-worker"]).await;
    for arguments in [
        ["store", "restore", text(&backup), "--force"].as_slice(),
        &["store", "restore", "--in-place", "--force"],
    ] {
        let refused = world.run(arguments).await;
        assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""), "{refused:?}");
        assert!(
            refused.stderr.contains("in use") && refused.stderr.contains("stop every"),
            "{refused:?}"
        );
    }
    leave(server).await;
    assert_eq!(std::fs::read(world.database()).unwrap(), before);
    let names = std::fs::read_dir(world.data_dir()).unwrap().map(|file| file.unwrap().file_name());
    let left: Vec<_> = names
        .filter_map(|name| name.into_string().ok())
        .filter(|name| name.contains("restoring") || name.contains("before-restore"))
        .collect();
    assert_eq!(left, [""; 0], "nothing is left behind");
}

/// A mistake in a backup, or in the confirmation, is reported before anything is changed.
#[tokio::test]
async fn what_cannot_be_restored_changes_nothing() {
    let world = World::new().await;
    let mut server = world.serve_with(&["--no-worker"]).await;
    let id = start(&mut server, "ok;words=60;delay_ms=0").await;
    leave(server).await;
    let before = std::fs::read(world.database()).unwrap();
    let garbage = world.data_dir().join("garbage.db");
    std::fs::write(&garbage, "no database at all".repeat(1000)).unwrap();
    let empty = world.data_dir().join("empty.db");
    std::fs::write(&empty, "").unwrap();
    let missing = world.data_dir().join("missing.db");
    let torn = world.data_dir().join("torn.db");
    std::fs::write(&torn, [b"SQLite format 3\0", &[7; 9000][..]].concat()).unwrap();
    let data_dir = world.data_dir();
    let database = world.database();
    for (arguments, code, said) in [
        (
            vec![text(&garbage), "--force"],
            1,
            "garbage.db is no backup of outlast\n\nhint: give the file",
        ),
        (
            vec![text(&empty), "--force"],
            1,
            "empty.db is no backup of outlast\n\nhint: give the file",
        ),
        (vec![text(&missing), "--force"], 1, "missing.db\n\nhint: give the file that"),
        (vec![text(&data_dir), "--force"], 1, "read the backup "),
        (vec![text(&torn), "--force"], 1, "torn.db is damaged at"),
        (vec![text(&database), "--force"], 2, "--in-place"),
        (vec!["--in-place"], 2, "it would end 1 job"),
        (vec![], 2, "<FILE>"),
        (vec![text(&garbage), "--in-place"], 2, "cannot be used with"),
    ] {
        let arguments = [vec!["store", "restore"], arguments].concat();
        let refused = world.run(&arguments).await;
        assert_eq!(
            (refused.code, refused.stdout.as_str()),
            (Some(code), ""),
            "{arguments:?}: {refused:?}"
        );
        assert!(refused.stderr.contains(said), "{arguments:?}: {refused:?}");
        assert_eq!(std::fs::read(world.database()).unwrap(), before, "{arguments:?}");
    }
    let worker = world.run(&["worker", "--until-idle"]).await;
    assert_eq!((worker.code, world.submits()), (Some(0), 1), "{worker:?}");
    let shown = world.run(&["jobs", "show", &id, "--json"]).await;
    assert!(shown.stdout.contains("\"succeeded\""), "{shown:?}");
    let nothing = world.run(&["store", "restore", "--in-place"]).await;
    assert_eq!(nothing.code, Some(0), "{nothing:?}");
    assert!(nothing.stderr.contains("no job had to be changed"), "{nothing:?}");
    assert!(!nothing.stderr.contains("restored"), "{nothing:?}");
}

/// Free work continues: queued jobs of the library, or of a workflow that may run twice, cost nothing.
#[tokio::test]
async fn free_work_of_a_restored_backup_runs_on() {
    let mut world = World::new().await;
    let config = world.data_dir().join("outlast.toml");
    std::fs::create_dir_all(world.data_dir()).unwrap();
    let workflows = "[[workflow]]\nname = \"free\"\ncommand = [\"true\"]\nrerun_after_crash = true\n\n\
                     [[workflow]]\nname = \"once\"\ncommand = [\"true\"]\n";
    std::fs::write(&config, workflows).unwrap();
    world.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "1");
    let flags =
        ["--config", text(&config), "--no-worker", "--async", "--tools", "jobs,research-jobs"];
    let mut server = world.serve_with(&flags).await;
    let mut ids = Vec::new();
    for workflow in ["free", "once"] {
        let started = server.structured("start_job", json!({ "workflow": workflow })).await;
        ids.push(started["job_id"].as_str().unwrap().to_owned());
    }
    ids.push(start(&mut server, "ok;words=60;delay_ms=0").await);
    leave(server).await;
    let backup = world.data_dir().join("backup.db");
    assert_eq!(world.run(&["store", "backup", text(&backup)]).await.code, Some(0));
    let arguments =
        ["store", "restore", text(&backup), "--force", "--json", "--config", text(&config)];
    let restored = world.run(&arguments).await;
    let reported: Value =
        serde_json::from_str(&restored.stdout).unwrap_or_else(|_| panic!("{restored:?}"));
    assert_eq!(self::ids(&reported["queued"]), ids[..1]);
    assert_eq!(self::ids(&reported["ended"]), ids[1..]);
    let worker = world.run(&["worker", "--until-idle", "--config", text(&config)]).await;
    assert_eq!((worker.code, world.submits()), (Some(0), 0), "{worker:?}");
    let shown = world.run(&["jobs", "show", &ids[0], "--json"]).await;
    assert!(shown.stdout.contains("\"succeeded\""), "{shown:?}");
}

/// Files that a killed server leaves next to the database (its lock, its log, the mark) do not prevent it.
#[tokio::test]
async fn a_killed_server_s_store_is_restored() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "1");
    let mut server = world.serve().await;
    let id = start(&mut server, "stuck").await;
    running(&world, &id).await;
    let backup = world.data_dir().join("backup.db");
    assert_eq!(world.run(&["store", "backup", text(&backup)]).await.code, Some(0));
    server.kill().await;
    let restored = world.run(&["store", "restore", text(&backup), "--force"]).await;
    assert_eq!(restored.code, Some(0), "{restored:?}");
    assert!(restored.stdout.contains("resumes"), "{restored:?}");
    let mut server = world.serve().await;
    let taken_up = async {
        loop {
            let poll = server.structured(POLL, json!({ "jobId": id })).await;
            if poll["status"] == "IN_PROGRESS" {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), taken_up).await.unwrap();
    eventually("the run is looked at again", || world.submits() == 1).await;
}
