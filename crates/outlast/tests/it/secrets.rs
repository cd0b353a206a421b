//! Seeded secrets through the real binary: every tool set, both dialects, the finest log. The key appears nowhere; a
//! question appears only where it is stored; the text of an upstream failure reaches the operator whole, without the
//! key and the question that it repeats, and not the owner who asked (E7).

use std::path::{Path, PathBuf};

use outlast_simulator::{Options, SonarMode};
use outlast_testkit::mcp_process::McpProcess;
use serde_json::{Value, json};

use crate::support::{World, finished};

/// Does not look like any vendor's key, so that only knowing it keeps it out.
const KEY: &str = "hunter2-canary-of-the-house";
const QUESTION: &str = "canary-question";
const UPSTREAM: &str = "canary-upstream";

/// Returns the upstream's text: the key, the question, and far after them its own words.
fn repeated() -> String {
    format!("{KEY} was asked {QUESTION}, {} {UPSTREAM}", "at length, ".repeat(300))
}

/// Returns failures whose bodies repeat the key and the question next to their own words, nonsense, hostile text, and a
/// report.
fn scenarios() -> Vec<String> {
    let said = |fault: &str| format!("http;{fault};secret={}", repeated());
    let late = |fault: &str| format!("{}|no_terminal;words=60;delay_ms=0", said(fault));
    vec![
        said("status=401"),
        said("status=401;body=html"),
        said("status=422"),
        said("status=500"),
        said("status=500;body=html"),
        said("status=429;retry_after=1"),
        late("on=poll;times=1;status=503"),
        late("on=poll;status=402"),
        format!("fail;delay_ms=0;code={}", repeated()),
        "malformed;kind=not_json;times=1".to_owned(),
        "drop;after_events=1;words=60;delay_ms=0".to_owned(),
        "inject;line=2000;words=60;delay_ms=0".to_owned(),
        "ok;words=60;delay_ms=0".to_owned(),
    ]
}

/// Makes every call of a set that asks something; one submit each.
async fn ask_everything(world: &World, server: &mut McpProcess, set: &str) -> Vec<Value> {
    let mut results = Vec::new();
    for (nth, scenario) in scenarios().iter().enumerate() {
        // A question in the same words would be answered with the earlier result.
        let question = format!("{QUESTION} of {nth} birds");
        let messages = json!([{ "role": "user", "content": question }]);
        let asks: &[(&str, Value)] = match set {
            "research" => &[
                ("perplexity_deep_research", json!({ "query": question })),
                ("perplexity_search", json!({ "query": question })),
            ],
            "perplexity" => &[
                ("perplexity_research", json!({ "messages": messages })),
                ("perplexity_ask", json!({ "messages": messages })),
                ("perplexity_reason", json!({ "messages": messages })),
                ("perplexity_search", json!({ "query": question })),
            ],
            _ => &[("perplexity_research_start", json!({ "messages": messages }))],
        };
        for (tool, arguments) in asks {
            world.simulator.script(&[scenario]).unwrap();
            let result = server.call(tool, arguments.clone()).await;
            if let Some(id) = result["structuredContent"]["jobId"].as_str() {
                results.push(finished(server, id).await);
            }
            results.push(result);
        }
    }
    if set == "research" {
        let list = server.call("list_conversations", json!({})).await;
        for conversation in list["structuredContent"]["conversations"].as_array().unwrap() {
            let id = &conversation["conversationId"];
            let one = json!({ "conversationId": id });
            results.push(server.call("get_conversation_history", one).await);
        }
        results.push(list);
    }
    results
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[track_caller]
fn absent(secret: &str, place: &str, text: &str) {
    let shown = text.lines().find(|line| line.contains(secret));
    let shown = shown.map(|line| line.chars().take(600).collect::<String>());
    assert_eq!(shown, None, "{secret} in {place}");
}

async fn nothing_leaks(api: &str, set: &str) {
    let mut world = World::with(Options { sonar: SonarMode::Live, ..Options::default() }).await;
    world.set("PERPLEXITY_API_KEY", KEY);
    world.set("PERPLEXITY_API", api);
    world.set("PERPLEXITY_MAX_JOB_RETRIES", "0");
    world.set("OUTLAST_LOG", "trace");
    world.set("OUTLAST_TOOLS", set);
    let mut server = world.serve().await;
    let results = ask_everything(&world, &mut server, set).await;
    let failed = results.iter().filter(|result| result.to_string().contains("UNAUTHORIZED"));
    assert!(failed.count() >= 2, "{api} {set}: the faults were met");
    server.close_input();
    let (_, log) = server.ended().await;
    let failures: Vec<_> = log.lines().filter(|line| line.contains("Job failed")).collect();
    let whole = failures.iter().filter(|line| line.contains(UPSTREAM)).count();
    assert!(whole >= 7, "{whole} of {} failures are logged whole: {log}", failures.len());

    let place = format!("the log of {api} {set}");
    absent(KEY, &place, &log);
    absent(QUESTION, &place, &log);
    for result in &results {
        let text = result.to_string();
        absent(KEY, "a result", &text);
        absent(UPSTREAM, "a result", &text);
    }
    let kept = files(&world.data_dir());
    assert!(kept.contains(&world.database()), "{kept:?}");
    for file in kept {
        let text = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
        absent(KEY, &file.display().to_string(), &text);
        // Conversations are for those who asked; the database is the operator's too.
        if !file.display().to_string().contains("outlast.db") {
            absent(UPSTREAM, &file.display().to_string(), &text);
        }
    }
    for command in [&["jobs", "list", "--json"][..], &["doctor"]] {
        let ran = world.run(command).await;
        absent(KEY, "a command's output", &format!("{}\n{}", ran.stdout, ran.stderr));
    }
    let shown = shown_failures(&world).await;
    assert!(shown.iter().any(|failure| failure.contains(UPSTREAM)), "{shown:?}");
    for failure in shown {
        absent(KEY, "a failure that is shown", &failure);
        absent(QUESTION, "a failure that is shown", &failure);
    }
}

/// Returns the failures of every job as the operator sees them.
async fn shown_failures(world: &World) -> Vec<String> {
    let list = world.run(&["jobs", "list", "--json"]).await.stdout;
    let list: Value = serde_json::from_str(&list).unwrap();
    let mut failures = Vec::new();
    for job in list["jobs"].as_array().unwrap() {
        let id = job["id"].as_str().unwrap();
        let job = world.run(&["jobs", "show", id, "--json"]).await.stdout;
        let job: Value = serde_json::from_str(&job).unwrap();
        failures.push(job["failures"].to_string());
    }
    failures
}

#[tokio::test]
async fn no_secret_leaks_from_the_research_tools() {
    tokio::join!(nothing_leaks("agent", "research"), nothing_leaks("sonar", "research"));
}

#[tokio::test]
async fn no_secret_leaks_from_the_research_jobs_tools() {
    tokio::join!(nothing_leaks("agent", "research-jobs"), nothing_leaks("sonar", "research-jobs"));
}

#[tokio::test]
async fn no_secret_leaks_from_the_perplexity_tools() {
    tokio::join!(nothing_leaks("agent", "perplexity"), nothing_leaks("sonar", "perplexity"));
}

/// F1: no command prints the password of a database, whichever characters it contains and however the address is
/// mistyped.
#[tokio::test(flavor = "multi_thread")]
async fn f1_no_command_prints_the_password_of_a_database() {
    let mut world = World::new().await;
    world.set("OUTLAST_OWNER", "ann");
    // Nothing listens on port 1: every command fails to open the store and reports it.
    let addresses = [
        "postgres://ann:hunt/er#2@127.0.0.1:1/jobs",
        "postgres://ann:hunt?er=2@127.0.0.1:1/jobs",
        "postgres://ann:hunt@er2@127.0.0.1:1/jobs",
        "postgre://ann:hunt/er2@127.0.0.1:1/jobs",
        "postgres://ann:hunt/er2@127.0.0.1:port/jobs",
        "postgres://127.0.0.1:1/jobs?password=hunter2",
    ];
    let commands: [&[&str]; 6] = [
        &["config", "show"],
        &["config", "show", "--json"],
        &["doctor", "--json"],
        &["store", "migrate"],
        &["store", "backup", "file"],
        &["jobs", "list"],
    ];
    for address in addresses {
        world.set("OUTLAST_STORE", address);
        for command in commands {
            let ran = world.run(command).await;
            for part in ["hunt", "er2", "er#2", "er=2"] {
                absent(part, &format!("{command:?} with {address}"), &ran.stdout);
                absent(part, &format!("{command:?} with {address}"), &ran.stderr);
            }
        }
    }
}

/// F1: the password comes from PGPASSWORD or from a password file, and is not shown either.
#[tokio::test(flavor = "multi_thread")]
async fn f1_a_password_from_the_environment_is_not_shown() {
    let mut world = World::new().await;
    world.set("OUTLAST_OWNER", "ann");
    world.set("OUTLAST_STORE", "postgres://ann@127.0.0.1:1/jobs");
    world.set("PGPASSWORD", KEY);
    for command in [["config", "show"].as_slice(), &["store", "backup", "file"], &["jobs", "list"]]
    {
        let ran = world.run(command).await;
        absent(KEY, &format!("{command:?}"), &ran.stdout);
        absent(KEY, &format!("{command:?}"), &ran.stderr);
    }
}
