//! Promise 4 over a restored dump, and a standby that is read, with separate servers of the test.

use std::path::Path;

use outlast_testkit::mcp_process::McpProcess;

use crate::postgres::OwnServer;
use crate::support::{Ran, World, finished, start};

const JOBS: usize = 6;

async fn leave(mut server: McpProcess) {
    server.close_input();
    let (status, log) = server.ended().await;
    assert!(status.success(), "{log}");
}

async fn program(name: &str, arguments: &[&str]) {
    let output = tokio::process::Command::new(name).args(arguments).output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn assert_is_refused(ran: &Ran) {
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
    assert!(ran.stderr.contains("the store is an older copy"), "{ran:?}");
    assert!(ran.stderr.contains("outlast store restore --in-place"), "{ran:?}");
}

/// B9a: no server serves a dump in a new database server until `store restore`, also on a machine that never saw the
/// store; after that, nothing is bought again.
#[tokio::test]
async fn b9a_a_dump_in_a_new_server_is_refused_until_store_restore() {
    let (first, second) = tokio::join!(OwnServer::start(), OwnServer::start());
    let mut world = World::new().await;
    world.set("OUTLAST_STORE", &first.url);
    world.set("OUTLAST_OWNER", "ann");
    let mut server = world.serve_with(&["--no-worker"]).await;
    let mut jobs = Vec::new();
    for _ in 0..JOBS {
        jobs.push(start(&mut server, "ok;words=60;delay_ms=0").await);
    }
    leave(server).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dump");
    let file = file.to_str().unwrap();
    program("pg_dump", &["--format=custom", "--file", file, &first.url]).await;
    let mut server = world.serve().await;
    for id in &jobs {
        assert_eq!(finished(&mut server, id).await["status"], "COMPLETED");
    }
    leave(server).await;
    assert_eq!(world.submits(), JOBS as u64);

    program("pg_restore", &["--dbname", &second.url, file]).await;
    world.set("OUTLAST_STORE", &second.url);
    let home = tempfile::tempdir().unwrap();
    for elsewhere in [None, Some(home.path())] {
        if let Some(home) = elsewhere.and_then(Path::to_str) {
            world.set("HOME", home);
            world.set("XDG_STATE_HOME", home);
        }
        for command in ["serve", "worker"] {
            assert_is_refused(&world.run(&[command]).await);
        }
        let doctor = world.run(&["doctor"]).await;
        assert!(doctor.stdout.contains("outlast store restore --in-place"), "{doctor:?}");
        let listed = world.run(&["jobs", "list"]).await;
        assert_eq!(listed.code, Some(0), "it can be read: {listed:?}");
    }
    let restored = world.run(&["store", "restore", "--in-place"]).await;
    assert_eq!(restored.code, Some(0), "{restored:?}");
    assert!(restored.stderr.contains("6 ended with SUBMIT_UNKNOWN"), "{restored:?}");
    let mut server = world.serve().await;
    for id in &jobs {
        assert_eq!(finished(&mut server, id).await["status"], "FAILED");
    }
    let id = start(&mut server, "ok;words=60;delay_ms=0").await;
    assert_eq!(finished(&mut server, &id).await["status"], "COMPLETED");
    assert_eq!(world.submits(), JOBS as u64 + 1, "nothing was sent again");
    leave(server).await;
    first.end().await;
    second.end().await;
}

/// F6: commands that only read work on a standby, the others report why they do not, and once it is promoted everything
/// works, also if it was behind.
#[tokio::test]
async fn f6_a_standby_can_be_read_and_goes_on_when_it_is_promoted() {
    let database = OwnServer::start().await;
    let mut world = World::new().await;
    world.set("OUTLAST_STORE", &database.url);
    world.set("OUTLAST_OWNER", "ann");
    let mut server = world.serve().await;
    let id = start(&mut server, "ok;words=60;delay_ms=0").await;
    finished(&mut server, &id).await;
    leave(server).await;
    database.control("stop").await;
    let folder = Path::new(&database.control).parent().unwrap().join("data");
    std::fs::write(folder.join("standby.signal"), "").unwrap();
    database.control("start").await;

    for command in [
        vec!["jobs", "list"],
        vec!["jobs", "show", &id],
        vec!["conversations", "list"],
        vec!["spend"],
        vec!["store", "check"],
    ] {
        let ran = world.run(&command).await;
        assert_eq!(ran.code, Some(0), "{command:?} {ran:?}");
    }
    let doctor = world.run(&["doctor"]).await;
    assert!(doctor.stdout.contains("is a standby"), "{doctor:?}");
    for command in [vec!["serve"], vec!["worker"], vec!["jobs", "prune", "--older-than", "1d"]] {
        let ran = world.run(&command).await;
        assert_ne!(ran.code, Some(0), "{command:?} {ran:?}");
        assert!(ran.stderr.contains("is a standby, which can only be read"), "{command:?} {ran:?}");
    }

    // As if it had not received the last changes.
    let admin = outlast_testkit::postgres::connect(&database.url).await;
    admin.batch_execute("select pg_promote()").await.unwrap();
    admin.batch_execute("select setval('rev', last_value - 100000) from rev").await.unwrap();
    let mut server = world.serve().await;
    let id = start(&mut server, "ok;words=60;delay_ms=0").await;
    assert_eq!(finished(&mut server, &id).await["status"], "COMPLETED");
    server.close_input();
    let (status, log) = server.ended().await;
    assert!(status.success() && log.contains("failed over to a standby that was behind"), "{log}");
    assert_eq!(world.submits(), 2);
    database.end().await;
}
