//! One very long report, from the provider to a poll: its time and its memory.

use serde_json::json;
use tokio::time::Instant;

use crate::server::{World, peak_megabytes};

/// Follows one job with a report of this number of words.
pub(crate) async fn measure(world: &World, words: usize) {
    let mut server = world.serve(&[]).await;
    // A short one first, so that one-time allocations are not counted for the long one.
    let short = crate::start(&mut server, "ok;words=100;delay_ms=0").await;
    server.structured("perplexity_research_poll", json!({ "jobId": short })).await;
    server.seen.clear();
    let before = peak_megabytes(server.pid());
    let started = Instant::now();
    let id = crate::start(&mut server, &format!("ok;words={words};delay_ms=0")).await;
    world.until_ended(&id).await;
    let (carried, stored) = (started.elapsed(), peak_megabytes(server.pid()));
    let asked = Instant::now();
    let answer = server.structured("perplexity_research_poll", json!({ "jobId": id })).await;
    let (read, polled) = (asked.elapsed(), peak_megabytes(server.pid()));
    let size = answer["response"].as_str().unwrap().len() as f64 / 1e6;
    println!("a report of {words} words, {size:.2} MB; peak memory {before:.1} MB before it");
    let line = |name: &str, time: std::time::Duration, peak: f64| {
        let (millis, times) = (time.as_secs_f64() * 1e3, (peak - before) / size);
        println!(
            "{name:<40} {millis:>8.0} ms, peak {peak:.1} MB: {times:.1} times the report more"
        );
    };
    line("start to stored", carried, stored);
    line("poll to answer", read, polled);
    crate::leave(server).await;
    world.forget_jobs();
}
