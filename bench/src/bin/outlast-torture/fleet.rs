//! The servers: each is in a slot, killed by any client, and started again by the next client that uses the slot.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use outlast_testkit::mcp_process::{McpProcess, Signal, signal};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Mutex;

use crate::database::Database;

/// Every point of the one path, as `--kill-at` names them.
const POINTS: [&str; 7] = [
    "after-insert",
    "after-claim",
    "after-beginning",
    "after-answer",
    "after-running",
    "before-settle",
    "after-settle",
];

pub(crate) struct Fleet {
    binary: PathBuf,
    folder: TempDir,
    /// The variables that configure the provider of a server.
    provider: Vec<(String, String)>,
    slots: Vec<Slot>,
    deaths: AtomicU64,
    pub(crate) database: Option<Database>,
}

struct Slot {
    server: Mutex<(Option<McpProcess>, fastrand::Rng)>,
    /// The process id of the running server; 0 if there is none.
    pid: AtomicU32,
}

impl Fleet {
    pub(crate) fn new(
        binary: PathBuf,
        provider: Vec<(String, String)>,
        servers: usize,
        seed: u64,
        database: Option<Database>,
    ) -> Self {
        let slot = |number: usize| {
            let random = fastrand::Rng::with_seed(seed.wrapping_add(number as u64));
            Slot { server: Mutex::new((None, random)), pid: AtomicU32::new(0) }
        };
        Self {
            binary,
            folder: tempfile::tempdir().unwrap(),
            provider,
            slots: (0..servers).map(slot).collect(),
            deaths: AtomicU64::new(0),
            database,
        }
    }

    pub(crate) fn deaths(&self) -> u64 {
        self.deaths.load(Ordering::SeqCst)
    }

    fn environment(&self) -> Vec<(&str, &str)> {
        let folder = self.folder.path().to_str().unwrap();
        let mut environment = vec![
            ("HOME", folder),
            ("OUTLAST_DATA_DIR", folder),
            ("OUTLAST_LOG", "error"),
            ("PERPLEXITY_RETRY_BASE_MS", "10"),
            ("PERPLEXITY_MAX_JOB_RETRIES", "5"),
            ("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "50"),
        ];
        environment
            .extend(self.provider.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        if let Some(database) = &self.database {
            environment.extend([("OUTLAST_STORE", &*database.url), ("OUTLAST_OWNER", "torturer")]);
        }
        environment
    }

    /// Calls a tool in a slot; `None` if the server died before it answered.
    pub(crate) async fn call(&self, slot: usize, tool: &str, arguments: Value) -> Option<Value> {
        let slot = &self.slots[slot];
        let mut held = slot.server.lock().await;
        let (server, random) = &mut *held;
        if server.is_none() {
            *server = self.start(random).await;
            slot.pid.store(server.as_ref().map_or(0, McpProcess::pid), Ordering::SeqCst);
        }
        let process = server.as_mut()?;
        let call =
            process.send("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        let answer = process.answer(call).await;
        process.seen.clear();
        if answer.is_none() {
            slot.pid.store(0, Ordering::SeqCst);
            if let Some(dead) = server.take() {
                self.count_death(dead).await;
            }
        }
        let answer = answer?;
        assert!(answer.get("error").is_none(), "{tool}: {answer}");
        Some(answer["result"].clone())
    }

    /// Counts a server that was killed. One that finds no database exits by itself and logs the reason.
    async fn count_death(&self, dead: McpProcess) {
        let (status, log) = dead.ended().await;
        if self.database.is_some() && status.code() == Some(2) {
            return;
        }
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        assert_eq!(signal, Some(9), "a server died by itself: {status}\n{log}");
        // While the database is unreachable, writes are retried, which is logged.
        let is_expected = |line: &&str| self.database.is_some() && line.contains("will try again");
        let complaints = log.lines().filter(|line| line.contains("ERROR") && !is_expected(line));
        assert_eq!(complaints.count(), 0, "a server complained:\n{log}");
        self.deaths.fetch_add(1, Ordering::SeqCst);
    }

    /// Starts a server; every third one is armed to kill itself at some point of the path.
    async fn start(&self, random: &mut fastrand::Rng) -> Option<McpProcess> {
        let mut arguments = vec!["serve", "--no-detach"];
        if self.database.is_some() {
            // No server runs long enough to decide which other workers are dead.
            arguments.extend(["--lease-ms", "3000"]);
        }
        if random.u8(..3) == 0 {
            arguments.extend(["--kill-at", POINTS[random.usize(..POINTS.len())]]);
        }
        let mut process = McpProcess::spawn(&self.binary, arguments, &self.environment());
        // It may resume a job and be killed by that before it is greeted.
        match process.try_greet().await {
            Some(_) => Some(process),
            None => {
                self.count_death(process).await;
                None
            }
        }
    }

    /// Kills the server in the slot.
    pub(crate) fn kill_one(&self, random: &mut fastrand::Rng) {
        let pid = self.slots[random.usize(..self.slots.len())].pid.swap(0, Ordering::SeqCst);
        if pid != 0 {
            signal(pid, Signal::KILL);
        }
    }

    /// Ends all servers and starts one that is not killed.
    pub(crate) async fn rest(&self) -> McpProcess {
        for slot in &self.slots {
            let mut held = slot.server.lock().await;
            if let Some(mut server) = held.0.take() {
                server.kill().await;
            }
        }
        let mut arguments = vec!["serve", "--no-detach", "--concurrency", "50"];
        if self.database.is_some() {
            arguments.extend(["--lease-ms", "3000"]);
        }
        McpProcess::start(&self.binary, arguments, &self.environment()).await
    }

    /// Returns the folder of the store and its related files.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts a server that is not killed at random, with these variables added.
    pub(crate) async fn serve(&self, arguments: &[&str], added: &[(&str, &str)]) -> McpProcess {
        let environment = [&self.environment(), added].concat();
        let arguments = ["serve"].iter().chain(arguments);
        McpProcess::start(&self.binary, arguments, &environment).await
    }

    /// Runs a command over the same store.
    pub(crate) async fn command(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = tokio::process::Command::new(&self.binary)
            .args(arguments)
            .env_clear()
            .envs(self.environment())
            .output()
            .await
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    }
}
