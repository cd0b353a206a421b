//! B15: the log lines about a job are on the standard error of the server that inserted it, once, though a detached
//! worker runs it.

use serde_json::json;

use super::{Project, WAITS, detaching, ended, lines, start_workflow};
use crate::support::{World, eventually, finished, start};

/// Returns the lines about a job.
fn about<'a>(log: &'a str, id: &str) -> Vec<&'a str> {
    log.lines().filter(|line| line.contains(id)).collect()
}

/// Returns the number of lines about a job with this text.
fn count(log: &str, id: &str, text: &str) -> usize {
    about(log, id).iter().filter(|line| line.contains(text)).count()
}

fn worker_log(world: &World) -> String {
    lines(&world.data_dir().join("worker.log")).join("\n")
}

#[tokio::test]
async fn b15_the_server_that_inserted_a_job_logs_its_whole_life_once() {
    let world = detaching().await;
    let mut server = world.serve().await;
    let id = start(&mut server, "ok;words=80").await;
    finished(&mut server, &id).await;
    let completed = || count(&server.log(), &id, "Job completed");
    eventually("its end is logged", || completed() > 0).await;
    let log = server.log();
    for text in ["Job enqueued", "Job dequeued", "Job completed"] {
        assert_eq!(count(&log, &id, text), 1, "{text}: {log}");
    }
    let place = |text: &str| log.find(text).unwrap();
    assert!(place("Job enqueued") < place("Job dequeued"), "{log}");
    assert!(place("Job dequeued") < place("Job completed"), "{log}");
    let copy = worker_log(&world);
    for text in ["Job dequeued", "Job completed"] {
        assert_eq!(count(&copy, &id, text), 1, "{text}: {copy}");
    }
    // The same lines except for the time, which is added when a line is written.
    for line in about(&copy, &id) {
        let (_, line) = line.split_once(' ').unwrap();
        assert!(log.contains(line), "{line}\n\n{log}");
    }
}

#[tokio::test]
async fn b15_each_of_two_servers_on_one_worker_logs_its_own_jobs_alone() {
    let world = detaching().await;
    let project = Project::new(&world, "project", WAITS);
    let mut servers = [project.serve(&world).await, project.serve(&world).await];
    let mut ids = Vec::new();
    for server in &mut servers {
        ids.push(start_workflow(server).await);
    }
    assert_eq!(world.detached_workers().len(), 1);
    project.go();
    for (server, id) in servers.iter().zip(&ids) {
        eventually("its end is logged", || count(&server.log(), id, "Job completed") == 1).await;
    }
    for id in &ids {
        ended(&world, id).await;
    }
    assert!(about(&servers[0].log(), &ids[1]).is_empty(), "{}", servers[0].log());
    assert!(about(&servers[1].log(), &ids[0]).is_empty(), "{}", servers[1].log());
    for id in &ids {
        assert_eq!(count(&worker_log(&world), id, "Job completed"), 1);
    }
}

#[tokio::test]
async fn b15_a_failure_is_on_the_servers_log_and_a_quiet_server_stays_quiet() {
    let world = detaching().await;
    let failing = "[[workflow]]\nname = \"wait\"\ncommand = [\"/bin/sh\", \"-c\", \"exit 7\"]\n";
    let project = Project::new(&world, "project", failing);
    let mut server = project.serve(&world).await;
    let config = project.config();
    let mut quiet = world.serve_with(&["-q", "--config", &config, "--tools", "jobs"]).await;
    let (id, other) = (start_workflow(&mut server).await, start_workflow(&mut quiet).await);
    eventually("the failure is logged", || count(&server.log(), &id, "Job failed") == 1).await;
    ended(&world, &other).await;
    eventually("it failed too", || count(&worker_log(&world), &other, "Job failed") == 1).await;
    // The answer comes after the lines that the worker sent before it.
    quiet.structured("list_jobs", json!({})).await;
    assert_eq!(count(&quiet.log(), &other, "Job dequeued"), 0, "{}", quiet.log());
}

/// Sends more lines than a socket holds to a server that does not read them for some time.
#[tokio::test]
async fn b15_a_server_that_is_stopped_holds_no_other_up_and_learns_what_it_missed() {
    let world = detaching().await;
    let quick = "[[workflow]]\nname = \"wait\"\ncommand = [\"/bin/true\"]\n";
    let project = Project::new(&world, "project", quick);
    let mut stopped = project.serve(&world).await;
    let first = start_workflow(&mut stopped).await;
    eventually("it has a job", || count(&stopped.log(), &first, "Job completed") == 1).await;
    stopped.signal(outlast_testkit::mcp_process::Signal::STOP);
    let mut server = project.serve(&world).await;
    let room = std::fs::read_to_string("/proc/sys/net/unix/max_dgram_qlen").unwrap();
    let jobs = room.trim().parse::<usize>().unwrap() / 2 + 8;
    for _ in 0..jobs.min(300) {
        let id = start_workflow(&mut server).await;
        eventually("it is done", || count(&server.log(), &id, "Job completed") == 1).await;
    }
    stopped.signal(outlast_testkit::mcp_process::Signal::CONT);
    let last = start_workflow(&mut server).await;
    eventually("it is done", || count(&server.log(), &last, "Job completed") == 1).await;
    eventually("it is reported", || stopped.log().contains("lost log lines of the worker")).await;
}
