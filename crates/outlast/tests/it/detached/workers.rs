//! The assignment of jobs to workers, the list and the end of workers, and servers for which none can be started.

use outlast_testkit::mcp_process::{McpProcess, Signal, signal};
use serde_json::Value;

use super::{Project, WAITS, detaching, ended, nothing_is_left, runs, start_workflow};
use crate::support::{binary, eventually, finished, start};

/// H1: two projects with a workflow of the same name on one store; each command runs in its own project.
#[tokio::test]
async fn h1_no_project_runs_the_commands_of_another() {
    let mut world = detaching().await;
    let projects = ["one", "two"].map(|name| Project::new(&world, name, WAITS));
    let mut ids = Vec::new();
    for (project, who) in projects.iter().zip(["ann", "bob"]) {
        world.set("WHO", who);
        let mut server = project.serve(&world).await;
        ids.push(start_workflow(&mut server).await);
        eventually("the command runs", || project.lines("begun").len() == 1).await;
    }
    assert_eq!(world.detached_workers().len(), 2);
    for (project, id) in projects.iter().zip(&ids) {
        project.go();
        assert_eq!(ended(&world, id).await["state"], "succeeded");
    }
    assert_eq!(projects[0].lines("ended"), ["ann"]);
    assert_eq!(projects[1].lines("ended"), ["bob"]);
    nothing_is_left(&world).await;
}

/// H1: servers with the same store, configuration, environment and program share a worker; another environment has a
/// separate one.
#[tokio::test]
async fn h1_servers_of_one_configuration_share_a_worker() {
    let mut world = detaching().await;
    let project = Project::new(&world, "project", WAITS);
    let mut servers = vec![project.serve(&world).await, project.serve(&world).await];
    for server in &mut servers {
        start_workflow(server).await;
    }
    assert_eq!(world.detached_workers().len(), 1);
    world.set("WHO", "another");
    servers.push(project.serve(&world).await);
    start_workflow(&mut servers[2]).await;
    assert_eq!(world.detached_workers().len(), 2);
    project.go();
    eventually("all ran", || project.lines("ended").len() == 3).await;
}

/// H1: a command that was changed in the file runs in its new form, although a worker that knows the old form is still
/// running. That worker finishes its own jobs.
#[tokio::test]
async fn h1_a_worker_takes_no_job_once_its_configuration_has_changed() {
    let mut world = detaching().await;
    world.set("OUTLAST_TEST_WORKER_IDLE_MS", "60000");
    world.set("WHO", "as it was");
    let project = Project::new(&world, "project", WAITS);
    let mut before = project.serve(&world).await;
    let mut ids = vec![start_workflow(&mut before).await];
    eventually("the command runs", || project.lines("begun").len() == 1).await;
    let [worker] = world.detached_workers()[..] else { panic!("one worker") };
    before.kill().await;
    project.configure(&WAITS.replace("echo $WHO", "echo changed"));
    let mut after = project.serve(&world).await;
    for number in 2..=4 {
        ids.push(start_workflow(&mut after).await);
        eventually("the command runs", || project.lines("begun").len() == number).await;
    }
    project.go();
    for id in &ids {
        assert_eq!(ended(&world, id).await["state"], "succeeded");
    }
    let mut said = project.lines("ended");
    said.sort();
    assert_eq!(said, ["as it was", "changed", "changed", "changed"]);
    eventually("the worker leaves", || !runs(worker)).await;
    after.kill().await;
    world.run(&["worker", "stop"]).await;
    nothing_is_left(&world).await;
}

/// H1: the store's file is removed while a worker is running, as people do to start over: the jobs of the next store
/// are not left to that worker, which cannot see them.
#[tokio::test]
async fn h1_a_store_that_was_replaced_has_its_own_worker() {
    let mut world = detaching().await;
    world.set("OUTLAST_TEST_WORKER_IDLE_MS", "60000");
    let project = Project::new(&world, "project", WAITS);
    let mut before = project.serve(&world).await;
    start_workflow(&mut before).await;
    eventually("the command runs", || project.lines("begun").len() == 1).await;
    let [worker] = world.detached_workers()[..] else { panic!("one worker") };
    before.kill().await;
    for file in ["outlast.db", "outlast.db-wal", "outlast.db-shm"] {
        std::fs::remove_file(world.data_dir().join(file)).unwrap();
    }
    project.go();
    let mut after = project.serve(&world).await;
    let id = start_workflow(&mut after).await;
    assert_eq!(ended(&world, &id).await["state"], "succeeded");
    let [next] = world.detached_workers()[..] else { panic!("one worker") };
    assert_ne!(next, worker);
    signal(worker, Signal::KILL);
    after.kill().await;
    world.run(&["worker", "stop"]).await;
    nothing_is_left(&world).await;
}

/// H1: a worker that no process can find any more is replaced.
#[tokio::test]
async fn h1_a_worker_whose_socket_was_removed_is_replaced() {
    let mut world = detaching().await;
    world.set("OUTLAST_TEST_WORKER_IDLE_MS", "600000");
    let project = Project::new(&world, "project", WAITS);
    project.go();
    let mut server = project.serve(&world).await;
    let id = start_workflow(&mut server).await;
    ended(&world, &id).await;
    let [worker] = world.detached_workers()[..] else { panic!("one worker") };
    let sockets = world.data_dir().join("outlast.db.sockets");
    for entry in std::fs::read_dir(&sockets).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if name.starts_with("worker-") && name.ends_with(".sock") {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
    eventually("it leaves", || !world.detached_workers().contains(&worker)).await;
    let id = start_workflow(&mut server).await;
    assert_eq!(ended(&world, &id).await["state"], "succeeded");
    server.kill().await;
    world.run(&["worker", "stop"]).await;
    nothing_is_left(&world).await;
}

/// H1: a worker dies after it was notified of a job and before it claims it; another is started for it.
#[tokio::test]
async fn h1_a_worker_that_was_killed_before_it_took_a_job_is_replaced() {
    let mut world = detaching().await;
    world.set("OUTLAST_TEST_WORKER_IDLE_MS", "60000");
    let project = Project::new(&world, "project", WAITS);
    project.go();
    let mut server = project.serve(&world).await;
    let id = start_workflow(&mut server).await;
    ended(&world, &id).await;
    let [worker] = world.detached_workers()[..] else { panic!("one worker") };
    // It gets the message, and does not read it.
    signal(worker, Signal::STOP);
    let id = start_workflow(&mut server).await;
    signal(worker, Signal::KILL);
    assert_eq!(ended(&world, &id).await["state"], "succeeded");
    assert_eq!(project.lines("ended").len(), 2);
    server.kill().await;
    world.run(&["worker", "stop"]).await;
    nothing_is_left(&world).await;
}

/// H1: `worker list` shows a worker, `worker stop` ends it, and its job waits for the next.
#[tokio::test]
async fn h1_workers_are_listed_and_stopped() {
    let world = detaching().await;
    let listed = async || -> Vec<Value> {
        let ran = world.run(&["worker", "list", "--json"]).await;
        let listed: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
        listed["workers"].as_array().unwrap().clone()
    };
    assert!(listed().await.is_empty());
    let mut server = world.serve().await;
    let id = start(&mut server, "ok;words=80;hold=true").await;
    crate::support::running(&world, &id).await;
    let workers = listed().await;
    let pid = workers[0]["pid"].as_u64().unwrap() as u32;
    assert!(workers.len() == 1 && runs(pid), "{workers:?}");
    let shown = world.run(&["worker", "list"]).await;
    assert!(shown.stdout.contains(&pid.to_string()), "{shown:?}");
    drop(server);
    let unknown = world.run(&["worker", "stop", "nope"]).await;
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    let stopped = world.run(&["worker", "stop", workers[0]["id"].as_str().unwrap()]).await;
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    eventually("it has left", || !runs(pid)).await;
    assert_eq!(world.shown(&id).await["state"], "queued");
    world.simulator.release();
    let mut next = world.serve().await;
    assert_eq!(finished(&mut next, &id).await["status"], "COMPLETED");
    assert_eq!(world.submits(), 1);
}

/// N1: an upgrade as docs/install.md describes it: the new program stops the worker of the replaced one, and its own worker
/// finishes the jobs without paying again.
#[tokio::test]
async fn n1_the_worker_of_a_new_version_finishes_the_jobs_of_the_replaced_one() {
    let world = detaching().await;
    let folder = tempfile::tempdir().unwrap();
    let replaced = folder.path().join("outlast");
    std::fs::copy(binary(), &replaced).unwrap();
    let mut server = McpProcess::start(&replaced, ["serve"], &world.environment()).await;
    let id = start(&mut server, "ok;words=80;hold=true").await;
    crate::support::running(&world, &id).await;
    let workers = world.detached_workers();
    assert_eq!(workers.len(), 1);
    drop(server);
    std::fs::remove_file(&replaced).unwrap();

    let stopped = world.run(&["worker", "stop"]).await;
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    eventually("it has left", || !runs(workers[0])).await;
    world.simulator.release();
    let mut next = world.serve().await;
    assert_eq!(finished(&mut next, &id).await["status"], "COMPLETED");
    assert_eq!(world.submits(), 1);
}

/// H1: if no worker can be started, the server reports this once and runs its jobs itself.
#[tokio::test]
async fn h1_without_room_for_a_worker_the_server_runs_its_jobs() {
    let world = detaching().await;
    std::fs::create_dir_all(world.data_dir()).unwrap();
    // A directory in place of the log, without which no worker is started.
    std::fs::create_dir_all(world.data_dir().join("worker.log")).unwrap();
    let mut server = world.serve().await;
    for _ in 0..2 {
        let id = start(&mut server, "ok;words=60;delay_ms=0").await;
        assert_eq!(finished(&mut server, &id).await["status"], "COMPLETED");
    }
    let log = server.log();
    assert_eq!(log.matches("no worker can be started").count(), 1, "{log}");
    assert!(world.detached_workers().is_empty());
}

/// H1: with `--no-detach`, `--no-worker` or a memory store, there is no separate worker.
#[tokio::test]
async fn h1_a_server_with_no_detach_keeps_its_jobs() {
    let world = detaching().await;
    for flags in [&["--no-detach"][..], &["--store", "memory:"]] {
        let mut server = world.serve_with(flags).await;
        let id = start(&mut server, "ok;words=60;delay_ms=0").await;
        assert_eq!(finished(&mut server, &id).await["status"], "COMPLETED", "{flags:?}");
        assert!(world.detached_workers().is_empty(), "{flags:?}");
    }
    let mut server = world.serve_with(&["--no-worker"]).await;
    start(&mut server, "ok;words=60;delay_ms=0").await;
    assert!(world.detached_workers().is_empty());
}

/// H1: many servers that find the same job waiting start one worker between them, and the command runs once, to its end.
#[tokio::test]
async fn h1_workers_that_are_started_at_once_lose_no_command() {
    let world = detaching().await;
    let project = Project::new(&world, "project", WAITS);
    let config = project.config();
    let mut first =
        world.serve_with(&["--no-worker", "--config", &config, "--tools", "jobs"]).await;
    let id = start_workflow(&mut first).await;
    project.go();
    let arguments = ["serve", "--config", &config, "--tools", "jobs"];
    let servers: Vec<_> = (0..4).map(|_| world.spawn(&arguments)).collect();
    assert_eq!(ended(&world, &id).await["state"], "succeeded");
    assert_eq!(project.lines("begun").len(), 1);
    drop(servers);
}
