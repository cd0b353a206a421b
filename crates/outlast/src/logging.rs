//! The log: standard error, one line an event, quiet about other people's crates and about what it has just said.

mod unrepeated;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Format;
use tracing_subscriber::prelude::*;

use crate::cli::Global;
use unrepeated::Unrepeated;

/// Starts the log on standard error, or in a file. `-v` and `-q` win over the configured filter.
pub(crate) fn start<W>(writer: W, global: &Global, configured: &str) -> Result<(), String>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let level = match (global.quiet, global.verbose) {
        (true, _) => "error",
        (false, 0) => configured,
        (false, 1) => "debug",
        (false, _) => "trace",
    };
    let filter = filter(level)?;
    let log = tracing_subscriber::fmt::layer()
        .with_writer(writer)
        // Colour would need a feature that is off; to ask for it on a terminal would panic.
        .with_ansi(false)
        .event_format(Unrepeated::new(Format::default().without_time().with_target(false)));
    tracing_subscriber::registry().with(log).with(filter).init();
    Ok(())
}

/// What is logged at a level, or at levels by target such as `outlast_server=debug,warn`.
fn filter(levels: &str) -> Result<Targets, String> {
    // A word alone would name a target, and the log of a mistyped level would be empty.
    for word in levels.split(',').filter(|part| !part.contains('=')) {
        word.trim().parse::<LevelFilter>().map_err(|error| error.to_string())?;
    }
    // rmcp reports a client that left as an error of its own; what matters of that is logged by us.
    let all = format!("rmcp=off,hyper_util=warn,reqwest=warn,{levels}").parse::<Targets>();
    all.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_level_is_refused_and_not_taken_for_a_target() {
        for readable in ["info", "WARN", "outlast_server=debug,warn", "rmcp=trace, error", "off"] {
            assert!(filter(readable).is_ok(), "{readable}");
        }
        for mistyped in ["loud", "warning", "outlast=loud", "info,outlast_server"] {
            assert!(filter(mistyped).is_err(), "{mistyped}");
        }
    }
}
