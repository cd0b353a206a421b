//! Isolation: three owners over two servers and one store make every kind of request, at random, with their own ids,
//! each other's and invented ones; no answer to one owner may contain anything of another.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "it stops at the first leak, and prints"
)]

use std::path::PathBuf;

use clap::Parser;
use outlast_simulator::{Options, Simulator};
use outlast_testkit::isolation::{self, Plan, Servers};
use tokio::time::Instant;

/// Looks for leaks between owners.
#[derive(Parser)]
struct Cli {
    /// The program to look at
    #[arg(long)]
    binary: PathBuf,
    /// The log filter of its servers
    #[arg(long, default_value = "warn")]
    log: String,
    /// The number of requests
    #[arg(default_value_t = 100_000)]
    operations: u64,
    /// The seed of all random decisions; except for timing, the same seed repeats the run
    seed: Option<u64>,
}

#[tokio::main]
async fn main() {
    let cli = Cli::parse();
    let seed = cli.seed.unwrap_or_else(|| fastrand::u64(..1_000_000));
    println!("isolation: {} operations, seed {seed}", cli.operations);
    let began = Instant::now();
    let options = Options { speed: 1000.0, seed, ..Options::default() };
    let simulator = Simulator::start(options).await.unwrap();
    let servers = Servers::start(&cli.binary, simulator.url(), &cli.log).await;
    let plan = Plan { operations: cli.operations, connections: 8, seed };
    let sent = || simulator.requests().into_iter().map(|seen| seen.body).collect();
    let report = isolation::run(servers, plan, sent).await;
    let seconds = began.elapsed().as_secs_f64();
    println!(
        "no leak in {} operations: {} ids given to one owner each, {} foreign jobs attacked without effect, {} answers about \
         foreign ids like those about invented ones; {} runs; {seconds:.0} s, {:.0} operations/s",
        report.operations,
        report.ids,
        report.attacked,
        report.pairs,
        simulator.stats().submits,
        report.operations as f64 / seconds
    );
    println!("medians in ms, foreign / invented:");
    for (what, timing) in report.timings {
        println!(
            "  {what:34} {:7.2} / {:7.2} = {:.2}  ({} pairs)",
            timing.foreign.as_secs_f64() * 1e3,
            timing.invented.as_secs_f64() * 1e3,
            timing.ratio(),
            timing.samples
        );
    }
}
