//! A tool of another server that turns calls into tasks: a job continues its task, whichever process dies. The other
//! server is our own, over HTTP with a token.

use std::time::Duration;

use outlast_testkit::mcp_process::{McpProcess, Signal, signal};
use serde_json::{Value, json};

use super::{Shop, ended, runs, start};
use crate::http::client::{ANN, Served};
use crate::support::{binary, eventually};

/// The time limit of every wait; a limit, never a pause.
const LIMIT: Duration = Duration::from_secs(60);

/// One outlast whose workflows are those of another, and that other.
pub(super) struct Two {
    pub(super) outer: Shop,
    pub(super) inner: Shop,
    upstream: Served,
}

impl Two {
    pub(super) async fn new(more: &str) -> Self {
        let mut inner = Shop::new().await;
        let config = inner.config();
        let upstream = Served::start(&mut inner.world, &["--config", &config]).await;
        let mut outer = Shop::with("").await;
        outer.world.set("INNER_TOKEN", ANN);
        let two = Self { outer, inner, upstream };
        two.configure("bearer_env = \"INNER_TOKEN\"", more);
        two
    }

    /// Configures the outer one to use the inner one.
    pub(super) fn configure(&self, access: &str, more: &str) {
        let text = format!(
            r#"
[upstream.other]
url = "http://{}/mcp"
{access}

[[workflow]]
name = "wait"
tool = "other.wait"
{more}

[[workflow]]
name = "script"
tool = "other.shell"
message_argument = "message"
{more}
"#,
            self.upstream.address
        );
        std::fs::write(self.outer.file("outlast.toml"), text).unwrap();
    }

    /// Starts a job and waits until the task that it has become is known.
    async fn under_way(&self, server: &mut McpProcess) -> String {
        let started = server.structured("start_job", json!({ "workflow": "wait" })).await;
        let id = started["job_id"].as_str().unwrap().to_owned();
        recorded(&self.outer, &id).await;
        eventually("the command runs", || self.inner.file("begun").exists()).await;
        id
    }

    /// Lets the job end, and checks that it was done once.
    async fn completes(&self, server: &mut McpProcess, id: &str) {
        self.inner.go();
        let got = ended(server, id).await;
        assert_eq!(got["result"]["content"][0]["text"], "gone\n", "{got}");
        assert_eq!(known_to(&self.inner).await.len(), 1, "made once");
        assert_eq!(shown(&self.outer, id).await["failures"], json!([]), "no try is spent");
    }
}

/// Returns the jobs that a server knows.
pub(super) async fn known_to(shop: &Shop) -> Vec<Value> {
    let listed = shop.world.run(&["jobs", "list", "--all", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    listed["jobs"].as_array().unwrap().clone()
}

async fn shown(shop: &Shop, id: &str) -> Value {
    let shown = shop.world.run(&["jobs", "show", id, "--json"]).await;
    serde_json::from_str(&shown.stdout).unwrap_or_default()
}

/// Waits until the task that a job has become is on record.
async fn recorded(shop: &Shop, id: &str) {
    let recorded = async {
        while shown(shop, id).await["checkpoint"]["cursor"].is_null() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, recorded).await.expect("the task is recorded");
}

/// E6, D13: killed in the middle, started again: the same task is followed to its end.
#[tokio::test]
async fn e6_a_task_is_resumed_after_our_death() {
    let two = Two::new("").await;
    let mut server = two.outer.serve().await;
    let id = two.under_way(&mut server).await;
    server.kill().await;
    let mut server = two.outer.serve().await;
    server.logged("remote run resumed").await;
    two.completes(&mut server, &id).await;
}

/// E6: a server that shuts down leaves the task running, too.
#[tokio::test]
async fn e6_a_task_goes_on_while_we_are_away() {
    let two = Two::new("").await;
    let mut server = two.outer.serve().await;
    let id = two.under_way(&mut server).await;
    server.close_input();
    server.ended().await;
    two.inner.go();
    let alone = async {
        while known_to(&two.inner).await[0]["state"] != "succeeded" {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, alone).await.expect("it ends without us");
    let mut server = two.outer.serve().await;
    two.completes(&mut server, &id).await;
}

/// A7, E6: a cancel that no server was there to make reaches the task after the restart.
#[tokio::test]
async fn e6_a_cancel_reaches_the_task_after_a_restart() {
    let two = Two::new("").await;
    let mut server = two.outer.serve().await;
    let script = "echo $$ > deep; sleep 1000";
    let id = start(&mut server, "script", script).await;
    let deep = two.inner.pid("deep").await;
    recorded(&two.outer, &id).await;
    server.kill().await;
    assert!(runs(deep), "it outlives us");
    let cancelled = two.outer.world.run(&["jobs", "cancel", &id]).await;
    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
    let _server = two.outer.serve().await;
    eventually("the tool is stopped", || !runs(deep)).await;
    let upstream = known_to(&two.inner).await;
    assert_eq!((upstream.len(), &upstream[0]["state"]), (1, &json!("cancelled")));
}

/// E6: a task that its server has forgotten may have done its work, and is repeated only if that is declared safe.
#[tokio::test]
async fn e6_a_forgotten_task_is_repeated_only_if_that_is_safe() {
    for (more, status) in [("", "failed"), ("rerun_after_crash = true", "completed")] {
        let mut two = Two::new(more).await;
        let mut server = two.outer.serve().await;
        let id = two.under_way(&mut server).await;
        server.kill().await;
        // The same name, but without any stored state.
        let forgetful = Two::new(more).await;
        (two.upstream, two.inner) = (forgetful.upstream, forgetful.inner);
        two.configure("bearer_env = \"INNER_TOKEN\"", more);
        two.inner.go();
        let mut server = two.outer.serve().await;
        let got = ended(&mut server, &id).await;
        assert_eq!(got["status"], status, "{got}");
        if status == "failed" {
            assert_eq!(got["error"]["code"], "RUN_LOST", "{got}");
            let message = got["error"]["message"].as_str().unwrap();
            assert!(message.contains("no longer knows the task"), "{message}");
            assert_eq!(known_to(&two.inner).await.len(), 0, "nothing is repeated");
        } else {
            two.completes(&mut server, &id).await;
        }
    }
}

/// D13, E6: a restarted server still gets our polls.
#[tokio::test]
async fn e6_a_task_outlives_a_restart_of_its_server() {
    let mut two = Two::new("").await;
    let mut server = two.outer.serve().await;
    let safe = "name = \"wait\"\nrerun_after_crash = true";
    let workflows = super::WORKFLOWS.replace("name = \"wait\"", safe);
    std::fs::write(two.inner.file("outlast.toml"), workflows).unwrap();
    let id = two.under_way(&mut server).await;
    two.upstream.process.kill().await;
    let (config, address) = (two.inner.config(), two.upstream.address.to_string());
    let arguments = ["serve", "--http", &address, "--config", &config];
    let again = two.inner.world.spawn(&arguments);
    again.logged("/mcp").await;
    two.completes(&mut server, &id).await;
}

/// Creates one outlast that starts the other one itself. The other may run its command again.
async fn over_a_pipe() -> (Shop, Shop) {
    let outer = Shop::with("").await;
    let workflow = r#"
[[workflow]]
name = "wait"
command = ["/bin/sh", "-c", "echo $PPID > server; while [ ! -e go ]; do sleep 0.01; done; echo gone"]
rerun_after_crash = true
"#;
    let inner = Shop::with(workflow).await;
    let text = format!(
        r#"
[upstream.other]
command = ["{}", "serve", "--config", "{}", "--data-dir", "{}"]
env = {{ PERPLEXITY_API_KEY = "k", OUTLAST_DETACH = "false" }}

[[workflow]]
name = "wait"
tool = "other.wait"
"#,
        binary().display(),
        inner.config(),
        inner.world.data_dir().display(),
    );
    std::fs::write(outer.file("outlast.toml"), text).unwrap();
    (outer, inner)
}

/// E6: the same for a server that we start ourselves, if it keeps its tasks: whether it dies with us or alone.
#[tokio::test]
async fn e6_a_task_outlives_the_process_of_its_server() {
    for with_us in [true, false] {
        let (outer, inner) = over_a_pipe().await;
        let mut server = outer.serve().await;
        let started = server.structured("start_job", json!({ "workflow": "wait" })).await;
        let id = started["job_id"].as_str().unwrap();
        recorded(&outer, id).await;
        let other = inner.pid("server").await;
        if with_us {
            server.kill().await;
            server = outer.serve().await;
        } else {
            signal(other, Signal::KILL);
        }
        eventually("it is gone", || !runs(other)).await;
        inner.go();
        let got = ended(&mut server, id).await;
        assert_eq!(got["result"]["content"][0]["text"], "gone\n", "{got}");
        assert_eq!(known_to(&inner).await.len(), 1, "made once");
        assert_eq!(shown(&outer, id).await["failures"], json!([]), "no try is spent");
    }
}
