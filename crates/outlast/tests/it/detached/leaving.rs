//! A client, its server or both leave while work is under way.

use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use outlast_testkit::mcp_process::{Signal, signal};

use super::{Project, WAITS, detaching, ended, nothing_is_left, runs, start_workflow};
use crate::support::{World, binary, eventually, running, start};

/// H1: the pipe is closed in the middle of research; another client reads the report, which was paid for once.
#[tokio::test]
async fn h1_closing_the_client_interrupts_no_research() {
    let world = detaching().await;
    let mut server = world.serve().await;
    let id = start(&mut server, "ok;words=80;hold=true").await;
    running(&world, &id).await;
    let [worker] = world.detached_workers()[..] else { panic!("one worker") };
    server.close_input();
    assert!(server.ended().await.0.success());
    world.simulator.release();
    assert_eq!(ended(&world, &id).await["state"], "succeeded");
    assert_eq!(world.submits(), 1);
    let mut other = world.serve().await;
    assert_eq!(crate::support::finished(&mut other, &id).await["status"], "COMPLETED");
    drop(other);
    nothing_is_left(&world).await;
    eventually("the worker has left", || !runs(worker)).await;
}

/// H1: the same with the jobs in a database.
#[tokio::test]
async fn h1_kill_9_of_the_server_interrupts_nothing_on_a_database() {
    let mut world = World::on_postgres().await;
    world.set("OUTLAST_DETACH", "auto");
    let mut server = world.serve().await;
    let id = start(&mut server, "ok;words=80;hold=true").await;
    running(&world, &id).await;
    let [worker] = world.detached_workers()[..] else { panic!("one worker") };
    server.kill().await;
    world.simulator.release();
    assert_eq!(ended(&world, &id).await["state"], "succeeded");
    assert_eq!(world.submits(), 1);
    nothing_is_left(&world).await;
    eventually("the worker has left", || !runs(worker)).await;
}

/// H1: the server is killed in the middle of a command, which runs once and to its end.
#[tokio::test]
async fn h1_kill_9_of_the_server_interrupts_no_command() {
    let world = detaching().await;
    let project = Project::new(&world, "project", WAITS);
    let mut server = project.serve(&world).await;
    let id = start_workflow(&mut server).await;
    eventually("the command runs", || !project.lines("begun").is_empty()).await;
    server.kill().await;
    project.go();
    assert_eq!(ended(&world, &id).await["state"], "succeeded");
    assert_eq!((project.lines("begun").len(), project.lines("ended").len()), (1, 1));
    nothing_is_left(&world).await;
}

/// H1: the whole process group of the client is killed; the worker has a separate session.
#[tokio::test]
async fn h1_kill_9_of_the_clients_process_group_interrupts_no_command() {
    let world = detaching().await;
    let project = Project::new(&world, "project", WAITS);
    // A client: a shell that leads a group, with the server in it.
    let script =
        r#"exec 3>&1; (cat calls; sleep 1000) | "$0" serve --tools jobs --config outlast.toml >&3"#;
    let calls = [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"start_job","arguments":{"workflow":"wait"}}}"#,
    ];
    std::fs::write(project.folder.join("calls"), calls.join("\n") + "\n").unwrap();
    let mut client = Command::new("/bin/sh")
        .args(["-c", script])
        .arg(binary())
        .current_dir(&project.folder)
        .env_clear()
        .envs(world.environment.iter().cloned())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    eventually("the command runs", || !project.lines("begun").is_empty()).await;
    let group = rustix::process::Pid::from_raw(client.id() as i32).unwrap();
    rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
    client.wait().unwrap();
    project.go();
    eventually("the command ends", || project.lines("ended").len() == 1).await;
    assert_eq!(project.lines("begun").len(), 1);
    nothing_is_left(&world).await;
}

/// H1: the worker is killed; the remaining server starts another, and nothing is paid for twice.
#[tokio::test]
async fn h1_kill_9_of_the_worker_loses_no_job() {
    let world = detaching().await;
    let mut server = world.serve().await;
    let id = start(&mut server, "ok;words=80;hold=true").await;
    running(&world, &id).await;
    let [worker] = world.detached_workers()[..] else { panic!("one worker") };
    signal(worker, Signal::KILL);
    eventually(
        "another worker",
        || matches!(world.detached_workers()[..], [other] if other != worker),
    )
    .await;
    world.simulator.release();
    assert_eq!(ended(&world, &id).await["state"], "succeeded");
    assert_eq!(world.submits(), 1);
    drop(server);
    nothing_is_left(&world).await;
}

/// H1: server and worker are killed; the next server continues.
#[tokio::test]
async fn h1_the_next_server_goes_on_when_all_were_killed() {
    let world = detaching().await;
    let mut server = world.serve().await;
    let id = start(&mut server, "ok;words=80;hold=true").await;
    running(&world, &id).await;
    server.kill().await;
    for worker in world.detached_workers() {
        signal(worker, Signal::KILL);
        eventually("it is dead", || !runs(worker)).await;
    }
    world.simulator.release();
    let mut next = world.serve().await;
    assert_eq!(crate::support::finished(&mut next, &id).await["status"], "COMPLETED");
    assert_eq!(world.submits(), 1);
}

/// H1: files that the client gave the server are closed when the two exit, while the worker continues.
#[tokio::test]
async fn h1_a_worker_holds_nothing_of_the_client_open() {
    let world = detaching().await;
    let project = Project::new(&world, "project", WAITS);
    let calls = [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"start_job","arguments":{"workflow":"wait"}}}"#,
    ];
    std::fs::write(project.folder.join("calls"), calls.join("\n") + "\n").unwrap();
    // This test's pipe is standard output and error, and file 7.
    let script = r#"exec 7>&1; (cat calls; while [ ! -e begun ]; do sleep 0.02; done) | "$0" serve --tools jobs --config outlast.toml 2>&1"#;
    let mut client = Command::new("/bin/sh")
        .args(["-c", script])
        .arg(binary())
        .current_dir(&project.folder)
        .env_clear()
        .envs(world.environment.iter().cloned())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut pipe = client.stdout.take().unwrap();
    let read = tokio::task::spawn_blocking(move || {
        let mut text = String::new();
        pipe.read_to_string(&mut text).unwrap();
        text
    });
    let text = tokio::time::timeout(Duration::from_secs(60), read).await.expect("the pipe ends");
    assert!(text.unwrap().contains("job_id"));
    client.wait().unwrap();
    assert!(project.lines("ended").is_empty(), "the command is still under way");
    project.go();
    eventually("the command ends", || project.lines("ended").len() == 1).await;
    nothing_is_left(&world).await;
}
