//! Many polls parked on one server: the cost of each, and its delay when its job ends.

use std::collections::HashMap;

use outlast_testkit::mcp_process::McpProcess;
use serde_json::json;
use tokio::time::Instant;

use crate::figures::Figures;
use crate::server::{World, resident_megabytes};

/// The number of polls that wait for the same job.
const PER_JOB: usize = 100;

/// Parks this number of polls, then ends one job after the other while the rest stay parked.
pub(crate) async fn measure(world: &World, polls: usize) {
    let limit = (polls + 1).to_string();
    // One connection represents many clients here.
    let flags = ["--no-worker", "--max-unanswered", &limit];
    let mut server = world.serve_with(&flags, &[("OUTLAST_MAX_POLLS", &limit)]).await;
    let mut jobs = Vec::new();
    for _ in 0..polls.div_ceil(PER_JOB) {
        jobs.push(crate::start(&mut server, "stuck").await);
    }
    let before = resident_megabytes(server.pid());
    let mut waiting: HashMap<u64, usize> = HashMap::new();
    for (number, job) in jobs.iter().enumerate() {
        for _ in 0..PER_JOB {
            let poll = json!({ "name": "perplexity_research_poll", "arguments": { "jobId": job } });
            waiting.insert(server.send("tools/call", poll).await, number);
        }
    }
    settle_down(&mut server).await;
    let parked = resident_megabytes(server.pid());

    let mut wakes = Figures::default();
    for job in &jobs {
        let ended = Instant::now();
        let cancel = json!({ "name": "perplexity_research_cancel", "arguments": { "jobId": job } });
        let call = server.send("tools/call", cancel).await;
        for _ in 0..=PER_JOB {
            let message = server.message().await.unwrap();
            server.seen.clear();
            let id = message["id"].as_u64().unwrap();
            assert_eq!(message["result"]["structuredContent"]["status"], "CANCELLED", "{message}");
            if id != call {
                assert!(waiting.remove(&id).is_some(), "answered twice: {message}");
                wakes.add(ended.elapsed());
            }
        }
    }
    assert!(waiting.is_empty(), "{} polls were never answered", waiting.len());
    let after = resident_megabytes(server.pid());
    let each = (parked - before) * 1e3 / polls as f64;
    println!(
        "{polls} polls parked: {each:.1} kB each ({before:.1} MB before, {parked:.1} MB parked, {after:.1} MB after)"
    );
    wakes.print("job end to poll answer, the rest parked");
    crate::leave(server).await;
    world.forget_jobs();
}

/// Waits until every poll sent so far has read its job and waits: reads are served in order, so a new one is answered
/// last.
pub(crate) async fn settle_down(server: &mut McpProcess) {
    let unknown = json!({ "jobId": "0".repeat(32) });
    server.structured("perplexity_research_poll", unknown).await;
    server.seen.clear();
}
