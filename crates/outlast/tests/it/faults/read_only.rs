//! A place that cannot be written is named at the start, with what to do; nothing is served half.

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

/// Promise 6: SQLite would open a file it may only read without a word, and refuse the first write.
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
