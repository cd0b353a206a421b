//! Many polls parked over two servers on one PostgreSQL: their cost for the database, and for each server.

use std::time::Duration;

use outlast_testkit::mcp_process::McpProcess;
use outlast_testkit::postgres;
use serde_json::json;
use tokio::time::Instant;

use crate::server::{World, cpu_seconds};

/// The number of jobs that the polls of each server wait for: a server has at most 100 polls for each.
const JOBS: usize = 5;

/// The state in which the jobs wait for their end.
#[derive(Clone, Copy)]
enum Jobs {
    /// They wait in the queue, and there is no worker.
    Queued,
    /// The provider works on them, and each server has a worker that follows its own jobs.
    Running,
}

/// Parks this number of polls, half of them on each server, and measures for `span`.
pub(crate) async fn measure(world: &World, polls: usize, span: Duration) {
    println!(
        "| {polls} polls parked over two servers | queries/s | CPU of the first | of the second |\n|---|---|---|---|"
    );
    for jobs in [Jobs::Queued, Jobs::Running] {
        let url = postgres::fresh_schema().await;
        let mut servers =
            [serve(world, jobs, &url, polls).await, serve(world, jobs, &url, polls).await];
        let begun_before = world.simulator.stats().submits;
        for server in &mut servers {
            park(server, polls / 2).await;
        }
        let wanted = match jobs {
            Jobs::Queued => 0,
            Jobs::Running => 2 * JOBS as u64,
        };
        while world.simulator.stats().submits < begun_before + wanted {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        // A server that has just started does more: after 30 s it checks which other workers are dead.
        tokio::time::sleep(span.min(Duration::from_secs(35))).await;
        let admin = postgres::connect(&url).await;
        let begun = Instant::now();
        let count = async || -> f64 {
            // Backends report their statistics at most once a second.
            tokio::time::sleep(Duration::from_millis(1500)).await;
            let sum = "select xact_commit::float8 from pg_stat_database where datname = current_database()";
            admin.query_one(sum, &[]).await.unwrap().get(0)
        };
        let (before, used) =
            (count().await, servers.each_ref().map(|server| cpu_seconds(server.pid())));
        tokio::time::sleep(span).await;
        let after = count().await;
        let seconds = begun.elapsed().as_secs_f64() - 1.5;
        let used: Vec<f64> = servers
            .iter()
            .zip(used)
            .map(|(server, before)| (cpu_seconds(server.pid()) - before) / seconds * 100.0)
            .collect();
        let name = match jobs {
            Jobs::Queued => "jobs in the queue, no worker",
            Jobs::Running => "jobs at the provider, a worker in each",
        };
        println!(
            "| {name} | {:.1} | {:.2} % | {:.2} % |",
            (after - before) / seconds,
            used[0],
            used[1]
        );
        drop(servers);
    }
}

async fn serve(world: &World, jobs: Jobs, url: &str, polls: usize) -> McpProcess {
    let limit = (polls + 1).to_string();
    // One connection represents many clients here.
    let mut flags = vec!["--max-unanswered", limit.as_str()];
    match jobs {
        Jobs::Queued => flags.push("--no-worker"),
        Jobs::Running => {}
    }
    let more = [
        ("OUTLAST_STORE", url),
        ("OUTLAST_OWNER", "bench"),
        ("OUTLAST_MAX_POLLS", &limit),
        ("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "3600000"),
    ];
    world.serve_with(&flags, &more).await
}

async fn park(server: &mut McpProcess, polls: usize) {
    let mut ids = Vec::new();
    for _ in 0..JOBS {
        ids.push(crate::start(server, "stuck").await);
    }
    for number in 0..polls {
        let job = &ids[number % JOBS];
        let poll = json!({ "name": "perplexity_research_poll", "arguments": { "jobId": job } });
        server.send("tools/call", poll).await;
    }
    crate::parked::settle_down(server).await;
}
