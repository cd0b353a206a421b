//! The real binary in a separate folder, against the simulated provider.

use std::path::{Path, PathBuf};

use outlast_simulator::{Options, Simulator};
use outlast_testkit::mcp_process::{McpProcess, Signal, signal};
use outlast_testkit::postgres;
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const START: &str = "perplexity_research_start";
pub(crate) const POLL: &str = "perplexity_research_poll";
pub(crate) const CANCEL: &str = "perplexity_research_cancel";

/// A provider and a data directory that outlive any number of servers.
pub(crate) struct World {
    pub(crate) simulator: Simulator,
    folder: TempDir,
    pub(crate) environment: Vec<(String, String)>,
}

impl World {
    /// Creates a world with short waits between attempts; everything else has its default.
    pub(crate) async fn new() -> Self {
        Self::with(Options::default()).await
    }

    /// Creates a world with a provider of these options; its speed is ours.
    pub(crate) async fn with(options: Options) -> Self {
        let simulator = Simulator::start(Options { speed: 20.0, ..options }).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        #[expect(clippy::disallowed_methods, reason = "a switch of the tests themselves")]
        let detach = std::env::var("OUTLAST_TEST_DETACH").unwrap_or("false".to_owned());
        let environment = [
            ("HOME", folder.path().join("home").to_str().unwrap()),
            ("OUTLAST_DATA_DIR", folder.path().join("data").to_str().unwrap()),
            ("PERPLEXITY_API_KEY", "pplx-test"),
            ("PERPLEXITY_BASE_URL", simulator.url()),
            ("PERPLEXITY_RETRY_BASE_MS", "10"),
            // Most tests look at the worker of one server, or kill it. Those of detached/ set `auto`, and
            // OUTLAST_TEST_DETACH=auto makes every test leave its jobs to a worker.
            ("OUTLAST_DETACH", &detach),
            ("OUTLAST_TEST_WORKER_IDLE_MS", "1000"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut world = Self { simulator, folder, environment: environment.to_vec() };
        if postgres::everywhere() {
            world.move_to_postgres().await;
        }
        world
    }

    /// Creates a world whose jobs are in a database.
    pub(crate) async fn on_postgres() -> Self {
        let mut world = Self::new().await;
        if !postgres::everywhere() {
            world.move_to_postgres().await;
        }
        world
    }

    async fn move_to_postgres(&mut self) {
        self.set("OUTLAST_STORE", &postgres::fresh_schema().await);
        self.set("OUTLAST_OWNER", "tester");
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.environment.retain(|(set, _)| set != name);
        self.environment.push((name.to_owned(), value.to_owned()));
    }

    pub(crate) fn variable(&self, name: &str) -> String {
        let found = self.environment.iter().find(|(set, _)| set == name);
        found.map(|(_, value)| value.clone()).unwrap()
    }

    pub(crate) fn unset(&mut self, name: &str) {
        self.environment.retain(|(set, _)| set != name);
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.data_dir().join("outlast.db")
    }

    pub(crate) fn environment(&self) -> Vec<(&str, &str)> {
        self.environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    /// Starts a server and greets it.
    pub(crate) async fn serve(&self) -> McpProcess {
        self.serve_with(&[]).await
    }

    pub(crate) async fn serve_with(&self, flags: &[&str]) -> McpProcess {
        let arguments = ["serve"].iter().chain(flags);
        McpProcess::start(binary(), arguments, &self.environment()).await
    }

    /// Starts a server without a greeting.
    pub(crate) fn spawn(&self, arguments: &[&str]) -> McpProcess {
        McpProcess::spawn(binary(), arguments, &self.environment())
    }

    /// Runs a command to its end.
    pub(crate) async fn run<A: AsRef<std::ffi::OsStr>>(&self, arguments: &[A]) -> Ran {
        let output = tokio::process::Command::new(binary())
            .args(arguments)
            .env_clear()
            .envs(self.environment.iter().cloned())
            .stdin(std::process::Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .unwrap();
        Ran {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Returns the output of `jobs show` about a job.
    pub(crate) async fn shown(&self, id: &str) -> Value {
        let ran = self.run(&["jobs", "show", id, "--json"]).await;
        serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"))
    }

    /// Returns the processes of the detached workers, from their files; a killed one leaves its file.
    pub(crate) fn detached_workers(&self) -> Vec<u32> {
        let is_info =
            |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json");
        let infos = self.beside_sockets().into_iter().filter(is_info);
        let pid = |path: PathBuf| {
            let info: Value = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
            Some(info["pid"].as_u64()? as u32)
        };
        infos.filter_map(pid).collect()
    }

    /// Returns all files in the folders of sockets.
    pub(crate) fn beside_sockets(&self) -> Vec<PathBuf> {
        let listed = |path: PathBuf| -> Vec<PathBuf> {
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).collect()
        };
        let is_folder = |path: &PathBuf| path.extension().is_some_and(|it| it == "sockets");
        listed(self.data_dir()).into_iter().filter(is_folder).flat_map(listed).collect()
    }

    /// Returns the number of runs that the provider was paid for.
    pub(crate) fn submits(&self) -> u64 {
        self.simulator.stats().submits
    }
}

/// Opens a direct connection, to read or change what the store wrote.
#[expect(clippy::disallowed_methods, reason = "looks at the rows themselves")]
pub(crate) fn raw_database(path: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(path).unwrap()
}

/// Ends the workers that servers and commands of this world left.
impl Drop for World {
    fn drop(&mut self) {
        for pid in self.detached_workers() {
            signal(pid, Signal::KILL);
        }
    }
}

/// The clock of every server of a world (`--clock-file`).
pub(crate) struct ShiftedClock(PathBuf);

impl ShiftedClock {
    pub(crate) fn new(world: &World) -> Self {
        std::fs::create_dir_all(world.data_dir()).unwrap();
        Self(world.data_dir().join("shift"))
    }

    /// Sets the clock this number of milliseconds ahead; writes under another name first, so that no server reads half
    /// a number.
    pub(crate) fn set(&self, millis: i64) {
        let partial = self.0.with_extension("new");
        std::fs::write(&partial, millis.to_string()).unwrap();
        std::fs::rename(partial, &self.0).unwrap();
    }

    pub(crate) async fn serve(&self, world: &World, flags: &[&str]) -> McpProcess {
        let clock = ["--clock-file", self.0.to_str().unwrap()];
        world.serve_with(&[clock.as_slice(), flags].concat()).await
    }
}

/// The exit code and the output of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_outlast"))
}

/// Returns the size of a list of tools as a model gets it: clients keep the icons to themselves.
pub(crate) fn bytes_for_a_model(tools: &Value) -> usize {
    let mut tools = tools.clone();
    for tool in tools.as_array_mut().unwrap() {
        tool.as_object_mut().unwrap().remove("icons");
    }
    tools.to_string().len()
}

/// Returns a question that the simulator answers according to the scenario.
pub(crate) fn question(scenario: &str) -> Value {
    json!({ "messages": [{ "role": "user", "content": format!("Why is the sky blue? [[sim:{scenario}]]") }] })
}

/// Starts research and returns its id.
pub(crate) async fn start(server: &mut McpProcess, scenario: &str) -> String {
    let started = server.structured(START, question(scenario)).await;
    started["jobId"].as_str().unwrap().to_owned()
}

/// Sends a poll and returns its id without waiting for the answer.
pub(crate) async fn park_poll(server: &mut McpProcess, id: &str) -> u64 {
    server.send("tools/call", json!({ "name": POLL, "arguments": { "jobId": id } })).await
}

/// Polls until the job has ended.
pub(crate) async fn finished(server: &mut McpProcess, id: &str) -> Value {
    let ended = async {
        loop {
            let poll = server.structured(POLL, json!({ "jobId": id })).await;
            if poll["status"] != "CREATED" && poll["status"] != "IN_PROGRESS" {
                return poll;
            }
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(90), ended).await.expect("the job ends")
}

/// Waits until the provider works on the job and its run is recorded.
pub(crate) async fn running(world: &World, id: &str) {
    let recorded = async {
        loop {
            let shown = world.run(&["jobs", "show", id, "--json"]).await;
            let shown: Value = serde_json::from_str(&shown.stdout).unwrap_or_default();
            if shown["checkpoint"]["at"] == "running" {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), recorded)
        .await
        .expect("the run is recorded");
}

/// Waits until an observable condition is true.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let waited = async {
        while !holds() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), waited)
        .await
        .unwrap_or_else(|_| panic!("never: {what}"));
}

/// Checks that a call was refused with this code and this retryable flag, and that no text of SQLite reaches the
/// caller.
pub(crate) fn assert_refused(result: &Value, code: &str, retryable: bool) {
    assert_eq!(result["isError"], true, "{result}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with(&format!("{code}: ")), "{text}");
    assert!(!text.contains("database is locked") && !text.contains("SQLITE"), "{text}");
    let meta = &result["_meta"]["outlast/error"];
    assert_eq!((&meta["code"], &meta["retryable"]), (&json!(code), &json!(retryable)), "{result}");
    assert_eq!(meta["retry_after_seconds"].is_u64(), retryable, "{result}");
}

/// Returns the job's status at one poll.
pub(crate) async fn status(server: &mut McpProcess, id: &str) -> String {
    let poll = server.structured(POLL, json!({ "jobId": id })).await;
    poll["status"].as_str().unwrap().to_owned()
}
