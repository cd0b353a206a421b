//! The command line of `outlast serve` and `outlast worker`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::kill_points::KillPoint;

/// `outlast serve`
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Serve over HTTP at this address, such as 127.0.0.1:8080; port 0 takes any
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) http: Option<SocketAddr>,
    /// Ask HTTP clients for no token; only on this machine's own address
    #[arg(long, requires = "http")]
    pub(crate) no_auth: bool,
    /// Tool sets, separated by commas: research, research-jobs, deep-research, perplexity, jobs [env: OUTLAST_TOOLS]
    /// [default: research,research-jobs; deep-research,research-jobs if the first provider is not Perplexity]
    #[arg(long, value_name = "LIST")]
    pub(crate) tools: Option<String>,
    /// Let clients start workflows as jobs (start_job, get_job, ...) instead of waiting for them [env: OUTLAST_ASYNC]
    #[arg(long = "async")]
    pub(crate) async_mode: bool,
    /// Let clients start this workflow and no other
    #[arg(long, value_name = "NAME")]
    pub(crate) workflow: Option<String>,
    /// Longest wait of get_job, from 1 to 300 [env: OUTLAST_POLL_TIMEOUT] [default: 59]
    #[arg(long, value_name = "SECS", allow_hyphen_values = true)]
    pub(crate) poll_timeout: Option<String>,
    /// Only answer calls; leave the work to other processes on the same store
    #[arg(long)]
    pub(crate) no_worker: bool,
    /// Run jobs in this process, not in a worker that outlives it [env: OUTLAST_DETACH=false]
    #[arg(long)]
    pub(crate) no_detach: bool,
    /// Maximum number of jobs at a time [env: OUTLAST_CONCURRENCY] [default: 5]
    #[arg(long, value_name = "N")]
    pub(crate) concurrency: Option<u32>,
    /// Kill this process with SIGKILL when it reaches this point; for tests of crashes
    #[arg(long, value_name = "POINT", hide = true)]
    pub(crate) kill_at: Option<KillPoint>,
    /// The time that a worker may be silent before others take its jobs; for tests
    #[arg(long, value_name = "N", hide = true, value_parser = clap::value_parser!(u64).range(100..))]
    pub(crate) lease_ms: Option<u64>,
    /// A file that holds how many milliseconds the clock is ahead, or behind; for tests
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) clock_file: Option<PathBuf>,
    /// The shortest interval at which unknown keys of an OAuth issuer are looked for; for tests
    #[arg(long, value_name = "N", hide = true)]
    pub(crate) key_refetch_ms: Option<u64>,
    /// The time for which an unused HTTP session is kept; for tests
    #[arg(long, value_name = "N", hide = true, value_parser = clap::value_parser!(u64).range(10..))]
    pub(crate) session_idle_ms: Option<u64>,
    /// The number of requests of a stdio client that may be unanswered; for tests
    #[arg(long, value_name = "N", hide = true)]
    pub(crate) max_unanswered: Option<usize>,
    /// The maximum number of HTTP connections; for tests
    #[arg(long, value_name = "N", hide = true)]
    pub(crate) max_connections: Option<usize>,
    /// The maximum number of bytes of HTTP requests under way; for tests
    #[arg(long, value_name = "N", hide = true)]
    pub(crate) max_body_bytes: Option<usize>,
    /// The time for which an HTTP client may accept no bytes; for tests
    #[arg(long, value_name = "N", hide = true)]
    pub(crate) write_timeout_ms: Option<u64>,
}

/// Parses an address and a port; `localhost` is the one name that means the same everywhere.
fn address(text: &str) -> Result<SocketAddr, String> {
    let parsed = match text.strip_prefix("localhost:") {
        Some(port) => format!("127.0.0.1:{port}").parse(),
        None => text.parse(),
    };
    parsed.map_err(|_| "not an address and a port such as 127.0.0.1:8080 or [::1]:8080".to_owned())
}

/// `outlast worker`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct WorkerArgs {
    #[command(subcommand)]
    pub(crate) command: Option<WorkerCommand>,
    /// Maximum number of jobs at a time [env: OUTLAST_CONCURRENCY] [default: 5]
    #[arg(long, value_name = "N")]
    pub(crate) concurrency: Option<u32>,
    /// Exit when there is nothing left to do
    #[arg(long)]
    pub(crate) until_idle: bool,
    /// Serve health and metrics at this address, such as 127.0.0.1:9090
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) http: Option<SocketAddr>,
    /// Work on the documents in this folder; for the worker that research leaves behind
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) library: Vec<PathBuf>,
    /// Run the jobs that processes of this identity leave to it, and exit when there is nothing to do; started by
    /// outlast itself
    #[arg(long, value_name = "IDENTITY", hide = true)]
    pub(crate) detached: Option<String>,
}

/// `outlast worker list` and `outlast worker stop`
#[derive(Debug, Subcommand)]
pub(crate) enum WorkerCommand {
    /// List the workers that servers and commands left running in the background
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Stop them; their jobs wait for the next worker
    Stop {
        /// The worker to stop, as `worker list` shows it [default: all of this store]
        id: Option<String>,
    },
}
