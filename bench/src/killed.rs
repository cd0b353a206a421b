//! A server killed with all its jobs under way, and the next one: the numbers of jobs that are lost and that are paid
//! for twice.

use serde_json::json;
use tokio::time::Instant;

use crate::server::World;

/// The time that the provider works on each, in milliseconds.
const RUN: u64 = 8_000;

/// Starts this number of jobs, kills the server when all are under way, and follows them in the next one.
pub(crate) async fn measure(world: &World, jobs: usize) {
    let (concurrency, before) = (jobs.to_string(), world.simulator.stats().submits);
    let flags = ["--concurrency", &concurrency];
    let mut server = world.serve(&flags).await;
    let mut ids = Vec::new();
    for _ in 0..jobs {
        ids.push(crate::start(&mut server, &format!("ok;words=600;delay_ms={RUN}")).await);
    }
    for id in &ids {
        world.until_running(id).await;
    }
    server.kill().await;
    let killed = Instant::now();
    let mut server = world.serve(&flags).await;
    let mut completed = 0;
    for id in &ids {
        let answer = server.structured("perplexity_research_poll", json!({ "jobId": id })).await;
        completed += usize::from(answer["status"] == "COMPLETED");
    }
    let (took, submits) = (killed.elapsed(), world.simulator.stats().submits - before);
    println!(
        "kill -9 with {jobs} jobs under way: {completed} completed {:.1} s later (each takes {} s), {submits} submits in all",
        took.as_secs_f64(),
        RUN / 1_000,
    );
    crate::leave(server).await;
    world.forget_jobs();
}
