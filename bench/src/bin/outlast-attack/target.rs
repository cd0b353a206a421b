//! The program under attack in a separate folder, with the simulated provider that counts its paid runs.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use outlast_simulator::{Options, Simulator};
use outlast_testkit::mcp_process::McpProcess;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{Setting, Verdict};

pub(crate) const DEEP: &str = "perplexity_deep_research";
pub(crate) const START: &str = "perplexity_research_start";
pub(crate) const POLL: &str = "perplexity_research_poll";

/// The time limit of every wait, unless the attack succeeds.
const PATIENCE: Duration = Duration::from_secs(45);

pub(crate) struct Target {
    pub(crate) binary: PathBuf,
    pub(crate) simulator: Simulator,
    pub(crate) folder: TempDir,
    pub(crate) environment: Vec<(String, String)>,
}

impl Target {
    pub(crate) async fn new(setting: &Setting) -> Self {
        let options = Options { speed: 20.0, ..Options::default() };
        let simulator = Simulator::start(options).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        let environment = [
            ("HOME", path),
            ("PATH", "/usr/bin:/bin"),
            ("OUTLAST_DATA_DIR", &format!("{path}/data")),
            ("PERPLEXITY_API_KEY", "pplx-attack"),
            ("PERPLEXITY_BASE_URL", simulator.url()),
            ("PERPLEXITY_RETRY_BASE_MS", "10"),
            ("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "100"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let binary = setting.binary.canonicalize().unwrap();
        Self { binary, simulator, folder, environment: environment.to_vec() }
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.environment.retain(|(set, _)| set != name);
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    fn environment(&self) -> Vec<(&str, &str)> {
        self.environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    /// Starts a stdio server and greets it.
    pub(crate) async fn serve(&self, flags: &[&str]) -> McpProcess {
        let arguments: Vec<&str> =
            ["serve", "--no-detach"].into_iter().chain(flags.iter().copied()).collect();
        McpProcess::start(&self.binary, arguments, &self.environment()).await
    }

    /// Starts a process without a greeting.
    pub(crate) fn spawn(&self, program: &str, arguments: &[&str]) -> McpProcess {
        McpProcess::spawn(program.as_ref(), arguments, &self.environment())
    }

    /// Returns a command that is not yet started.
    pub(crate) fn command(&self, arguments: &[&str]) -> tokio::process::Command {
        let mut command = tokio::process::Command::new(&self.binary);
        command
            .args(arguments)
            .env_clear()
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Runs a command to its end; returns its exit code, standard output and standard error.
    pub(crate) async fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let output = self.command(arguments).output().await.unwrap();
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    /// Returns the states of all jobs, newest first.
    pub(crate) async fn states(&self) -> Vec<String> {
        let (_, listed, _) =
            self.run(&["jobs", "list", "--all", "--json", "--limit", "1000"]).await;
        let listed: Value = serde_json::from_str(&listed).unwrap_or_default();
        let jobs = listed["jobs"].as_array().or_else(|| listed.as_array()).cloned();
        let state = |job: &Value| job["state"].as_str().unwrap_or_default().to_owned();
        jobs.unwrap_or_default().iter().map(state).collect()
    }

    /// Waits until all jobs, at least one, are in this state.
    pub(crate) async fn all_become(&self, state: &str) -> Result<(), String> {
        let mut states = Vec::new();
        let waiting = async {
            loop {
                states = self.states().await;
                if !states.is_empty() && states.iter().all(|it| it == state) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(()) => Ok(()),
            Err(_) => {
                let submits = self.simulator.stats().submits;
                Err(format!("the jobs do not become {state} ({submits} submits): {states:?}"))
            }
        }
    }

    /// Waits until the provider was paid for this number of runs.
    pub(crate) async fn submitted(&self, runs: u64) {
        self.until(|| self.simulator.stats().submits >= runs).await;
    }

    /// Waits until this number of runs has ended at the provider.
    pub(crate) async fn completed(&self, runs: usize) {
        let ended = |target: &Self| {
            let stats = target.simulator.stats();
            stats.runs.iter().filter(|run| run.status.to_lowercase() == "completed").count()
        };
        self.until(|| ended(self) >= runs).await;
    }

    /// Waits until the store has recorded the run of this job.
    pub(crate) async fn recorded(&self, id: &str) {
        self.shows(id, |job| job["checkpoint"]["at"] == "running").await;
    }

    /// Waits until this job has ended, or the provider was paid for this many runs.
    pub(crate) async fn ended_or_paid(&self, id: &str, runs: u64) {
        let is_over = |job: &Value| job["state"] != "queued" && job["state"] != "running";
        self.shows(id, |job| is_over(job) || self.simulator.stats().submits >= runs).await;
    }

    async fn shows(&self, id: &str, holds: impl Fn(&Value) -> bool) {
        let waiting = async {
            loop {
                let (_, shown, _) = self.run(&["jobs", "show", id, "--json"]).await;
                if serde_json::from_str(&shown).is_ok_and(|job| holds(&job)) {
                    return;
                }
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    }

    /// Waits until the provider was asked to stop a run.
    pub(crate) async fn cancel_seen(&self) {
        self.until(|| self.simulator.stats().cancels >= 1).await;
    }

    async fn until(&self, holds: impl Fn() -> bool) {
        let waiting = async {
            while !holds() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    }

    /// Checks that the provider was paid for exactly this number of runs.
    pub(crate) fn paid(&self, runs: u64) -> Verdict {
        match self.simulator.stats().submits {
            submits if submits == runs => Ok(format!("{submits} submits")),
            submits => Err(format!("{submits} submits in place of {runs}")),
        }
    }
}

/// Returns the arguments of deep research that the provider answers according to the scenario.
pub(crate) fn research(scenario: &str) -> Value {
    json!({ "query": format!("Why is the sky blue? [[sim:{scenario}]]") })
}

/// Returns the arguments of a start.
pub(crate) fn start(number: usize, scenario: &str) -> Value {
    let content = format!("Question {number}? [[sim:{scenario}]]");
    json!({ "messages": [{ "role": "user", "content": content }] })
}

/// Calls a tool of a stdio server without waiting for its answer.
pub(crate) async fn ask(server: &mut McpProcess, tool: &str, arguments: &Value) -> u64 {
    server.send("tools/call", json!({ "name": tool, "arguments": arguments })).await
}
