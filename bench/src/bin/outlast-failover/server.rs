//! A real server whose jobs run while the primary is killed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use outlast_simulator::{Options, Simulator};
use outlast_testkit::mcp_process::McpProcess;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::Instant;

/// The longest time that jobs may take to end after a promotion.
const MAX_WAIT: Duration = Duration::from_secs(90);

pub(crate) struct RunningServer {
    binary: PathBuf,
    environment: Vec<(String, String)>,
    process: McpProcess,
    _simulator: Simulator,
    _folder: TempDir,
}

impl RunningServer {
    pub(crate) async fn start(binary: &Path, store: &str) -> Self {
        let simulator = Simulator::start(Options::default()).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        let environment = [
            ("HOME", path),
            ("OUTLAST_DATA_DIR", path),
            ("OUTLAST_STORE", store),
            ("OUTLAST_OWNER", "server"),
            ("PERPLEXITY_API_KEY", "pplx-failover"),
            ("PERPLEXITY_BASE_URL", simulator.url()),
        ];
        let arguments =
            ["serve", "--no-detach", "--tools", "research-jobs", "--concurrency", "100"];
        let process = McpProcess::start(binary, arguments, &environment).await;
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self {
            binary: binary.to_owned(),
            environment: environment.to_vec(),
            process,
            _simulator: simulator,
            _folder: folder,
        }
    }

    /// Starts jobs for this time, each of which runs longer than that.
    pub(crate) async fn start_jobs(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            let content = "Does it last? [[sim:ok;words=40;delay_ms=3000]]";
            let messages = json!([{ "role": "user", "content": content }]);
            self.process.call("perplexity_research_start", json!({ "messages": messages })).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until every remaining job has ended, and returns their number.
    pub(crate) async fn end(mut self) -> usize {
        let deadline = Instant::now() + MAX_WAIT;
        loop {
            let jobs = self.jobs().await;
            let is_end = |job: &&Value| {
                matches!(job["state"].as_str(), Some("succeeded" | "failed" | "cancelled"))
            };
            let left: Vec<_> = jobs.iter().filter(|job| !is_end(job)).collect();
            if left.is_empty() && !jobs.is_empty() {
                self.process.kill().await;
                return jobs.len();
            }
            assert!(Instant::now() < deadline, "after the promotion jobs never end: {left:?}");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    async fn jobs(&self) -> Vec<Value> {
        let output = tokio::process::Command::new(&self.binary)
            .args(["jobs", "list", "--json", "--limit", "1000"])
            .env_clear()
            .envs(self.environment.iter().cloned())
            .output()
            .await
            .unwrap();
        let listed: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| {
            panic!("jobs cannot be listed: {}", String::from_utf8_lossy(&output.stderr))
        });
        listed["jobs"].as_array().unwrap().clone()
    }
}
