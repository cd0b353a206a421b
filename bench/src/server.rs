//! The server under measurement, in a separate folder.

use std::path::{Path, PathBuf};

use outlast_simulator::Simulator;
use outlast_testkit::mcp_process::McpProcess;
use serde_json::Value;
use tempfile::TempDir;

pub(crate) struct World {
    pub(crate) binary: PathBuf,
    pub(crate) simulator: Simulator,
    folder: TempDir,
}

impl World {
    pub(crate) fn new(binary: PathBuf, simulator: Simulator) -> Self {
        Self { binary, simulator, folder: tempfile::tempdir().unwrap() }
    }

    fn environment(&self) -> [(&str, &str); 6] {
        [
            ("HOME", self.folder.path().to_str().unwrap()),
            ("OUTLAST_DATA_DIR", self.folder.path().to_str().unwrap()),
            ("OUTLAST_MAX_JOBS_PER_OWNER", "1000000"),
            ("OUTLAST_LOG", "warn"),
            ("PERPLEXITY_API_KEY", "pplx-bench"),
            ("PERPLEXITY_BASE_URL", self.simulator.url()),
        ]
    }

    pub(crate) async fn serve(&self, flags: &[&str]) -> McpProcess {
        self.serve_with(flags, &[]).await
    }

    pub(crate) async fn serve_with(&self, flags: &[&str], more: &[(&str, &str)]) -> McpProcess {
        self.serve_program(&self.binary, flags, more).await
    }

    /// Starts the same server with another program.
    pub(crate) async fn serve_program(
        &self,
        program: &Path,
        flags: &[&str],
        more: &[(&str, &str)],
    ) -> McpProcess {
        let arguments = ["serve", "--no-detach"].iter().chain(flags);
        let environment = [&self.environment(), more].concat();
        McpProcess::start(program, arguments, &environment).await
    }

    /// Starts over with an empty store.
    pub(crate) fn forget_jobs(&self) {
        for entry in std::fs::read_dir(self.folder.path()).unwrap().map(Result::unwrap) {
            if entry.path().is_file() {
                std::fs::remove_file(entry.path()).unwrap();
            }
        }
    }

    pub(crate) async fn until_running(&self, id: &str) {
        while self.show(id).await["checkpoint"]["at"] != "running" {}
    }

    pub(crate) async fn until_ended(&self, id: &str) {
        while self.show(id).await["ended_at"].is_null() {}
    }

    /// Returns the time at which the job ended according to the store, in milliseconds.
    pub(crate) async fn ended_at(&self, id: &str) -> i64 {
        let shown = self.show(id).await;
        let started = millis_of_day(shown["created_at"].as_str().unwrap());
        let ended = millis_of_day(shown["ended_at"].as_str().unwrap());
        assert!(ended >= started, "measured over midnight; run it again");
        ended
    }

    /// Returns the time of day in milliseconds, by the same clock as the store's.
    pub(crate) fn now_millis(&self) -> i64 {
        #[expect(clippy::disallowed_methods, reason = "compared with dates in the store")]
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        i64::try_from(since.as_millis()).unwrap() % 86_400_000
    }

    async fn show(&self, id: &str) -> Value {
        let output = tokio::process::Command::new(&self.binary)
            .args(["jobs", "show", id, "--json"])
            .env_clear()
            .envs(self.environment())
            .output()
            .await
            .unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// Returns the resident memory of a process.
pub(crate) fn resident_megabytes(pid: u32) -> f64 {
    memory(pid, "VmRSS:")
}

/// Returns the peak memory of a process.
pub(crate) fn peak_megabytes(pid: u32) -> f64 {
    memory(pid, "VmHWM:")
}

fn memory(pid: u32, name: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(name));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
    kilobytes.unwrap_or(f64::NAN) / 1e3
}

/// Returns the processor time of a process, in seconds; the kernel counts in hundredths.
pub(crate) fn cpu_seconds(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The name in parentheses may contain anything; the rest is regular.
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks = |index: usize| fields[index].parse::<f64>().unwrap();
    (ticks(11) + ticks(12)) / 100.0
}

/// Parses the time of day from `2026-11-15T02:21:00.007Z`.
fn millis_of_day(date: &str) -> i64 {
    let time = &date[11..23];
    let number = |from: usize, to: usize| time[from..to].parse::<i64>().unwrap();
    ((number(0, 2) * 60 + number(3, 5)) * 60 + number(6, 8)) * 1000 + number(9, 12)
}
