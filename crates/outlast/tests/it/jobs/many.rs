//! Many jobs at a time.

use std::collections::HashSet;
use std::time::Duration;

use outlast_testkit::mcp_process::McpProcess;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Shop, ended};

/// E15: each of many jobs gets its own result.
#[tokio::test]
async fn e15_concurrent_jobs_do_not_mix() {
    let shop = Shop::new().await;
    let mut server = shop.serve_with(&["--tools", "jobs", "--concurrency", "16"]).await;
    let mut calls = Vec::new();
    for n in 0..60 {
        let asked = json!({ "workflow": "echo", "message": format!("job {n}") });
        calls.push(
            server.send("tools/call", json!({ "name": "start_job", "arguments": asked })).await,
        );
    }
    let mut ids = Vec::new();
    for call in calls {
        let started = server.answer(call).await.unwrap();
        ids.push(started["result"]["structuredContent"]["job_id"].as_str().unwrap().to_owned());
    }
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 60);
    for (n, id) in ids.iter().enumerate() {
        let got = ended(&mut server, id).await;
        assert_eq!(got["result"]["content"][0]["text"], format!("job {n}"));
    }
}

/// Starts this number of jobs of a workflow and waits for none of them.
async fn started(server: &mut McpProcess, workflow: &str, jobs: usize) -> Vec<String> {
    for _ in 0..jobs {
        let asked = json!({ "name": "start_job", "arguments": { "workflow": workflow } });
        server.send("tools/call", asked).await;
    }
    let mut ids = Vec::new();
    while ids.len() < jobs {
        let started = server.message().await.unwrap();
        if let Value::String(id) = &started["result"]["structuredContent"]["job_id"] {
            ids.push(id.clone());
        }
    }
    ids
}

/// Runs `jobs` commands of a second each, `concurrency` at a time.
async fn a_second_each(jobs: usize, concurrency: usize) -> Duration {
    let mut shop =
        Shop::with("[[workflow]]\nname = \"second\"\ncommand = [\"sleep\", \"1\"]\n").await;
    shop.world.set("OUTLAST_LOG", "warn");
    shop.world.set("OUTLAST_MAX_JOBS_PER_OWNER", "100000");
    let flags = ["--tools", "jobs", "--concurrency", &concurrency.to_string()];
    let mut server = shop.serve_with(&flags).await;
    let began = Instant::now();
    let ids = started(&mut server, "second", jobs).await;
    for id in &ids {
        assert_eq!(ended(&mut server, id).await["status"], "completed");
    }
    began.elapsed()
}

/// E15: each command waits until twenty have begun, so that fewer at a time would never end.
#[tokio::test]
async fn e15_commands_run_side_by_side() {
    let all = "echo begun >> begun; until [ $(wc -l < begun) -ge 20 ]; do sleep 0.1; done";
    let workflow =
        format!("[[workflow]]\nname = \"wait\"\ncommand = [\"/bin/sh\", \"-c\", \"{all}\"]\n");
    let shop = Shop::with(&workflow).await;
    let mut server = shop.serve_with(&["--tools", "jobs", "--concurrency", "20"]).await;
    let ids = started(&mut server, "wait", 60).await;
    for id in &ids {
        assert_eq!(ended(&mut server, id).await["status"], "completed");
    }
}

/// The measurement in the documentation; for a quiet machine and an optimised build.
#[tokio::test]
#[ignore = "a measurement: run it alone, with --release"]
async fn a_thousand_seconds_at_two_hundred_a_time() {
    let took = a_second_each(1000, 200).await;
    eprintln!("1,000 commands of 1 s at concurrency 200: {took:?}");
    assert!(took < Duration::from_secs(7), "{took:?}");
}
