//! Workflows without any research (E16): they need no key and no library, and are run from the shell as well.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::cli::assert_usage_error;
use crate::support::{World, eventually};

const WORKFLOWS: &str = "[[workflow]]\nname = \"echo\"\ncommand = [\"cat\"]\n\
                         [[workflow]]\nname = \"env\"\ncommand = [\"sh\", \"-c\", \"printf %s \\\"$OUTLAST_ARGUMENTS\\\"\"]\n\
                         [[workflow]]\nname = \"bad\"\ncommand = [\"sh\", \"-c\", \"exit 7\"]\n\
                         [[workflow]]\nname = \"gone\"\ncommand = [\"/nowhere/at/all\"]\n";

/// Creates a world without a research provider, and its configuration file.
async fn shop(text: &str) -> (World, PathBuf) {
    let mut world = World::new().await;
    world.unset("PERPLEXITY_API_KEY");
    let file = world.data_dir().parent().unwrap().join("outlast.toml");
    std::fs::write(&file, text).unwrap();
    world.set("PATH", "/usr/bin:/bin");
    (world, file)
}

/// E16: without a key or a library the workflows are served, as tools or as jobs, and the research sets are left out.
#[tokio::test]
async fn e16_workflows_are_served_without_a_research_provider() {
    let (world, file) = shop(WORKFLOWS).await;
    let config = ["--config", file.to_str().unwrap()];
    let mut server = world.serve_with(&config).await;
    let listed = server.request("tools/list", json!({})).await;
    let names: Vec<_> =
        listed["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["echo", "env", "bad", "gone"]);
    let result = server.call("echo", json!({ "message": "hello" })).await;
    assert_eq!(result["content"][0]["text"], "hello", "{result}");
    let log = server.log();
    let said = log.lines().filter(|line| line.contains("no research provider is configured"));
    assert_eq!(said.count(), 1, "one line: {log}");
    drop(server);

    let mut server = world.serve_with(&[&config[..], &["--async"]].concat()).await;
    let started =
        server.structured("start_job", json!({ "workflow": "echo", "message": "hi" })).await;
    let got = server.structured("get_job", json!({ "job_id": started["job_id"] })).await;
    assert_eq!(got["result"]["content"][0]["text"], "hi", "{got}");
    let listed = server.request("tools/list", json!({})).await.to_string();
    assert!(!listed.contains("deep_research") && !listed.contains("perplexity"), "{listed}");
    drop(server);

    // Sets that were asked for are listed all the same.
    let mut server = world.serve_with(&[&config[..], &["--tools", "research"]].concat()).await;
    let listed = server.request("tools/list", json!({})).await.to_string();
    assert!(listed.contains("perplexity_deep_research") && listed.contains("\"echo\""), "{listed}");
}

/// E16: a set `jobs` with nothing to start is refused with the reason.
#[tokio::test]
async fn e16_a_jobs_set_with_nothing_to_start_is_refused() {
    let (world, _) = shop("").await;
    let ran = world.run(&["serve", "--tools", "jobs"]).await;
    assert_usage_error(&ran, "`jobs` has nothing to start", "[[workflow]]");
    assert!(!world.data_dir().exists(), "nothing is made");
}

/// E16: a command that failed may be started again; one that could not be started may not.
#[tokio::test]
async fn e16_a_failed_command_is_retryable_unless_it_could_not_be_started() {
    let (world, file) = shop(WORKFLOWS).await;
    let config = ["--config", file.to_str().unwrap()];
    let mut server = world.serve_with(&[&config[..], &["--async"]].concat()).await;
    for (workflow, retryable) in [("bad", true), ("gone", false)] {
        let started = server.structured("start_job", json!({ "workflow": workflow })).await;
        let got = server.structured("get_job", json!({ "job_id": started["job_id"] })).await;
        assert_eq!(got["error"]["code"], "EXECUTION_ERROR", "{got}");
        assert_eq!(got["error"]["retryable"], retryable, "{workflow}: {got}");
        assert!(!got.to_string().contains("paid"), "{got}");
    }
    drop(server);
    let mut server = world.serve_with(&config).await;
    for (workflow, retryable) in [("bad", true), ("gone", false)] {
        let result = server.call(workflow, json!({})).await;
        assert_eq!(
            result["_meta"]["outlast/error"]["retryable"], retryable,
            "{workflow}: {result}"
        );
    }
}

/// E16: `outlast run` does from the shell what `start_job` does.
#[tokio::test]
async fn e16_run_starts_a_workflow_from_the_shell() {
    let (world, file) = shop(WORKFLOWS).await;
    let run = |rest: &[&str]| {
        let all = [&["run"][..], rest, &["--config", file.to_str().unwrap()]].concat();
        all.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let ran = world.run(&run(&["echo", "hello there"])).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "hello there"), "{ran:?}");
    let ran = world.run(&run(&["env", "--arguments", "{\"a\": 1}", "--json"])).await;
    let job: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    assert_eq!(job["output"]["body"]["structuredContent"], json!({ "a": 1 }), "{job}");
    assert_eq!((ran.code, &job["workflow"]), (Some(0), &json!("env")), "{job}");
    let ran = world.run(&run(&["bad"])).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("exit code 7") && !ran.stderr.contains("paid"), "{ran:?}");
    for (wrong, hint) in [
        (&["nothing"][..], "echo, env, bad, gone"),
        (&["echo", "--arguments", "[]"], "JSON object"),
    ] {
        let ran = world.run(&run(wrong)).await;
        assert!(ran.code == Some(2) && ran.stderr.contains(hint), "{ran:?}");
    }
    let ran = world.run(&run(&["echo", "later", "--detach"])).await;
    let id = ran.stdout.trim().to_owned();
    assert!(ran.code == Some(0) && id.len() == 32, "{ran:?}");
    let waited = world.run(&["jobs", "wait", &id, "--timeout", "30s"]).await;
    assert_eq!(waited.code, Some(0), "{waited:?}");
    let shown = world.run(&["jobs", "show", &id]).await;
    assert!(shown.stdout.ends_with("later\n"), "{shown:?}");
    let ran = world.run(&run(&["echo", "in memory", "--store", "memory:"])).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "in memory"), "{ran:?}");
}

/// E16: a program that reads the output of `outlast run` gets what the command wrote.
#[tokio::test]
async fn e16_run_passes_the_bytes_of_a_command_on() {
    let (world, file) = shop("").await;
    let bytes = file.with_file_name("bytes");
    let command = format!("[[workflow]]\nname = \"bytes\"\ncommand = [\"cat\", {bytes:?}]\n");
    std::fs::write(&file, command).unwrap();
    let all: Vec<u8> = (0..=255).collect();
    let outputs: [&[u8]; 6] =
        [b"", b"\n", b"no newline", b"many\n\n\n", b"\x1b[31m\x07\x00 \xe2\x80\xae\r\n", &all];
    for output in outputs {
        std::fs::write(&bytes, output).unwrap();
        let mut run = tokio::process::Command::new(crate::support::binary());
        let run = run.args(["run", "bytes", "--config"]).arg(&file);
        let run = run.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", file.parent().unwrap());
        let ran = run.arg("--data-dir").arg(world.data_dir()).output().await.unwrap();
        assert_eq!(ran.stdout, output, "{}", String::from_utf8_lossy(&ran.stderr));
        assert!(ran.status.success());
    }
}

/// E16, P3: leaving `outlast run` leaves the command running.
#[tokio::test]
async fn e16_leaving_a_run_leaves_its_command_running() {
    let (world, file) = shop("").await;
    let (begun, go) = (file.with_file_name("begun"), file.with_file_name("go"));
    let script = format!(
        "touch {}; until [ -e {} ]; do sleep 0.02; done; echo whole",
        begun.display(),
        go.display()
    );
    std::fs::write(
        &file,
        format!("[[workflow]]\nname = \"slow\"\ncommand = [\"sh\", \"-c\", {script:?}]\n"),
    )
    .unwrap();
    let mut command = world.spawn(&["run", "slow", "--config", file.to_str().unwrap()]);
    command.close_input();
    eventually("the command runs", || begun.exists()).await;
    command.signal(rustix::process::Signal::INT);
    let (status, said) = command.ended().await;
    assert_eq!(status.code(), Some(130), "{said}");
    std::fs::write(&go, "").unwrap();
    let waited = world.run(&["jobs", "wait", "--json", "--timeout", "30s", &id_in(&said)]).await;
    let jobs: Value = serde_json::from_str(&waited.stdout).unwrap_or_else(|_| panic!("{waited:?}"));
    assert!(waited.code == Some(0) && jobs.to_string().contains("whole"), "{waited:?}");
}

/// Returns the first job id in a text.
fn id_in(text: &str) -> String {
    let is_id = |word: &&str| word.len() == 32 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut words = text.split(|character: char| !character.is_ascii_alphanumeric());
    words.find(is_id).unwrap_or_else(|| panic!("no id: {text}")).to_owned()
}
