//! Measures the real server over a real pipe: its start, its memory and its response times.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a measuring tool stops at the first thing that is not as it should be, and prints"
)]

mod figures;
mod held;
mod idle;
mod killed;
mod long_report;
mod parked;
mod parsing;
mod server;
mod waiting;

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use figures::{Figures, millis};
use outlast_simulator::{Options, Simulator};
use outlast_testkit::mcp_process::McpProcess;
use serde_json::{Value, json};
use server::{World, resident_megabytes};
use tokio::time::Instant;

/// Measures outlast as its clients see it.
#[derive(Parser)]
struct Cli {
    /// The program to measure
    #[arg(long, required_unless_present = "parse")]
    binary: Option<PathBuf>,
    /// The number of repetitions; calls are repeated ten times as often
    #[arg(long, default_value_t = 50)]
    rounds: usize,
    /// Only park this number of polls, and measure the cost
    #[arg(long, value_name = "POLLS")]
    parked: Option<usize>,
    /// Only park this number of polls over two servers on the database that scripts/with-postgres starts, and measure
    /// the cost for the database
    #[arg(long, value_name = "POLLS")]
    idle: Option<usize>,
    /// The time for which `--idle` measures
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    seconds: u64,
    /// Only wait with this number of jobs under way at the provider, and measure the cost
    #[arg(long, value_name = "JOBS")]
    waiting: Option<usize>,
    /// Only kill the server with this number of jobs under way, and check what the next server does with them
    #[arg(long, value_name = "JOBS")]
    killed: Option<usize>,
    /// Only make this number of held calls that are answered at once
    #[arg(long, value_name = "CALLS")]
    held: Option<usize>,
    /// Programs to measure in turns with the first, for `--held`
    #[arg(long, value_name = "PROGRAM")]
    beside: Vec<PathBuf>,
    /// Only parse event streams, in this process, and measure the speed
    #[arg(long)]
    parse: bool,
    /// Only move one report of this number of words from the provider to a poll, and measure the time and memory
    #[arg(long, value_name = "WORDS")]
    long_report: Option<usize>,
}

#[tokio::main]
async fn main() {
    let cli = Cli::parse();
    let Some(binary) = cli.binary.filter(|_| !cli.parse) else {
        return parsing::measure(cli.rounds);
    };
    let simulator = Simulator::start(Options::default()).await.unwrap();
    let world = World::new(binary, simulator);
    if let Some(words) = cli.long_report {
        return long_report::measure(&world, words).await;
    }
    if let Some(jobs) = cli.killed {
        return killed::measure(&world, jobs).await;
    }
    if let Some(polls) = cli.idle {
        return idle::measure(&world, polls, Duration::from_secs(cli.seconds)).await;
    }

    println!("{:<44} {:>9} {:>9} {:>9}", "", "p50", "p99", "max");
    if let Some(polls) = cli.parked {
        return parked::measure(&world, polls).await;
    }
    if let Some(calls) = cli.held {
        let programs = std::iter::once(world.binary.clone()).chain(cli.beside).collect();
        return held::measure(&world, programs, calls).await;
    }
    if let Some(jobs) = cli.waiting {
        return waiting::measure(&world, jobs).await;
    }
    start_up(&world, cli.rounds).await.print("spawn to initialize answer, existing store");
    let rss = idle_memory(&world).await;
    start_calls(&world, cli.rounds * 10).await.print("start call, SQLite FULL, one client");
    status_calls(&world, cli.rounds * 10).await.print("poll of a finished job");
    let (end_to_answer, whole) = end_to_poll(&world, cli.rounds * 4).await;
    end_to_answer.print("job end to poll answer, same process");
    whole.print("provider's last byte to poll answer");
    other_process(&world, cli.rounds).await.print("job end to poll answer, other process");
    println!("{:<44} {:>6.1} MB", "resident memory, idle after initialize", rss);
    let size = std::fs::metadata(&world.binary).unwrap().len() as f64 / 1e6;
    println!("{:<44} {:>6.1} MB", "size of the program", size);
}

async fn start_up(world: &World, rounds: usize) -> Figures {
    drop(world.serve(&[]).await); // makes the store
    let mut figures = Figures::default();
    for _ in 0..rounds {
        let spawned = Instant::now();
        let server = world.serve(&[]).await;
        figures.add(spawned.elapsed());
        leave(server).await;
    }
    figures
}

async fn idle_memory(world: &World) -> f64 {
    let server = world.serve(&[]).await;
    let megabytes = resident_megabytes(server.pid());
    leave(server).await;
    megabytes
}

/// Measures without a worker, so that only the start itself is measured.
async fn start_calls(world: &World, rounds: usize) -> Figures {
    let mut server = world.serve(&["--no-worker"]).await;
    let mut figures = Figures::default();
    for _ in 0..rounds {
        let called = Instant::now();
        server.structured("perplexity_research_start", question("stuck")).await;
        figures.add(called.elapsed());
    }
    leave(server).await;
    world.forget_jobs();
    figures
}

async fn status_calls(world: &World, rounds: usize) -> Figures {
    let mut server = world.serve(&[]).await;
    let id = start(&mut server, "ok;words=600;delay_ms=0").await;
    let poll = json!({ "jobId": id });
    server.structured("perplexity_research_poll", poll.clone()).await;
    let mut figures = Figures::default();
    for _ in 0..rounds {
        let called = Instant::now();
        server.structured("perplexity_research_poll", poll.clone()).await;
        figures.add(called.elapsed());
    }
    leave(server).await;
    figures
}

/// Measures the time from the end of a run to the answer of a parked poll. The end is the store's own date of it.
async fn end_to_poll(world: &World, rounds: usize) -> (Figures, Figures) {
    let mut server = world.serve(&[]).await;
    let (mut from_end, mut whole) = (Figures::default(), Figures::default());
    for _ in 0..rounds {
        let id = start(&mut server, "ok;words=100;delay_ms=0;hold=true").await;
        world.until_running(&id).await;
        let poll = json!({ "name": "perplexity_research_poll", "arguments": { "jobId": id } });
        let call = server.send("tools/call", poll).await;
        server.request("ping", json!({})).await;
        let released = Instant::now();
        world.simulator.release();
        let answer = server.answer(call).await.unwrap();
        whole.add(released.elapsed());
        let answered_at = world.now_millis();
        assert_eq!(answer["result"]["structuredContent"]["status"], "COMPLETED", "{answer}");
        from_end.add(millis(answered_at - world.ended_at(&id).await));
    }
    leave(server).await;
    (from_end, whole)
}

/// Measures the same, but with the poll in a process that does no work.
async fn other_process(world: &World, rounds: usize) -> Figures {
    let mut worker = world.serve(&[]).await;
    let mut server = world.serve(&["--no-worker"]).await;
    let mut figures = Figures::default();
    for _ in 0..rounds {
        let id = start(&mut worker, "ok;words=100;delay_ms=0;hold=true").await;
        world.until_running(&id).await;
        let poll = json!({ "name": "perplexity_research_poll", "arguments": { "jobId": id } });
        let call = server.send("tools/call", poll).await;
        server.request("ping", json!({})).await;
        world.simulator.release();
        server.answer(call).await.unwrap();
        let answered_at = world.now_millis();
        figures.add(millis(answered_at - world.ended_at(&id).await));
    }
    leave(worker).await;
    leave(server).await;
    figures
}

fn question(scenario: &str) -> Value {
    json!({ "messages": [{ "role": "user", "content": format!("Why? [[sim:{scenario}]]") }] })
}

async fn start(server: &mut McpProcess, scenario: &str) -> String {
    let started = server.structured("perplexity_research_start", question(scenario)).await;
    started["jobId"].as_str().unwrap().to_owned()
}

async fn leave(mut server: McpProcess) {
    server.close_input();
    let (status, log) = server.ended().await;
    assert!(status.success(), "{log}");
}
