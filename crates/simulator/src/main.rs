//! `outlast-simulator`: the simulated providers in the foreground, for tests and experiments. Never shipped.

use std::io::Write as _;
use std::process::ExitCode;

use clap::builder::PossibleValue;
use clap::{Parser, ValueEnum};
use outlast_simulator::{ClockMode, GUIDE, Options, Simulator, SonarMode};

/// Run a local server that speaks the providers' APIs, for tests and experiments
///
/// Point outlast at it with PERPLEXITY_BASE_URL and any key. A question may say what goes wrong, in double
/// brackets: `Why? [[sim:503x2]]` is refused twice before it is accepted.
#[derive(Debug, Parser)]
#[command(name = "outlast-simulator", version, max_term_width = 100, after_long_help = scenarios())]
struct Args {
    /// The port on 127.0.0.1; 0 selects a free one
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// Divides all delays
    #[arg(long, value_name = "X", default_value = "1", value_parser = speed)]
    speed: f64,
    /// Changes the reports; the same seed gives the same ones
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// The state of the Sonar endpoints, which the vendor retired
    #[arg(long, value_name = "STATE", default_value = "retired")]
    sonar: Sonar,
    /// The clock of all delays; a virtual one advances only by POST /__sim/advance
    #[arg(long, value_name = "CLOCK", default_value = "real")]
    clock: Clock,
}

#[derive(Clone, Copy, Debug)]
struct Sonar(SonarMode);

impl ValueEnum for Sonar {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self(SonarMode::Retired), Self(SonarMode::Live)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self.0 {
            SonarMode::Retired => {
                PossibleValue::new("retired").help("Answer 403, as the vendor does")
            }
            SonarMode::Live => PossibleValue::new("live").help("Answer as before"),
        })
    }
}

#[derive(Clone, Copy, Debug)]
struct Clock(ClockMode);

impl ValueEnum for Clock {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self(ClockMode::Real), Self(ClockMode::Virtual)]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self.0 {
            ClockMode::Real => PossibleValue::new("real").help("The time that passes"),
            ClockMode::Virtual => {
                PossibleValue::new("virtual").help("A time that only advances on request")
            }
        })
    }
}

fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse().ok().filter(|speed: &f64| speed.is_finite() && *speed > 0.0);
    speed.ok_or_else(|| "it must be greater than 0, for example --speed 10".to_owned())
}

/// Returns the end of the output of `--help`.
fn scenarios() -> String {
    format!(
        "Examples:\n  outlast-simulator --port 9000 --speed 10\n\nScenarios, written between [[sim: and ]], \
         several clauses separated by |:\n\n{GUIDE}"
    )
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    match serve(&args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            drop(writeln!(std::io::stderr(), "error: listen on 127.0.0.1:{}: {error}", args.port));
            ExitCode::FAILURE
        }
    }
}

async fn serve(args: &Args) -> std::io::Result<()> {
    let simulator = Simulator::start(Options {
        port: args.port,
        speed: args.speed,
        seed: args.seed,
        sonar: args.sonar.0,
        clock: args.clock.0,
    })
    .await?;
    let url = simulator.url();
    writeln!(std::io::stdout(), "{}", serde_json::json!({ "url": url }))?;
    writeln!(
        std::io::stderr(),
        "The simulated provider is up. In another terminal:\n  \
         PERPLEXITY_API_KEY=pplx-any PERPLEXITY_BASE_URL={url} outlast serve"
    )?;
    tokio::select! {
        () = simulator.stopped() => {}
        interrupted = tokio::signal::ctrl_c() => interrupted?,
    }
    simulator.stop().await;
    Ok(())
}
