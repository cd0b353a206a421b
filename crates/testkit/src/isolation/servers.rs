//! The servers under test: two over one store, with their tool sets in a different order, so that every tool is
//! available.

use std::net::SocketAddr;
use std::path::Path;

use tempfile::TempDir;

use super::owners::{MIRRORED, NAMES, tokens};
use crate::mcp_process::McpProcess;
use crate::postgres;

/// The order of the sets decides which `perplexity_search` is served.
const SETS: [&str; 2] = ["research,research-jobs,perplexity", "perplexity,research-jobs,research"];

/// The servers' API key for the provider.
pub(super) const KEY: &str = "pplx-isolation-0123456789";

/// Servers in a separate folder.
pub struct Servers {
    pub(super) processes: Vec<McpProcess>,
    addresses: Vec<SocketAddr>,
    folder: TempDir,
}

impl Servers {
    /// Starts the servers with this provider and log filter.
    pub async fn start(binary: &Path, provider: &str, log: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (mut processes, mut addresses) = (Vec::new(), Vec::new());
        let store = match postgres::everywhere() {
            true => postgres::fresh_schema().await,
            false => format!("sqlite:{}/outlast.db", folder.path().display()),
        };
        for sets in SETS {
            let home = folder.path().to_str().unwrap();
            let log = format!("{log},outlast_server::http=info");
            let environment = [
                ("HOME", home),
                ("OUTLAST_DATA_DIR", home),
                ("OUTLAST_STORE", &store),
                ("OUTLAST_OWNER", NAMES[MIRRORED]),
                ("OUTLAST_TOKENS", &tokens()),
                ("OUTLAST_TOOLS", sets),
                ("OUTLAST_LOG", &log),
                ("OUTLAST_CONCURRENCY", "16"),
                ("OUTLAST_INLINE_BUDGET_MS", "30"),
                ("OUTLAST_MAX_JOBS_PER_OWNER", "1000000"),
                ("OUTLAST_RATE_PER_MINUTE", "1000000"),
                ("PERPLEXITY_API_KEY", KEY),
                ("PERPLEXITY_BASE_URL", provider),
                ("PERPLEXITY_ENABLE_ASYNC_DEEP_RESEARCH", "auto"),
                ("PERPLEXITY_MAX_JOB_RETRIES", "0"),
                ("PERPLEXITY_RETRY_BASE_MS", "10"),
                ("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "30"),
            ];
            let process =
                McpProcess::spawn(binary, ["serve", "--http", "127.0.0.1:0"], &environment);
            process.logged("/mcp").await;
            let log = process.log();
            let (_, rest) = log.split_once("listening on http://").expect("log the address");
            addresses.push(rest.split('/').next().unwrap().parse().expect("an address"));
            processes.push(process);
        }
        Self { processes, addresses, folder }
    }

    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.addresses.clone()
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }
}
