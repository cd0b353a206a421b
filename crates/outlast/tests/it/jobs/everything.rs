//! The protocol's reference server, unchanged, behind our workflows: `interop/everything` pins it, and
//! `scripts/interop` installs it and runs these.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use outlast_testkit::mcp_process::{McpProcess, Signal, signal};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

use super::{Shop, ended, runs};
use crate::support::eventually;

/// The time limit of every wait; a limit, never a pause.
const LIMIT: Duration = Duration::from_secs(60);

/// Returns the program of the server.
fn everything() -> PathBuf {
    #[expect(clippy::disallowed_methods, reason = "where it was installed is given from outside")]
    let given = std::env::var_os("OUTLAST_TEST_EVERYTHING");
    PathBuf::from(given.expect("OUTLAST_TEST_EVERYTHING names the server; scripts/interop sets it"))
}

const WORKFLOWS: &str = r#"
[[workflow]]
name = "long"
tool = "everything.trigger-long-running-operation"

[[workflow]]
name = "again"
tool = "everything.trigger-long-running-operation"
rerun_after_crash = true
retries = 1

[[workflow]]
name = "image"
tool = "everything.get-tiny-image"

[[workflow]]
name = "weather"
tool = "everything.get-structured-content"

[[workflow]]
name = "sum"
tool = "everything.get-sum"
"#;

/// Starts the server as a child. Its input and its process id can be read in files.
async fn over_a_pipe() -> Shop {
    let script = r#"echo $$ >> pids; tee -a heard | exec "$SERVER" stdio"#;
    let upstream = format!(
        "[upstream.everything]\ncommand = [\"/bin/sh\", \"-c\", '{script}']\nenv = {{ SERVER = \"{}\" }}\n",
        everything().display()
    );
    Shop::with(&format!("{upstream}{WORKFLOWS}")).await
}

/// Starts the server on its own port; it ends when this is dropped.
async fn over_http() -> (Shop, Child) {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let server = Command::new(everything())
        .arg("streamableHttp")
        .env("PORT", address.port().to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    tokio::time::timeout(LIMIT, listening(address)).await.expect("it listens");
    let upstream = format!("[upstream.everything]\nurl = \"http://{address}/mcp\"\n");
    (Shop::with(&format!("{upstream}{WORKFLOWS}")).await, server)
}

async fn listening(address: SocketAddr) {
    while TcpStream::connect(address).await.is_err() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn begun(server: &mut McpProcess, workflow: &str, arguments: Value) -> String {
    let asked = json!({ "workflow": workflow, "arguments": arguments });
    let started = server.structured("start_job", asked).await;
    started["job_id"].as_str().unwrap_or_else(|| panic!("{started}")).to_owned()
}

/// Polls until there is progress.
async fn progressing(server: &mut McpProcess, id: &str) -> u64 {
    let asked = json!({ "job_id": id, "wait_seconds": 0 });
    let seen = async {
        loop {
            let got = server.structured("get_job", asked.clone()).await;
            assert_eq!(got["done"], false, "{got}");
            match got["progress"]["percent"].as_u64() {
                Some(percent) if percent > 0 => return percent,
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    tokio::time::timeout(LIMIT, seen).await.expect("progress is seen")
}

/// Checks progress, the answer, and that answers of every kind are unchanged.
async fn does_what_it_is_for(server: &mut McpProcess) {
    let id = begun(server, "long", json!({ "duration": 2, "steps": 4 })).await;
    let percent = progressing(server, &id).await;
    assert!(percent < 100 && percent % 25 == 0, "{percent}");
    let got = ended(server, &id).await;
    assert_eq!(got["status"], "completed", "{got}");
    let text = got["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(text, "Long running operation completed. Duration: 2 seconds, Steps: 4.");

    let id = begun(server, "image", json!({})).await;
    let got = ended(server, &id).await;
    let image = &got["result"]["content"][1];
    assert_eq!((&image["type"], &image["mimeType"]), (&json!("image"), &json!("image/png")));
    assert!(image["data"].as_str().unwrap().starts_with("iVBORw0KGgo"), "{got}");

    let id = begun(server, "weather", json!({ "location": "Chicago" })).await;
    let got = ended(server, &id).await;
    assert!(got["result"]["structuredContent"]["temperature"].is_number(), "{got}");

    // The schema of the server's tool is checked before there is a job.
    let wrong = json!({ "workflow": "sum", "arguments": { "a": "not a number" } });
    let refused = server.call("start_job", wrong).await;
    assert_eq!(refused["_meta"]["outlast/error"]["code"], "VALIDATION_ERROR", "{refused}");
}

/// Checks that a cancel in the middle ends the job, and that the connection stays usable for the next.
async fn takes_a_cancel(server: &mut McpProcess) {
    let id = begun(server, "long", json!({ "duration": 30, "steps": 100 })).await;
    progressing(server, &id).await;
    let got = server.structured("cancel_job", json!({ "job_id": id })).await;
    assert_eq!(got["status"], "cancelled", "{got}");
    let id = begun(server, "long", json!({ "duration": 0.1, "steps": 1 })).await;
    assert_eq!(ended(server, &id).await["status"], "completed");
}

#[tokio::test]
#[ignore = "needs the packages of interop/everything: scripts/interop"]
async fn e12_everything_over_a_pipe_is_a_workflow() {
    let shop = over_a_pipe().await;
    let mut server = shop.serve().await;
    does_what_it_is_for(&mut server).await;
    takes_a_cancel(&mut server).await;
    let heard = || std::fs::read_to_string(shop.file("heard")).unwrap();
    eventually("the call is taken back", || heard().contains("notifications/cancelled")).await;
    let processes = std::fs::read_to_string(shop.file("pids")).unwrap().lines().count();
    assert_eq!(processes, 2, "one for the schemas of its tools, one for every job");
}

#[tokio::test]
#[ignore = "needs the packages of interop/everything: scripts/interop"]
async fn e12_everything_over_http_is_a_workflow() {
    let (shop, _upstream) = over_http().await;
    let mut server = shop.serve().await;
    does_what_it_is_for(&mut server).await;
    takes_a_cancel(&mut server).await;
}

/// E6: killed in the middle: a call that may have had an effect is not repeated, one that is declared safe is, and the
/// next job finds a restarted server.
#[tokio::test]
#[ignore = "needs the packages of interop/everything: scripts/interop"]
async fn e6_everything_killed_in_the_middle_is_started_again() {
    let shop = over_a_pipe().await;
    let mut server = shop.serve().await;
    let pids = || -> Vec<u32> {
        let text = std::fs::read_to_string(shop.file("pids")).unwrap_or_default();
        text.lines().map(|line| line.parse().unwrap()).collect()
    };
    // Children of the shell that prints its number; all of them are in its group.
    let kill_group = async |leader: u32| {
        for pid in group(leader) {
            signal(pid, Signal::KILL);
        }
        eventually("it is gone", || !runs(leader)).await;
    };
    let id = begun(&mut server, "long", json!({ "duration": 30, "steps": 100 })).await;
    progressing(&mut server, &id).await;
    // The schemas of its tools were read from a separate process.
    let before = pids().len();
    kill_group(pids()[before - 1]).await;
    let got = ended(&mut server, &id).await;
    assert_eq!(
        (&got["status"], &got["error"]["code"]),
        (&json!("failed"), &json!("SUBMIT_UNKNOWN")),
        "{got}"
    );

    let id = begun(&mut server, "again", json!({ "duration": 3, "steps": 12 })).await;
    progressing(&mut server, &id).await;
    assert_eq!(pids().len(), before + 1, "started again");
    kill_group(pids()[before]).await;
    let got = ended(&mut server, &id).await;
    assert_eq!(got["status"], "completed", "{got}");
    assert_eq!(pids().len(), before + 2, "and again");
}

/// Returns the processes of a group.
fn group(leader: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
        fields.split_whitespace().nth(2) == Some(&leader.to_string())
    })
    .collect()
}
