//! `outlast simulate`: the simulated provider in the foreground.

use anyhow::Context as _;
use outlast_simulator::{ClockMode, Options, Simulator, SonarMode};

use crate::cli::SimulateArgs;
use crate::error::{CommandResult, DONE, refuse};
use crate::ui;

pub(super) async fn run(args: SimulateArgs) -> CommandResult {
    if !(args.speed.is_finite() && args.speed > 0.0) {
        return refuse("--speed must be greater than 0", "for example --speed 10");
    }
    let port = args.port;
    let simulator = Simulator::start(options(&args)).await;
    let simulator = simulator.with_context(|| format!("listen on 127.0.0.1:{port}"))?;
    ui::line(&serde_json::json!({ "url": simulator.url() }).to_string());
    ui::remark("The simulated provider is up. In another terminal:");
    ui::remark(&format!(
        "  PERPLEXITY_API_KEY=pplx-any PERPLEXITY_BASE_URL={} outlast serve",
        simulator.url()
    ));
    tokio::select! {
        () = simulator.stopped() => {}
        done = tokio::signal::ctrl_c() => done?,
    }
    simulator.stop().await;
    DONE
}

fn options(args: &SimulateArgs) -> Options {
    Options {
        port: args.port,
        speed: args.speed,
        seed: args.seed,
        sonar: if args.sonar == "live" { SonarMode::Live } else { SonarMode::Retired },
        clock: if args.clock == "virtual" { ClockMode::Virtual } else { ClockMode::Real },
    }
}
