//! A server whose jobs all wait for the provider: its processor time while nothing happens.

use std::time::Duration;

use tokio::time::Instant;

use crate::server::{World, cpu_seconds, resident_megabytes};

/// The duration of the measurement.
const LOOK: Duration = Duration::from_secs(30);
/// The time that it may take to settle down.
const SETTLE: Duration = Duration::from_secs(10);

/// Starts this number of jobs that never end, waits until all are under way, and measures.
pub(crate) async fn measure(world: &World, jobs: usize) {
    let concurrency = jobs.to_string();
    let mut server = world.serve_with(&["--concurrency", &concurrency], &[]).await;
    for _ in 0..jobs {
        crate::start(&mut server, "stuck").await;
    }
    let begun = Instant::now();
    while world.simulator.stats().submits < jobs as u64 {
        assert!(begun.elapsed() < Duration::from_secs(120), "not all jobs are under way");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    tokio::time::sleep(SETTLE).await;
    let (before, since) = (cpu_seconds(server.pid()), Instant::now());
    tokio::time::sleep(LOOK).await;
    let share = (cpu_seconds(server.pid()) - before) / since.elapsed().as_secs_f64();
    println!(
        "{jobs} jobs wait for the provider: {:.2} % of a core, {:.1} MB",
        share * 100.0,
        resident_megabytes(server.pid())
    );
    crate::leave(server).await;
    world.forget_jobs();
}
