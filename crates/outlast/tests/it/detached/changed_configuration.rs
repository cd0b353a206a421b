//! Processes whose configuration file has changed since they read it: they run no job with the old configuration.

use outlast_testkit::mcp_process::McpProcess;
use serde_json::json;

use super::{Project, WAITS, detaching, ended, nothing_is_left, start_workflow};
use crate::support::{World, eventually};

/// Returns the same workflow with another command line.
fn changed() -> String {
    WAITS.replace("echo $WHO", "echo changed")
}

/// Creates a world whose detached workers exit almost at once.
async fn impatient() -> World {
    let mut world = detaching().await;
    world.set("OUTLAST_TEST_WORKER_IDLE_MS", "50");
    world.set("WHO", "as it was");
    world
}

/// Starts a job that none of its processes works on.
async fn start_elsewhere(world: &World, project: &Project) -> String {
    let flags = ["--no-worker", "--config", &project.config(), "--tools", "jobs"];
    let mut server = world.serve_with(&flags).await;
    start_workflow(&mut server).await
}

/// Waits until an open window is the only process on the store.
async fn worker_has_left(world: &World) {
    eventually("the worker leaves", || world.detached_workers().is_empty()).await;
}

/// H1: a window that was opened before the file changed runs no job with the old command line, and the job does not end with it.
#[tokio::test]
async fn h1_an_old_window_leaves_jobs_to_a_worker_of_the_present_file() {
    let world = impatient().await;
    let project = Project::new(&world, "project", WAITS);
    let mut old = project.serve(&world).await;
    project.configure(&changed());
    let others = start_elsewhere(&world, &project).await;
    eventually("the command runs", || project.lines("begun").len() == 1).await;
    let own = start_workflow(&mut old).await;
    eventually("the command runs", || project.lines("begun").len() == 2).await;
    old.kill().await;
    project.go();
    for id in [&others, &own] {
        assert_eq!(ended(&world, id).await["state"], "succeeded");
    }
    assert_eq!(project.lines("ended"), ["changed", "changed"]);
    nothing_is_left(&world).await;
}

/// H1: the same for servers that run their jobs themselves, and for `outlast worker`.
#[tokio::test]
async fn h1_a_server_or_worker_that_runs_jobs_itself_takes_none_once_the_file_has_changed() {
    let kinds: [&[&str]; 3] = [
        &["serve", "--no-detach", "--tools", "jobs"],
        &["serve", "--http", "127.0.0.1:0", "--tools", "jobs"],
        &["worker"],
    ];
    for kind in kinds {
        let world = impatient().await;
        let project = Project::new(&world, "project", WAITS);
        project.go();
        let config = project.config();
        let process = world.spawn(&[kind, &["--config", &config]].concat());
        let id = start_elsewhere(&world, &project).await;
        assert_eq!(ended(&world, &id).await["state"], "succeeded", "{kind:?}");
        project.configure(&changed());
        let id = start_elsewhere(&world, &project).await;
        assert_eq!(ended(&world, &id).await["state"], "succeeded", "{kind:?}");
        assert_eq!(project.lines("ended"), ["as it was", "changed"], "{kind:?}");
        drop(process);
    }
}

/// H1: while the present file is not a valid configuration, jobs wait; they run once it is valid.
#[tokio::test]
async fn h1_jobs_wait_while_the_changed_file_is_wrong() {
    let world = impatient().await;
    let project = Project::new(&world, "project", WAITS);
    project.go();
    let mut old = project.serve(&world).await;
    project.configure("[[workflow]]\nname = ");
    let id = start_workflow(&mut old).await;
    eventually("it is logged", || old.log().contains("jobs wait")).await;
    assert_eq!(world.shown(&id).await["state"], "queued");
    project.configure(&changed());
    assert_eq!(ended(&world, &id).await["state"], "succeeded");
    assert_eq!(project.lines("ended"), ["changed"]);
    assert_eq!(old.log().matches("jobs wait").count(), 1, "{}", old.log());
}

/// H1: a file that was rewritten with the same text has not changed.
#[tokio::test]
async fn h1_a_file_with_the_same_text_has_not_changed() {
    let world = impatient().await;
    let project = Project::new(&world, "project", WAITS);
    project.go();
    let mut server = project.serve(&world).await;
    project.configure(&changed());
    project.configure(WAITS);
    let id = start_workflow(&mut server).await;
    assert_eq!(ended(&world, &id).await["state"], "succeeded");
    assert_eq!(project.lines("ended"), ["as it was"]);
    assert!(!server.log().contains("has changed"), "{}", server.log());
}

/// H1: a worker that is still busy with a job of the old file does not keep a job of the new one waiting, although the store knows
/// it as a worker for that job.
#[tokio::test]
async fn h1_a_busy_worker_of_the_old_file_keeps_no_job_waiting() {
    let world = impatient().await;
    let project = Project::new(&world, "project", WAITS);
    let mut old = project.serve(&world).await;
    let first = start_workflow(&mut old).await;
    eventually("the command runs", || project.lines("begun").len() == 1).await;
    old.kill().await;
    project.configure(&WAITS.replace("while [ ! -e go ]; do sleep 0.02; done; ", ""));
    let config = project.config();
    let ran = world.run(&["run", "wait", "--config", &config]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(world.shown(&first).await["state"], "running");
    project.go();
    assert_eq!(ended(&world, &first).await["state"], "succeeded");
    nothing_is_left(&world).await;
}

/// H1: the worker of the present file answers quick questions and held calls of an old window too.
#[tokio::test]
async fn h1_an_old_window_still_answers_held_calls() {
    let world = impatient().await;
    let project = Project::new(&world, "project", WAITS);
    project.go();
    let flags = ["--config", &project.config(), "--tools", "perplexity"];
    let mut old: McpProcess = world.serve_with(&flags).await;
    project.configure(&changed());
    let messages = json!({ "messages": [{ "role": "user", "content": "ok;words=30" }] });
    let answered = old.call("perplexity_ask", messages).await;
    assert_ne!(answered["isError"], true, "{answered}");
    let held = old.call("wait", json!({})).await;
    assert_ne!(held["isError"], true, "{held}");
    assert_eq!(project.lines("ended"), ["changed"]);
    worker_has_left(&world).await;
}
