//! The end of a command is the end of its whole group: on a cancel, at its limit, and when the server is killed.

use std::time::Duration;

use outlast_testkit::mcp_process::{McpProcess, Signal};
use serde_json::json;
use tokio::time::Instant;

use super::{Shop, ended, ran, runs, start};
use crate::support::eventually;

/// A command with a child and a grandchild, all of which ignore a request to exit.
const FAMILY: &str = r#"
[[workflow]]
name = "family"
command = ["/bin/sh", "-c", '''
    trap "" TERM
    sh -c 'trap "" TERM; echo $$ > grandchild; while :; do sleep 0.05; done' &
    echo $$ > child
    while :; do sleep 0.05; done
''']
TIMEOUT

[[workflow]]
name = "echo"
command = ["cat"]
"#;

async fn family(more: &str) -> (Shop, McpProcess, String, [u32; 2]) {
    let shop = Shop::with(&FAMILY.replace("TIMEOUT", more)).await;
    let mut server = shop.serve().await;
    let id = start(&mut server, "family", "").await;
    let pids = [shop.pid("child").await, shop.pid("grandchild").await];
    assert!(pids.iter().all(|pid| runs(*pid)));
    (shop, server, id, pids)
}

/// Returns the server's own children, as the kernel lists them.
fn children(server: &McpProcess) -> Vec<u32> {
    let pid = server.pid();
    let mut children = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        let listed = std::fs::read_to_string(task.unwrap().path().join("children"));
        let listed = listed.unwrap_or_default();
        children.extend(listed.split_whitespace().map(|pid| pid.parse::<u32>().unwrap()));
    }
    children
}

/// Returns the number of the server's pipes and process descriptors; the store opens its own files as it needs them.
fn open_pipes(server: &McpProcess) -> usize {
    let open = std::fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap();
    let targets = open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    targets
        .filter(|target| {
            let target = target.to_string_lossy();
            target.starts_with("pipe:") || target.contains("pidfd")
        })
        .count()
}

/// E12, design.md: a cancel ends the whole group, also one that ignores signals.
#[tokio::test]
async fn e12_a_cancel_kills_the_whole_group() {
    let (_shop, mut server, id, pids) = family("").await;
    let began = Instant::now();
    let got = server.structured("cancel_job", json!({ "job_id": id })).await;
    assert_eq!(got["status"], "cancelled");
    assert!(began.elapsed() < Duration::from_secs(1), "the answer does not wait for the command");
    eventually("the group is gone", || !pids.iter().any(|pid| runs(*pid))).await;
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!(ran(&mut server, "echo", "next").await["status"], "completed");
}

/// E12: the time limit does so too, and the job has the code TIMEOUT.
#[tokio::test]
async fn e12_a_timeout_kills_the_whole_group() {
    let (_shop, mut server, id, pids) = family("timeout = \"1500ms\"").await;
    let got = ended(&mut server, &id).await;
    assert_eq!(got["status"], "failed");
    assert_eq!(
        (&got["error"]["code"], &got["error"]["retryable"]),
        (&json!("TIMEOUT"), &json!(true))
    );
    let said = got["error"]["message"].as_str().unwrap();
    assert!(said.contains("did not end within 1.5 s"), "{said}");
    eventually("the group is gone", || !pids.iter().any(|pid| runs(*pid))).await;
}

/// E6: five seconds after a kill -9 none of its processes is running, and the job states that its progress is unknown.
#[tokio::test]
async fn e6_a_killed_server_leaves_no_orphans() {
    let (shop, mut server, id, pids) = family("").await;
    server.kill().await;
    let killed = Instant::now();
    eventually("the group is gone", || !pids.iter().any(|pid| runs(*pid))).await;
    assert!(killed.elapsed() < Duration::from_secs(5), "{:?}", killed.elapsed());
    let mut server = shop.serve().await;
    let got = ended(&mut server, &id).await;
    assert_eq!(
        (&got["status"], &got["error"]["code"]),
        (&json!("failed"), &json!("SUBMIT_UNKNOWN"))
    );
}

/// E6: also if the guard was killed before, when a command was begun since.
#[tokio::test]
async fn e6_a_guard_that_died_is_replaced() {
    let (_shop, mut server, _, pids) = family("").await;
    let guard = children(&server).into_iter().find(|pid| {
        std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default() == b"outlast\0guard\0"
    });
    outlast_testkit::mcp_process::signal(guard.expect("there is a guard"), Signal::KILL);
    assert_eq!(ran(&mut server, "echo", "").await["status"], "completed");
    server.kill().await;
    eventually("the group is gone", || !pids.iter().any(|pid| runs(*pid))).await;
}

/// E6: a workflow that is declared safe is run again, and never twice at a time.
#[tokio::test]
async fn e6_rerun_after_crash_runs_it_again() {
    let shop = Shop::with(
        r#"
[[workflow]]
name = "again"
command = ["/bin/sh", "-c", "echo $$ > pid; echo x >> runs; while [ ! -e go ]; do sleep 0.01; done; echo done"]
rerun_after_crash = true
"#,
    )
    .await;
    let mut server = shop.serve().await;
    let id = start(&mut server, "again", "").await;
    let first = shop.pid("pid").await;
    crate::support::running(&shop.world, &id).await;
    server.kill().await;
    let mut server = shop.serve().await;
    eventually("it runs again", || {
        std::fs::read_to_string(shop.file("runs")).unwrap_or_default() == "x\nx\n"
    })
    .await;
    assert!(!runs(first), "the first is gone before the second begins");
    shop.go();
    let got = ended(&mut server, &id).await;
    assert_eq!(got["result"]["content"][0]["text"], "done\n", "{got}");
}

/// A server that exits normally ends its commands.
#[tokio::test]
async fn e6_a_server_that_leaves_ends_its_commands() {
    let (_shop, server, _, pids) = family("").await;
    server.signal(Signal::TERM);
    let (status, _) = server.ended().await;
    assert!(status.success());
    eventually("the group is gone", || !pids.iter().any(|pid| runs(*pid))).await;
}

/// Background processes of a command end with it, and delay no answer.
#[tokio::test]
async fn e11_what_a_command_leaves_behind_ends_with_it() {
    let shop = Shop::with(
        "[[workflow]]\nname = \"leaves\"\ncommand = [\"/bin/sh\", \"-c\", \"sleep 1000 & echo $! > left; echo done\"]\n",
    )
    .await;
    let mut server = shop.serve().await;
    let got = ran(&mut server, "leaves", "").await;
    assert_eq!(got["result"]["content"][0]["text"], "done\n", "{got}");
    let left = shop.pid("left").await;
    eventually("it is gone", || !runs(left)).await;
}

/// E14: neither a zombie nor an open file is left of many commands, however they end.
#[tokio::test]
async fn e14_commands_leave_no_zombies_and_no_open_files() {
    let shop = Shop::new().await;
    let mut server = shop.serve().await;
    ran(&mut server, "echo", "warm").await;
    let before = open_pipes(&server);
    for round in 0..10 {
        for workflow in ["echo", "fail"] {
            ran(&mut server, workflow, &"x".repeat(round * 1000)).await;
        }
        let _ = std::fs::remove_file(shop.file("begun"));
        let id = start(&mut server, "wait", "").await;
        eventually("the command runs", || shop.file("begun").exists()).await;
        server.structured("cancel_job", json!({ "job_id": id })).await;
    }
    eventually("only the guard is left", || children(&server).len() <= 1).await;
    eventually("no pipe is left open", || open_pipes(&server) <= before).await;
}
