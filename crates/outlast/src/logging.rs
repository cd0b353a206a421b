//! The log: on standard error, one line for each event. It leaves out most events of other crates, and repetitions.

pub(crate) mod json;
mod unrepeated;

use std::io::Write as _;
use std::sync::{Arc, OnceLock};

use tracing::Level;
use tracing_subscriber::filter::{LevelFilter, Targets, filter_fn};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Format;
use tracing_subscriber::prelude::*;

use crate::cli::Global;
use crate::config::LogFormat;
use crate::detached::log_relay::{JobDatagrams, LogRelay};
use crate::detached::own_jobs::{OwnJobs, OwnJobsLayer};
use unrepeated::DeduplicatingFormat;

/// The other processes with which log lines are exchanged.
pub(crate) enum Relay {
    None,
    /// A detached worker: it sends the lines about jobs also to the servers that inserted them.
    ToServers(LogRelay),
    /// A server: it receives the lines about its jobs from detached workers.
    FromWorkers(Arc<OwnJobs>),
}

/// The form of this process's lines.
static FORMAT: OnceLock<LogFormat> = OnceLock::new();

/// The filter of this process.
static FILTER: OnceLock<Targets> = OnceLock::new();

/// Starts the log on standard error, or in a file. `-v` and `-q` override the configured filter.
pub(crate) fn start<W>(
    writer: W,
    global: &Global,
    configured: &str,
    format: LogFormat,
    relay: Relay,
) -> Result<(), String>
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
        // Colour would need a feature that is off; requesting it on a terminal would panic.
        .with_ansi(false)
        .event_format(DeduplicatingFormat::new(
            Format::default().without_time().with_target(false),
            format,
        ));
    let _ = FORMAT.set(format);
    let _ = FILTER.set(filter.clone());
    let (to_servers, from_workers) = match relay {
        Relay::None => (None, None),
        Relay::ToServers(relay) => (Some(relay), None),
        Relay::FromWorkers(own_jobs) => (None, Some(own_jobs)),
    };
    let to_servers = to_servers.map(|relay| {
        let lines = tracing_subscriber::fmt::layer().with_writer(relay).with_ansi(false);
        let lines = lines.event_format(JobDatagrams::new(format));
        lines.with_filter(filter_fn(LogRelay::is_relayed).with_max_level_hint(LevelFilter::INFO))
    });
    // Added after the log itself, so that lines that wait for the line about an insert come after it.
    let from_workers = from_workers.map(|own_jobs| {
        let inserts = filter_fn(OwnJobs::is_insert).with_max_level_hint(LevelFilter::INFO);
        OwnJobsLayer(own_jobs).with_filter(inserts)
    });
    let all = tracing_subscriber::registry().with(log.with_filter(filter));
    all.with(to_servers).with(from_workers).init();
    Ok(())
}

/// Writes a line of another process to standard error, unless this process would not have logged it.
pub(crate) fn write_relayed(level: Level, target: &str, line: &str) {
    if FILTER.get().is_some_and(|filter| filter.would_enable(target, &level)) {
        // A failed write is ignored: nobody reads standard error then.
        let mut line = match FORMAT.get() {
            // A worker that another server started may write text.
            Some(LogFormat::Json) if !line.starts_with('{') => json::wrap_text(level, target, line),
            Some(LogFormat::Json | LogFormat::Text) | None => line.to_owned(),
        };
        line.push('\n');
        drop(std::io::stderr().write_all(line.as_bytes()));
    }
}

/// Parses the filter: a level, or levels by target such as `outlast_server=debug,warn`.
fn filter(levels: &str) -> Result<Targets, String> {
    // A word alone would name a target, and the log of a mistyped level would be empty.
    for word in levels.split(',').filter(|part| !part.contains('=')) {
        word.trim().parse::<LevelFilter>().map_err(|error| error.to_string())?;
    }
    // rmcp reports a client that left as an error; outlast logs the relevant part of that itself.
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
