//! The state in which a power loss leaves the SQLite store. `work` uses a store and prints each acknowledged change;
//! scripts/power-loss records its system calls with strace. `cut` rebuilds the files as a disk may hold them after a
//! power loss at some moment of that record, opens them as the next server would, and searches for every change that
//! was acknowledged before.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a proving tool stops at the first thing that is not as it should be, and prints"
)]

mod check;
mod disk;
mod recording;
mod work;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use recording::Event;

/// Proves that a power loss removes nothing that was acknowledged.
#[derive(Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Use a store in this folder, and print its acknowledgements
    Work {
        /// The folder of the store; it must be empty
        folder: PathBuf,
        /// The number of jobs
        #[arg(long, default_value_t = 300)]
        jobs: usize,
    },
    /// Cut the power at moments of a recording
    Cut {
        /// The recording by strace
        recording: PathBuf,
        /// The folder that `work` used
        folder: PathBuf,
        /// The number of cuts: at every flush, the rest at random moments
        #[arg(long, default_value_t = 10_000)]
        cuts: usize,
        /// The seed of all random decisions
        #[arg(long)]
        seed: Option<u64>,
        /// A disk that reports flushes that it has not made; something must be lost then
        #[arg(long)]
        no_flush: bool,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Work { folder, jobs } => work::run(&folder, jobs).await,
        Command::Cut { recording, folder, cuts, seed, no_flush } => {
            let seed = seed.unwrap_or_else(|| fastrand::u64(1..1_000_000_000));
            return cut(&recording, &folder, cuts, seed, no_flush).await;
        }
    }
    ExitCode::SUCCESS
}

async fn cut(
    recording: &std::path::Path,
    folder: &std::path::Path,
    cuts: usize,
    seed: u64,
    no_flush: bool,
) -> ExitCode {
    let text = std::fs::read(recording).unwrap();
    let events = recording::read(&text, folder);
    let mut random = fastrand::Rng::with_seed(seed);
    let moments = disk::moments(&events, cuts, &mut random);
    let flushes = events.iter().filter(|event| matches!(event, Event::Flushed { .. })).count();
    let mut disk = disk::Disk::default();
    let (mut acknowledged, mut passed, mut lost, mut done) =
        (check::Acknowledged::default(), 0, 0, 0);
    for moment in moments {
        while passed < moment {
            match &events[passed] {
                Event::Said(line) => acknowledged.add(line),
                Event::Flushed { .. } if no_flush => {}
                event => disk.take(passed, event),
            }
            passed += 1;
        }
        let left = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        disk.leave(left.path(), &mut random);
        if let Err(problem) = acknowledged.check(left.path()).await {
            println!("cut after event {moment}: {problem}");
            lost += 1;
        }
        done += 1;
    }
    println!(
        "{done} cuts in {} events with {flushes} flushes, {} things acknowledged at the end, seed {seed}: {lost} cuts lost something",
        events.len(),
        acknowledged.count(),
    );
    let empty = acknowledged.count() == 0 || flushes == 0;
    ExitCode::from(u8::from(empty || (lost > 0) != no_flush))
}
