//! Stopping a program that the client started.

use std::time::Duration;

use outlast_client::{
    CallOptions, ChildEnd, Client, ConnectOptions, Era, ProgramToStart, StderrMode,
};
use outlast_testkit::peer::shell::{Misbehaviour, script};
use serde_json::json;
use tokio::time::Instant;

/// Enough for the slowest machine.
const LIMIT: Duration = Duration::from_secs(60);

async fn served(misbehaviour: Misbehaviour) -> Client {
    let program = ProgramToStart::new("sh").arg("-c").arg(script(misbehaviour));
    let options = ConnectOptions { era: Era::Initialize, ..ConnectOptions::default() };
    Client::spawn(program.stderr(StderrMode::Pass), options).await.unwrap()
}

async fn answered(misbehaviour: Misbehaviour) -> Client {
    let client = served(misbehaviour).await;
    client.call_tool("slow", json!({}), CallOptions::default()).await.unwrap();
    client
}

#[tokio::test]
async fn a_child_exits_when_its_input_is_closed() {
    let client = answered(Misbehaviour::Garbage).await;
    let left = tokio::time::timeout(LIMIT, client.close()).await.unwrap();
    assert!(matches!(left, Some(ChildEnd::ByItself(status)) if status.success()), "{left:?}");
}

#[tokio::test]
async fn a_child_that_stays_receives_sigterm_after_a_second() {
    let client = answered(Misbehaviour::StaysUntilAsked).await;
    let began = Instant::now();
    let left = tokio::time::timeout(LIMIT, client.close()).await.unwrap();
    assert!(matches!(left, Some(ChildEnd::Terminated(_))), "{left:?}");
    assert!(began.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn a_child_that_ignores_sigterm_is_killed_with_its_children() {
    let client = answered(Misbehaviour::Stays).await;
    let pid = client.pid().unwrap();
    let began = Instant::now();
    let left = tokio::time::timeout(LIMIT, client.close()).await.unwrap();
    assert_eq!(left, Some(ChildEnd::Killed));
    assert!(began.elapsed() >= Duration::from_secs(2));
    gone(pid).await;
}

#[tokio::test]
async fn dropping_the_client_kills_its_child() {
    let client = answered(Misbehaviour::Stays).await;
    let pid = client.pid().unwrap();
    drop(client);
    gone(pid).await;
}

#[tokio::test]
async fn a_child_has_its_own_process_group() {
    let client = answered(Misbehaviour::Garbage).await;
    let pid = client.pid().unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let group = stat.rsplit_once(") ").unwrap().1.split(' ').nth(2).unwrap().to_owned();
    assert_eq!(group, pid.to_string());
    client.close().await;
}

/// Waits until the process group is empty.
async fn gone(group: u32) {
    let empty = async {
        while members(group) > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, empty).await.expect("the group is gone");
}

fn members(group: u32) -> usize {
    let stats = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let stat = std::fs::read_to_string(entry.ok()?.path().join("stat")).ok()?;
        let rest = stat.rsplit_once(") ")?.1.to_owned();
        let mut words = rest.split(' ');
        let state = words.next()?.to_owned();
        let its_group: u32 = words.nth(1)?.parse().ok()?;
        (its_group == group && state != "Z").then_some(())
    });
    stats.count()
}
