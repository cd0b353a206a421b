//! H1: clients that kill every descendant of their server do not reach the detached worker.

use std::collections::BTreeSet;

use outlast_testkit::mcp_process::{Signal, signal};
use serde_json::json;

use super::{Project, WAITS, detaching, ended, runs, start_workflow};
use crate::support::eventually;

/// Returns the processes of `/proc`, each with its id, its parent's id, and its state.
fn processes() -> Vec<(u32, u32, char)> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let look = |pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, rest) = stat.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        let state = fields.next()?.chars().next()?;
        Some((pid, fields.next()?.parse().ok()?, state))
    };
    pids.filter_map(look).collect()
}

/// Returns the descendants of this process.
fn descendants(root: u32) -> BTreeSet<u32> {
    let all = processes();
    let mut found = BTreeSet::from([root]);
    loop {
        let children = all.iter().filter(|(_, parent, _)| found.contains(parent));
        let more: Vec<u32> =
            children.map(|(pid, ..)| *pid).filter(|pid| !found.contains(pid)).collect();
        if more.is_empty() {
            found.remove(&root);
            return found;
        }
        found.extend(more);
    }
}

#[tokio::test]
async fn h1_a_kill_of_the_servers_whole_process_tree_does_not_reach_the_worker() {
    let world = detaching().await;
    let project = Project::new(&world, "project", WAITS);
    let mut server = project.serve(&world).await;
    let id = start_workflow(&mut server).await;
    eventually("the command runs", || project.lines("begun").len() == 1).await;
    let [worker] = world.detached_workers()[..] else { panic!("one worker") };
    let tree = descendants(server.pid());
    assert!(!tree.contains(&worker), "the worker {worker} is below the server: {tree:?}");
    for pid in tree {
        signal(pid, Signal::KILL);
    }
    server.kill().await;
    project.go();
    assert_eq!(ended(&world, &id).await["state"], "succeeded");
    assert_eq!(project.lines("begun").len(), 1, "it was not interrupted");
}

#[tokio::test]
async fn h1_no_zombie_is_left_of_a_worker_or_its_start() {
    let mut world = detaching().await;
    world.set("OUTLAST_TEST_WORKER_IDLE_MS", "0");
    let project = Project::new(&world, "project", WAITS);
    let mut server = project.serve(&world).await;
    let id = start_workflow(&mut server).await;
    eventually("the command runs", || project.lines("begun").len() == 1).await;
    let [worker] = world.detached_workers()[..] else { panic!("one worker") };
    let zombies = |parent: u32| {
        let is_one = |(_, its, state): &(u32, u32, char)| *its == parent && *state == 'Z';
        processes().iter().filter(|process| is_one(process)).count()
    };
    eventually("its starter was waited for", || zombies(server.pid()) == 0).await;
    project.go();
    assert_eq!(ended(&world, &id).await["state"], "succeeded");
    eventually("the worker ends", || !runs(worker)).await;
    assert_eq!(zombies(server.pid()), 0, "it is not the server's to wait for");
    let listed = server.structured("list_jobs", json!({})).await;
    assert!(listed.is_object(), "{listed}");
}
