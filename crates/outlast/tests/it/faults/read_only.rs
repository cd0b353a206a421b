//! A place that cannot be written is named at the start, with the next step; nothing is served in part.

use super::small_disk::{SmallDisk, with_own_mounts};
use crate::support::{Ran, World, finished, start};

fn assert_cannot_write(ran: &Ran, path: &str) {
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert_eq!(ran.stdout, "");
    assert!(ran.stderr.starts_with("error: open the job store at "), "{ran:?}");
    assert!(ran.stderr.contains(path), "{ran:?}");
    assert!(
        ran.stderr.contains("hint: check that the directory exists and can be written"),
        "{ran:?}"
    );
}

/// Promise 6: a read-only disk, with and without a database on it.
#[test]
fn a_read_only_disk_is_named_at_the_start() {
    with_own_mounts("faults::read_only::a_read_only_disk_is_named_at_the_start", async || {
        let world = World::new().await;
        let disk = SmallDisk::mount(&world.data_dir(), 1024);
        disk.make_read_only();
        assert_cannot_write(&world.run(&["serve"]).await, "Read-only file system");
        drop(disk);

        let disk = SmallDisk::mount(&world.data_dir(), 1024);
        let mut server = world.serve().await;
        let id = start(&mut server, "ok;words=60;delay_ms=0").await;
        finished(&mut server, &id).await;
        server.close_input();
        server.ended().await;
        disk.make_read_only();
        assert_cannot_write(&world.run(&["serve"]).await, "Read-only file system");
    });
}

/// Promise 6: jobs that cannot be changed can still be listed, shown, checked and backed up.
#[test]
fn a_store_on_a_read_only_disk_can_be_read() {
    with_own_mounts("faults::read_only::a_store_on_a_read_only_disk_can_be_read", async || {
        let world = World::new().await;
        let disk = SmallDisk::mount(&world.data_dir(), 4096);
        let question = "Why is the sky blue? [[sim:ok;words=60;delay_ms=0]]";
        let asked = world.run(&["research", question, "--json"]).await;
        let asked: serde_json::Value = serde_json::from_str(&asked.stdout).unwrap();
        let (job, conversation) =
            (asked["id"].as_str().unwrap(), asked["conversation"].as_str().unwrap());
        let elsewhere = tempfile::tempdir().unwrap();
        let backup = elsewhere.path().join("copy.db");
        let before: Vec<_> = names(&world);
        disk.make_read_only();
        for (arguments, said) in [
            (["jobs", "list"].as_slice(), job),
            (&["jobs", "show", job], "succeeded"),
            (&["jobs", "wait", job], "succeeded"),
            (&["conversations", "list"], conversation),
            (&["conversations", "show", conversation], "Executive summary"),
            (&["conversations", "export", conversation], "Executive summary"),
            (&["store", "check", "--json"], "[]"),
            (&["store", "backup", backup.to_str().unwrap()], "copy.db"),
        ] {
            let ran = world.run(arguments).await;
            assert_eq!(ran.code, Some(0), "{arguments:?}: {ran:?}");
            assert!(ran.stdout.contains(said), "{arguments:?}: {ran:?}");
        }
        let refused = world.run(&["jobs", "prune"]).await;
        assert_cannot_write(&refused, "Read-only file system");
        assert_eq!(names(&world), before);
    });
}

fn names(world: &World) -> Vec<std::ffi::OsString> {
    let files = std::fs::read_dir(world.data_dir()).unwrap();
    let mut names: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
    names.sort();
    names
}

/// Promise 6: SQLite would silently open a file that it may only read, and refuse the first write.
#[test]
fn a_read_only_database_file_is_named_at_the_start() {
    with_own_mounts(
        "faults::read_only::a_read_only_database_file_is_named_at_the_start",
        async || {
            let world = World::new().await;
            let mut server = world.serve().await;
            start(&mut server, "ok;words=60;delay_ms=0").await;
            server.close_input();
            server.ended().await;
            let database = world.database();
            for arguments in [["--bind"].as_slice(), &["-o", "remount,bind,ro"]] {
                let mut mount = std::process::Command::new("mount");
                mount.args(arguments);
                if arguments[0] == "--bind" {
                    mount.arg(&database);
                }
                assert!(mount.arg(&database).status().unwrap().success());
            }
            assert_cannot_write(&world.run(&["serve"]).await, "outlast.db cannot be written");
            assert_eq!(world.run(&["jobs", "list"]).await.code, Some(0), "it can be read");
            assert!(
                std::process::Command::new("umount").arg(&database).status().unwrap().success()
            );
            assert_eq!(
                world.run(&["jobs", "list"]).await.code,
                Some(0),
                "and is as good as before"
            );
        },
    );
}
