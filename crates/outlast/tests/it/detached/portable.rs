//! The same work without the calls that only Linux has.

use outlast_testkit::mcp_process::signal;
use rustix::process::Signal;
use serde_json::json;

use super::{Project, WAITS, detaching};
use crate::support::{self, eventually};

/// N4: research whose server was killed is finished by the detached worker, and the next server has the report.
#[tokio::test]
async fn n4_without_the_calls_of_linux_research_survives_its_server() {
    let mut world = detaching().await;
    world.set("OUTLAST_PORTABLE", "1");
    let mut server = world.serve_with(&["--tools", "research-jobs"]).await;
    let job = support::start(&mut server, "slow").await;
    server.kill().await;
    let mut next = world.serve_with(&["--tools", "research-jobs"]).await;
    let ended = support::finished(&mut next, &job).await;
    assert_eq!(ended["status"], "COMPLETED", "{ended}");
    assert_eq!(world.submits(), 1, "it is bought once");
}

/// N4: a command ends with its job, and is not run again after its worker was killed.
#[tokio::test]
async fn n4_without_the_calls_of_linux_a_command_runs_once_and_can_be_cancelled() {
    let mut world = detaching().await;
    world.set("OUTLAST_PORTABLE", "1");
    let project = Project::new(&world, "portable", WAITS);
    let mut server = project.serve(&world).await;
    let started = server.structured("start_job", json!({ "workflow": "wait" })).await;
    let cancelled = started["job_id"].as_str().unwrap().to_owned();
    eventually("the command begins", || project.lines("begun").len() == 1).await;
    server.structured("cancel_job", json!({ "job_id": cancelled })).await;
    let pid: i32 = project.lines("begun")[0].parse().unwrap();
    let command = rustix::process::Pid::from_raw(pid).unwrap();
    eventually("the command ends", || rustix::process::test_kill_process(command).is_err()).await;

    server.structured("start_job", json!({ "workflow": "wait" })).await;
    eventually("the second command begins", || project.lines("begun").len() == 2).await;
    for worker in world.detached_workers() {
        signal(worker, Signal::KILL);
    }
    server.kill().await;
    let mut next = project.serve(&world).await;
    project.go();
    let listed = next.structured("list_jobs", json!({})).await;
    assert_eq!(listed["jobs"].as_array().unwrap().len(), 2, "{listed}");
    assert_eq!(project.lines("begun").len(), 2, "no command runs twice");
}
