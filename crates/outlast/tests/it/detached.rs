//! The detached worker on the real binary: it runs the jobs that a client left to their end.

mod leaving;
mod workers;
mod held;
mod one_log;
mod trees;
mod changed_configuration;
mod portable;

use std::path::{Path, PathBuf};

use outlast_testkit::mcp_process::McpProcess;
use serde_json::{Value, json};

use crate::support::{World, eventually};

/// Waits for a file, then prints that it exists.
const WAITS: &str = r#"
[[workflow]]
name = "wait"
command = ["/bin/sh", "-c", "echo $$ >> begun; while [ ! -e go ]; do sleep 0.02; done; echo $WHO >> ended; echo gone"]
pass_env = ["WHO"]
"#;

/// A project: a configuration file in a separate folder, whose jobs are in the store of a world.
struct Project {
    folder: PathBuf,
}

impl Project {
    fn new(world: &World, name: &str, workflows: &str) -> Self {
        let folder = world.data_dir().parent().unwrap().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let project = Self { folder };
        project.configure(workflows);
        project
    }

    fn configure(&self, workflows: &str) {
        std::fs::write(self.config(), workflows).unwrap();
    }

    fn config(&self) -> String {
        self.folder.join("outlast.toml").to_str().unwrap().to_owned()
    }

    async fn serve(&self, world: &World) -> McpProcess {
        world.serve_with(&["--config", &self.config(), "--tools", "jobs"]).await
    }

    fn lines(&self, file: &str) -> Vec<String> {
        lines(&self.folder.join(file))
    }

    fn go(&self) {
        std::fs::write(self.folder.join("go"), "").unwrap();
    }
}

fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Creates a world whose servers leave their jobs to a worker.
async fn detaching() -> World {
    let mut world = World::new().await;
    world.set("OUTLAST_DETACH", "auto");
    world.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    world
}

async fn start_workflow(server: &mut McpProcess) -> String {
    let started = server.structured("start_job", json!({ "workflow": "wait" })).await;
    started["job_id"].as_str().unwrap().to_owned()
}

/// Returns the job after its end, as any process on the store reads it.
async fn ended(world: &World, id: &str) -> Value {
    let ended = async {
        loop {
            let shown = world.shown(id).await;
            if matches!(shown["state"].as_str(), Some("succeeded" | "failed" | "cancelled")) {
                return shown;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(60), ended).await.expect("the job ends")
}

/// Waits until nothing of a worker is left.
async fn nothing_is_left(world: &World) {
    eventually("nothing is left beside the store", || world.beside_sockets().is_empty()).await;
}

/// Returns true if a process is running; a zombie is not.
fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}
