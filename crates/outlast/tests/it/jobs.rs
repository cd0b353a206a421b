//! Tool set `jobs` and the commands it runs, on the real binary.

mod tools;
mod getting;
mod results;
mod commands;
mod guarded;
mod ending;
mod blocking;
mod upstream;
mod resuming;
mod access;
mod everything;
mod configuring;
mod schemas;
mod many;
mod steps;
mod steps_repeated;
mod steps_elsewhere;
mod asking;
pub(crate) mod elicitation;

use std::path::PathBuf;
use std::time::Duration;

use outlast_testkit::mcp_process::McpProcess;
use serde_json::{Value, json};

use crate::support::World;

/// The configuration of most tests: a command for each possible outcome.
const WORKFLOWS: &str = r#"
[[workflow]]
name = "echo"
command = ["cat"]

[[workflow]]
name = "wait"
command = ["/bin/sh", "-c", "echo begun > begun; while [ ! -e go ]; do sleep 0.01; done; echo gone"]

[[workflow]]
name = "fail"
command = ["/bin/sh", "-c", "echo secret words >&2; exit 3"]

[[workflow]]
name = "given"
command = ["/bin/sh", "-c", 'printf "%s|%s|%s|%s" "$*" "$OUTLAST_ARGUMENTS" "$OUTLAST_SESSION_ID" "$OUTLAST_JOB_ID"']

[[workflow]]
name = "shell"
command = ["/bin/sh"]
"#;

/// A world with workflows, and the folder they run in.
struct Shop {
    world: World,
    folder: PathBuf,
}

impl Shop {
    async fn new() -> Self {
        Self::with(WORKFLOWS).await
    }

    async fn with(workflows: &str) -> Self {
        Self::within(World::new().await, workflows)
    }

    fn within(mut world: World, workflows: &str) -> Self {
        world.set("PATH", "/usr/local/bin:/usr/bin:/bin");
        let folder = world.data_dir().parent().unwrap().join("shop");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("outlast.toml"), workflows).unwrap();
        Self { world, folder }
    }

    fn config(&self) -> String {
        self.folder.join("outlast.toml").to_str().unwrap().to_owned()
    }

    /// Starts a server in async mode, with only the tools of `jobs`.
    async fn serve(&self) -> McpProcess {
        self.serve_with(&["--tools", "jobs"]).await
    }

    async fn serve_with(&self, flags: &[&str]) -> McpProcess {
        let config = self.config();
        let flags: Vec<&str> = ["--config", &config].iter().chain(flags).copied().collect();
        self.world.serve_with(&flags).await
    }

    /// Runs `outlast serve` with these flags to its end.
    async fn refused(&self, flags: &[&str]) -> String {
        let config = self.config();
        let arguments = ["serve", "--config", &config];
        let arguments: Vec<&str> = arguments.iter().chain(flags).copied().collect();
        let ran = self.world.run(&arguments).await;
        assert_eq!(ran.code, Some(2), "{ran:?}");
        ran.stderr
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Waits until a command has written a process id into this file.
    async fn pid(&self, name: &str) -> u32 {
        let path = self.file(name);
        let read = || std::fs::read_to_string(&path).unwrap_or_default();
        crate::support::eventually("a process id", || read().ends_with('\n')).await;
        read().trim().parse().unwrap()
    }

    /// Releases the workflow `wait`.
    fn go(&self) {
        std::fs::write(self.file("go"), "").unwrap();
    }
}

/// Starts a job and returns its id.
async fn start(server: &mut McpProcess, workflow: &str, message: &str) -> String {
    let asked = json!({ "workflow": workflow, "message": message });
    let started = server.structured("start_job", asked).await;
    started["job_id"].as_str().unwrap().to_owned()
}

/// Polls until the job has ended.
async fn ended(server: &mut McpProcess, id: &str) -> Value {
    let asked = async {
        loop {
            let got = server.structured("get_job", json!({ "job_id": id })).await;
            if got["done"] == true {
                return got;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), asked).await.expect("the job ends")
}

/// Starts a job and returns its result.
async fn ran(server: &mut McpProcess, workflow: &str, message: &str) -> Value {
    let id = start(server, workflow, message).await;
    ended(server, &id).await
}

/// Returns true if a process is running; a zombie is not.
fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}
