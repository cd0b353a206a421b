//! Faults that kill no server: a freeze of all of them, a changed configuration file while a window is open, and a
//! database that does not answer. Each is tried after the storm, on the same store, where every job must end well.

use std::path::PathBuf;
use std::time::Duration;

use outlast_simulator::Simulator;
use outlast_testkit::mcp_process::{McpProcess, Signal};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::database::Database;
use crate::fleet::Fleet;

const LEASE: Duration = Duration::from_secs(2);
/// The maximum time until a job ends.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// The maximum time until a call is answered while the database hangs.
const MAX_ANSWER: Duration = Duration::from_secs(10);

/// Stops all servers for longer than the lease while each runs commands, which cannot be resumed: every command ends
/// well, because no other server has claimed its job.
pub(crate) async fn freeze(fleet: &Fleet) {
    let config = configure(fleet, "sleep 1");
    let lease = LEASE.as_millis().to_string();
    let arguments = ["--no-detach", "--tools", "jobs", "--lease-ms", &lease, "--config", &config];
    let mut servers = [fleet.serve(&arguments, &[]).await, fleet.serve(&arguments, &[]).await];
    let mut jobs = Vec::new();
    for server in &mut servers {
        for _ in 0..3 {
            jobs.push(start(server).await);
        }
    }
    for job in &jobs {
        until(fleet, job, |state| state != "queued").await;
    }
    servers.iter().for_each(|server| server.signal(Signal::STOP));
    tokio::time::sleep(LEASE * 2 + LEASE / 2).await;
    servers.iter().for_each(|server| server.signal(Signal::CONT));
    for job in &jobs {
        assert_eq!(until(fleet, job, is_end).await, "succeeded", "after a freeze: {job}");
    }
    println!("frozen for longer than the lease: {} commands ended well", jobs.len());
}

/// Changes the file while a window is open and starts jobs in a new one: each runs the new command line, and continues
/// when the old window is killed.
pub(crate) async fn change_configuration(fleet: &Fleet) {
    let ran = fleet.folder().join("ran");
    let line = |which: &str| format!("sleep 0.5; echo {which} >> {}", ran.display());
    drop(std::fs::remove_file(&ran));
    let config = configure(fleet, &line("old"));
    let arguments = ["--tools", "jobs", "--config", &config];
    let impatient = [("OUTLAST_TEST_WORKER_IDLE_MS", "100")];
    let mut old = fleet.serve(&arguments, &impatient).await;
    configure(fleet, &line("new"));
    let mut new = fleet.serve(&arguments, &impatient).await;
    let mut jobs = Vec::new();
    for _ in 0..4 {
        jobs.push(start(&mut new).await);
        jobs.push(start(&mut old).await);
    }
    old.kill().await;
    for job in &jobs {
        assert_eq!(until(fleet, job, is_end).await, "succeeded", "after a change: {job}");
    }
    let ran = std::fs::read_to_string(&ran).unwrap();
    assert_eq!(ran, "new\n".repeat(jobs.len()), "a job ran the command line of an outdated file");
    println!("configuration changed under a window: {} jobs ran the new command line", jobs.len());
}

/// Lets the database hang while a research job runs: calls get a true answer in time, and everything continues
/// afterwards.
pub(crate) async fn hang(fleet: &Fleet, database: &Database, simulator: &Simulator) {
    let arguments = ["--no-detach", "--tools", "research-jobs"];
    let mut server = fleet.serve(&arguments, &[("OUTLAST_STORE_STATEMENT_TIMEOUT", "1s")]).await;
    let first = research(&mut server, "before").await;
    let first = first["structuredContent"]["jobId"].as_str().unwrap().to_owned();
    database.hang().await;
    let asked = Instant::now();
    let refused = research(&mut server, "during").await;
    let answered_after = asked.elapsed();
    database.resume().await;
    assert!(answered_after < MAX_ANSWER, "answered after {answered_after:?}: {refused}");
    let error = &refused["_meta"]["outlast/error"];
    assert_eq!(error["code"], "SERVICE_UNAVAILABLE", "while the database hangs: {refused}");
    assert_eq!(until(fleet, &first, is_end).await, "succeeded", "after a hang");
    let again = loop {
        let again = research(&mut server, "after").await;
        if again["isError"] != true {
            break again["structuredContent"]["jobId"].as_str().unwrap().to_owned();
        }
        assert!(
            asked.elapsed() < MAX_WAIT,
            "the database answers, and the server does not: {again}"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert_eq!(until(fleet, &again, is_end).await, "succeeded", "after a hang");
    let runs = simulator.stats().runs;
    let during = runs.iter().filter(|run| run.submitted_input.starts_with("during")).count();
    let may_be_stored = error["retryable"] != true;
    assert!(
        during == 0 || may_be_stored,
        "a start that may be tried again was paid for: {refused}"
    );
    println!("the database hung: a start was answered after {:.1} s", answered_after.as_secs_f64());
}

/// Writes the configuration file with one workflow that runs this command line.
fn configure(fleet: &Fleet, line: &str) -> String {
    let path: PathBuf = fleet.folder().join("torture.toml");
    let text =
        format!("[[workflow]]\nname = \"work\"\ncommand = [\"/bin/sh\", \"-c\", \"{line}\"]\n");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

async fn start(server: &mut McpProcess) -> String {
    let started = server.structured("start_job", json!({ "workflow": "work" })).await;
    started["job_id"].as_str().unwrap().to_owned()
}

async fn research(server: &mut McpProcess, question: &str) -> Value {
    let content = format!("{question} [[sim:ok;words=40;delay_ms=4000]]");
    let messages = json!([{ "role": "user", "content": content }]);
    server.call("perplexity_research_start", json!({ "messages": messages })).await
}

/// Waits until the job's state matches the predicate.
async fn until(fleet: &Fleet, job: &str, is_such: impl Fn(&str) -> bool) -> String {
    let deadline = Instant::now() + MAX_WAIT;
    loop {
        let (code, shown) = fleet.command(&["jobs", "show", job, "--json"]).await;
        assert_eq!(code, Some(0), "{shown}");
        let shown: Value = serde_json::from_str(&shown).unwrap();
        let state = shown["state"].as_str().unwrap();
        if is_such(state) {
            return state.to_owned();
        }
        assert!(Instant::now() < deadline, "a job does not get on: {shown}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn is_end(state: &str) -> bool {
    matches!(state, "succeeded" | "failed" | "cancelled")
}
