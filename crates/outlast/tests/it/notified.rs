//! An agent is notified of the end of a job: by a command that it runs in the background.

use std::time::Duration;

use outlast_testkit::mcp_process::McpProcess;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::http::client::{ANN, Served};
use crate::support::{START, World, finished, question};

const DEEP: &str = "perplexity_deep_research";

/// Moves the store and the owner to a configuration file, by which the command names them; returns its flags.
fn with_file(world: &mut World) -> Vec<String> {
    std::fs::create_dir_all(world.data_dir()).unwrap();
    let file = world.data_dir().join("outlast.toml");
    let mut text = String::new();
    if world.environment.iter().any(|(name, _)| name == "OUTLAST_STORE") {
        let (store, owner) = (world.variable("OUTLAST_STORE"), world.variable("OUTLAST_OWNER"));
        text = format!("[store]\nurl = \"{store}\"\n[server]\nowner = \"{owner}\"\n");
        world.unset("OUTLAST_STORE");
        world.unset("OUTLAST_OWNER");
    }
    std::fs::write(&file, text).unwrap();
    vec!["--config".to_owned(), file.to_str().unwrap().to_owned()]
}

async fn serve_as(client: &str, world: &World, flags: &[String]) -> McpProcess {
    let arguments: Vec<&str> =
        ["serve"].into_iter().chain(flags.iter().map(String::as_str)).collect();
    let mut server = world.spawn(&arguments);
    server.greet_as(client).await;
    server
}

/// Returns the arguments of the command in the answer's metadata.
fn argv(result: &Value) -> Vec<String> {
    serde_json::from_value(result["_meta"]["outlast/wait"].clone()).unwrap_or_default()
}

/// L1: the answer to a start names a command for a client with a shell. The command ends within a second of the job, and
/// its line says how the job ended.
#[tokio::test]
async fn l1_a_start_names_a_command_that_ends_with_the_job() {
    let mut world = World::new().await;
    let flags = with_file(&mut world);
    let mut server = serve_as("claude-code", &world, &flags).await;
    let started = server.call(START, question("ok;words=60;sources=2;delay_ms=2000")).await;
    let message = started["structuredContent"]["message"].as_str().unwrap();
    let job = started["structuredContent"]["jobId"].as_str().unwrap().to_owned();
    let argv = argv(&started);
    assert_eq!(argv[1..4], ["jobs", "wait", job.as_str()]);
    assert!(message.contains(&format!("run `{}` in the background", argv.join(" "))), "{message}");
    assert!(!argv.iter().any(|word| word.contains("://")), "no address: {argv:?}");
    // The agent's shell has none of the client's variables for the server.
    let waiting = Command::new(&argv[0])
        .args(&argv[1..])
        .env_clear()
        .env("HOME", world.variable("HOME"))
        .kill_on_drop(true)
        .output();
    let ended = async {
        finished(&mut server, &job).await;
        tokio::time::Instant::now()
    };
    let waiting = async { (waiting.await.unwrap(), tokio::time::Instant::now()) };
    let ((output, told_at), ended_at) = tokio::join!(waiting, ended);
    let line = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{line} {:?}", String::from_utf8(output.stderr));
    assert!(
        line.starts_with(&format!("{job}  succeeded  $")) && line.lines().count() == 1,
        "{line}"
    );
    assert!(told_at.saturating_duration_since(ended_at) < Duration::from_secs(1));
}

/// L1: queued research, the answer in auto mode and a workflow's start name the command too; a client without a shell gets
/// only the metadata, and an answer with a report neither.
#[tokio::test]
async fn l1_every_answer_that_leaves_a_job_running_names_the_command() {
    let mut world = World::new().await;
    let flags = with_file(&mut world);
    for (mode, tool, key) in [
        ("true", DEEP, "rawResultText"),
        ("auto", DEEP, "rawResultText"),
        ("true", "start_job", "next_instruction_for_model"),
    ] {
        world.set("OUTLAST_ASYNC_RESEARCH", mode);
        world.set("OUTLAST_INLINE_BUDGET_MS", "50");
        world.set("OUTLAST_TOOLS", "research,jobs");
        for (client, has_shell) in [("codex-mcp-client", true), ("claude-ai", false)] {
            let mut server = serve_as(client, &world, &flags).await;
            let query = format!("{mode} {client} [[sim:stuck]]");
            let given = match tool {
                DEEP => json!({ "query": query }),
                _ => json!({ "workflow": "deep_research", "message": query }),
            };
            let answer = server.call(tool, given).await;
            let text = answer["structuredContent"][key].as_str().unwrap_or_default();
            let argv = argv(&answer);
            assert_eq!(argv[1..3], ["jobs", "wait"], "{answer}");
            assert_eq!(text.contains(&argv[3]) && text.contains("background"), has_shell, "{text}");
            let shown = world.run(&["jobs", "show", &argv[3], &flags[0], &flags[1]]).await;
            assert_eq!(shown.code, Some(0), "{shown:?}");
        }
    }
    world.set("OUTLAST_ASYNC_RESEARCH", "false");
    let mut server = serve_as("claude-code", &world, &flags).await;
    let report = server.call(DEEP, json!({ "query": "Why? [[sim:ok;words=60;delay_ms=0]]" })).await;
    assert!(report["_meta"].get("outlast/wait").is_none(), "{report}");
}

/// L1: a client over HTTP may be on another machine: it gets the page's link and no command.
#[tokio::test]
async fn l1_over_http_no_command_is_named() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let client = served.client(ANN);
    let started = client.ask(START, question("stuck"), json!({})).await.result().await;
    let started = &started["result"];
    assert!(started["_meta"].get("outlast/wait").is_none(), "{started}");
    assert!(started["_meta"]["outlast/page"].is_string(), "{started}");
}
