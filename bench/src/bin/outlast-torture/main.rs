//! Torture: several real servers over one store are killed repeatedly, at random and at armed points, while clients
//! start, poll and cancel jobs. At the end every promise is checked.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a torturer stops at the first broken promise, and prints"
)]

mod client;
mod database;
mod faults;
mod fleet;
mod ledger;
mod verdict;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Parser, ValueEnum};
use database::Database;
use fleet::Fleet;
use ledger::Ledger;
use outlast_simulator::{Options, Simulator};
use tokio::time::Instant;

/// Kills servers and checks the promises.
#[derive(Parser)]
struct Cli {
    /// The program to torture
    #[arg(long)]
    binary: PathBuf,
    /// The number of kills
    #[arg(long, default_value_t = 200)]
    kills: u64,
    /// The number of servers that share the store
    #[arg(long, default_value_t = 4)]
    servers: usize,
    /// The seed of all random decisions; except for timing, the same seed repeats the run
    #[arg(long)]
    seed: Option<u64>,
    /// Keep the jobs in the database that scripts/with-postgres started; its connections and the server itself are killed too
    #[arg(long)]
    postgres: bool,
    /// The provider that does the work
    #[arg(long, value_enum, default_value_t)]
    provider: TorturedProvider,
}

/// The dialects of the simulator that a fleet can be set up with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TorturedProvider {
    /// Perplexity's Agent API
    #[default]
    Perplexity,
    /// OpenAI's Responses API
    Openai,
    /// Anthropic's Managed Agents
    Anthropic,
    /// Gemini's Interactions API
    Gemini,
}

impl TorturedProvider {
    /// Returns the variables that configure it for a server, with the simulator at this address.
    fn environment(self, simulator: &str) -> Vec<(String, String)> {
        let (name, root) = match self {
            Self::Perplexity => ("perplexity", ""),
            Self::Openai => ("openai", "/openai/v1"),
            Self::Anthropic => ("anthropic", ""),
            Self::Gemini => ("gemini", ""),
        };
        let variable = name.to_uppercase();
        vec![
            ("OUTLAST_PROVIDERS".to_owned(), name.to_owned()),
            ("OUTLAST_TOOLS".to_owned(), "research,research-jobs".to_owned()),
            (format!("{variable}_API_KEY"), "sk-torture".to_owned()),
            (format!("{variable}_BASE_URL"), format!("{simulator}{root}")),
        ]
    }
}

/// The number of kills for which each of the other faults is tried once.
const KILLS_PER_FAULT: u64 = 500;

#[tokio::main]
async fn main() {
    let cli = Cli::parse();
    let seed = cli.seed.unwrap_or_else(|| fastrand::u64(..1_000_000));
    println!("torture: {} kills, {} servers, seed {seed}", cli.kills, cli.servers);
    let store = if cli.postgres { " --postgres" } else { "" };
    let provider = cli.provider.to_possible_value().unwrap();
    let replay = format!(
        "scripts/torture{store} --provider {} --kills {} --servers {} --seed {seed}",
        provider.get_name(),
        cli.kills,
        cli.servers
    );
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        hook(panic);
        println!("\na promise is broken; to replay: {replay}");
        std::process::exit(1);
    }));

    let started = Instant::now();
    let simulator =
        Simulator::start(Options { speed: 20.0, seed, ..Options::default() }).await.unwrap();
    let database = match cli.postgres {
        true => Some(Database::new().await),
        false => None,
    };
    let provider = cli.provider.environment(simulator.url());
    let fleet = Fleet::new(cli.binary, provider, cli.servers, seed, database);
    let fleet = Arc::new(fleet);
    let ledger = Arc::new(Ledger::default());
    let done = Arc::new(AtomicBool::new(false));

    let clients = (0..cli.servers).map(|slot| {
        let (fleet, ledger, done) = (fleet.clone(), ledger.clone(), done.clone());
        tokio::spawn(client::torment(fleet, ledger, slot, seed, done))
    });
    let clients: Vec<_> = clients.collect();
    kill(&fleet, cli.kills, seed).await;
    done.store(true, Ordering::SeqCst);
    for client in clients {
        client.await.unwrap();
    }
    let tortured = started.elapsed();
    verdict::check(&fleet, &ledger, &simulator).await;
    for _ in 0..(cli.kills / KILLS_PER_FAULT).clamp(1, 10) {
        faults::freeze(&fleet).await;
        faults::change_configuration(&fleet).await;
        if let Some(database) = &fleet.database {
            faults::hang(&fleet, database, &simulator).await;
        }
    }
    println!(
        "kills done in {:.1} s, checked after {:.1} s",
        tortured.as_secs_f64(),
        started.elapsed().as_secs_f64()
    );
}

/// Kills random servers until enough have died; those that killed themselves at an armed point count as well.
async fn kill(fleet: &Fleet, kills: u64, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed ^ 0xdead);
    while fleet.deaths() < kills {
        tokio::time::sleep(Duration::from_millis(random.u64(5..200))).await;
        match (&fleet.database, random.u8(..40)) {
            (Some(database), 0) => database.kill_server().await,
            (Some(database), 1..8) => database.kill_connection(&mut random).await,
            (Some(_) | None, _) => fleet.kill_one(&mut random),
        }
    }
}
