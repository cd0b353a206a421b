//! Attacks on the real program: misbehaving clients, providers, floods and restored files, all on loopback and bounded.
//! An attack that succeeds is named, and the exit code is 1.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "an attack stops at the first thing it cannot do, and prints"
)]

mod documents;
mod fairness;
mod floods;
mod hang_ups;
mod money_limits;
mod processes;
mod provider_faults;
mod refused_cancel;
mod restored;
mod same_question;
mod secrets;
mod silent;
mod surface;
mod target;
mod web;

use std::path::PathBuf;
use std::pin::Pin;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// `Ok` has the counts of a program that held; `Err` describes how the attack succeeded.
type Verdict = Result<String, String>;
type Attack = fn(Setting) -> Pin<Box<dyn Future<Output = Verdict> + Send>>;

/// The time limit of an attack; one that takes longer has succeeded.
const LIMIT: Duration = Duration::from_secs(180);

/// The parameters of an attack.
#[derive(Clone)]
struct Setting {
    binary: PathBuf,
    /// Small numbers, for every change; the large ones are for releases.
    short: bool,
}

/// Attacks a program and reports the attacks that succeeded.
#[derive(Parser)]
struct Cli {
    /// The program to attack
    #[arg(long)]
    binary: PathBuf,
    /// Fewer jobs, connections and bytes
    #[arg(long)]
    short: bool,
    /// Only the attacks whose name starts with one of these; all without any
    names: Vec<String>,
}

/// The attacks that mostly wait run concurrently; the floods, which measure, run alone.
const PATIENT: &[(&str, Attack)] = &[
    ("silent-stdio", |setting| Box::pin(silent::stdio(setting))),
    ("silent-death", |setting| Box::pin(silent::death(setting))),
    ("silent-http-reset", |setting| Box::pin(silent::http_reset(setting))),
    ("silent-auto", |setting| Box::pin(silent::auto(setting))),
    ("question-forms", |setting| Box::pin(same_question::forms(setting))),
    ("question-default", |setting| Box::pin(same_question::changed_default(setting))),
    ("question-task", |setting| Box::pin(same_question::task(setting))),
    ("question-call", |setting| Box::pin(same_question::repeated_call(setting))),
    ("hang-up-terminal", |setting| Box::pin(hang_ups::terminal(setting))),
    ("hang-up-call", |setting| Box::pin(hang_ups::call(setting))),
    ("provider-404", |setting| Box::pin(provider_faults::not_found(setting))),
    ("provider-gateway", |setting| Box::pin(provider_faults::gateway(setting))),
    ("refused-cancel", |setting| Box::pin(refused_cancel::retry(setting))),
    ("fairness-queue", |setting| Box::pin(fairness::queue(setting))),
    ("fairness-polls", |setting| Box::pin(fairness::polls(setting))),
    ("fairness-tasks", |setting| Box::pin(fairness::tasks(setting))),
    ("secrets", |setting| Box::pin(secrets::printed(setting))),
    ("restored-backup", |setting| Box::pin(restored::backup(setting))),
    ("terminal-injection", |setting| Box::pin(surface::terminal(setting))),
    ("one-time-link", |setting| Box::pin(surface::one_time_link(setting))),
    ("limits-caps", |setting| Box::pin(money_limits::caps(setting))),
    ("limits-clock", |setting| Box::pin(money_limits::clock(setting))),
    ("limits-roll-back", |setting| Box::pin(money_limits::roll_back(setting))),
    ("data-directory", |setting| Box::pin(processes::data_directory(setting))),
    ("documents-moved", |setting| Box::pin(documents::moved(setting))),
];
const FLOODS: &[(&str, Attack)] = &[
    ("flood-connections", |setting| Box::pin(floods::connections(setting))),
    ("flood-bodies", |setting| Box::pin(floods::bodies(setting))),
    ("flood-sign-in", |setting| Box::pin(surface::sign_in_bodies(setting))),
    ("wrap-endless-line", |setting| Box::pin(processes::endless_line(setting))),
    ("library-link", |setting| Box::pin(processes::library_link(setting))),
    ("library-fifo", |setting| Box::pin(processes::library_fifo(setting))),
];

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let setting = Setting { binary: cli.binary, short: cli.short };
    let chosen =
        |name: &str| cli.names.is_empty() || cli.names.iter().any(|it| name.starts_with(it));
    let mut succeeded = 0;
    let patient = PATIENT.iter().copied().filter(|(name, _)| chosen(name));
    let patient: Vec<_> =
        patient.map(|(name, attack)| (name, run(attack, setting.clone()))).collect();
    for (name, attacking) in patient {
        succeeded += told(name, attacking.await.unwrap());
    }
    for (name, attack) in FLOODS.iter().copied().filter(|(name, _)| chosen(name)) {
        succeeded += told(name, run(attack, setting.clone()).await.unwrap());
    }
    println!("{succeeded} attacks succeeded");
    if succeeded == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs an attack in a separate task. An attack that fails to run counts as a success of the attack, and does not end
/// the others.
fn run(attack: Attack, setting: Setting) -> JoinHandle<(Verdict, Duration)> {
    tokio::spawn(async move {
        let began = Instant::now();
        let attacking = tokio::spawn(tokio::time::timeout(LIMIT, attack(setting)));
        let verdict = match attacking.await {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(_)) => Err(format!("no end within {} s", LIMIT.as_secs())),
            Err(error) => Err(format!("the attack broke off: {error}")),
        };
        (verdict, began.elapsed())
    })
}

/// Prints the result of an attack; returns 1 if it succeeded.
fn told(name: &str, (verdict, took): (Verdict, Duration)) -> u32 {
    let seconds = took.as_secs_f64();
    match verdict {
        Ok(counted) => {
            println!("held      {name} ({seconds:.1} s): {counted}");
            0
        }
        Err(how) => {
            println!("SUCCEEDED {name} ({seconds:.1} s): {how}");
            1
        }
    }
}
