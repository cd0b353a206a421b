//! The same question in another form, after a changed default, through a task or by a repeated `outlast call`: it is
//! paid for once.

use std::time::Duration;

use serde_json::{Value, json};

use crate::target::{DEEP, Target, ask};
use crate::{Setting, Verdict};

const ASK: &str = "deep_research";

/// The limit of a client that gives up while the research continues.
const GIVES_UP: &str = "2s";

fn question(words: &str) -> Value {
    json!({ "query": format!("{words} [[sim:ok;words=60;hold]]") })
}

/// Asks a question in another Unicode form, with doubled spaces, another priority and another budget, all while the
/// first runs.
pub(crate) async fn forms(setting: Setting) -> Verdict {
    let mut target = Target::new(&setting).await;
    target.set("OUTLAST_TOOLS", "deep-research");
    let mut server = target.serve(&[]).await;
    let mut urgent = question("Caf\u{e9} prices?");
    (urgent["priority"], urgent["budget_usd"]) = (json!(9), json!(7.5));
    let forms = [
        question("Caf\u{e9} prices?"),
        question("Cafe\u{301} prices?"),
        question("Caf\u{e9}  prices?"),
        urgent,
    ];
    for form in forms {
        ask(&mut server, ASK, &form).await;
        target.submitted(1).await;
    }
    settle(&target).await;
    target.paid(1)
}

/// Repeats a question that runs at a named provider without a name, at a server whose first provider is another.
pub(crate) async fn changed_default(setting: Setting) -> Verdict {
    let mut target = Target::new(&setting).await;
    let url = format!("{}/openai/v1", target.simulator.url());
    target.set("OUTLAST_TOOLS", "deep-research");
    target.set("OPENAI_API_KEY", "sk-attack");
    target.set("OPENAI_BASE_URL", &url);
    target.set("OUTLAST_PROVIDERS", "perplexity,openai");
    let mut first = target.serve(&[]).await;
    let mut named = question("Tea prices?");
    named["provider"] = json!("perplexity");
    ask(&mut first, ASK, &named).await;
    target.submitted(1).await;
    target.set("OUTLAST_PROVIDERS", "openai,perplexity");
    let mut second = target.serve(&[]).await;
    ask(&mut second, ASK, &question("Tea prices?")).await;
    settle(&target).await;
    target.paid(1)
}

/// Repeats a held call with a client that accepts tasks, then once more.
pub(crate) async fn task(setting: Setting) -> Verdict {
    let target = Target::new(&setting).await;
    let mut server = target.serve(&[]).await;
    ask(&mut server, DEEP, &question("Milk prices?")).await;
    target.submitted(1).await;
    let mut call = json!({ "name": DEEP, "arguments": question("Milk prices?") });
    call["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "extensions": { "io.modelcontextprotocol/tasks": {} } },
        "io.modelcontextprotocol/clientInfo": { "name": "attack", "version": "1" },
    });
    for _ in 0..2 {
        let mut modern = target.spawn(target.binary.to_str().unwrap(), &["serve", "--no-detach"]);
        let answer = modern.request("tools/call", call.clone()).await;
        if answer["result"]["resultType"] != "task" {
            return Err(format!("no task: {answer}"));
        }
        settle(&target).await;
    }
    target.paid(1)
}

/// Makes the same `outlast call` three times; its own timeout fires each time.
pub(crate) async fn repeated_call(setting: Setting) -> Verdict {
    let target = Target::new(&setting).await;
    let arguments = question("Bread prices?").to_string();
    let binary = target.binary.to_str().unwrap();
    for _ in 0..3 {
        let call = ["call", "--tool", DEEP, "--args", &arguments, "--timeout", GIVES_UP, "--"];
        let (code, _, said) = target.run(&[&call[..], &[binary, "serve"]].concat()).await;
        if code != Some(3) {
            return Err(format!("`outlast call` exits with {code:?} in place of 3: {said}"));
        }
    }
    target.paid(1)
}

/// Waits until the server has handled its input: every existing job was submitted.
async fn settle(target: &Target) {
    // Long enough for the server to begin every call.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let waiting = async {
        while target.simulator.stats().submits < target.states().await.len() as u64 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    // A job that is not submitted by then was refused.
    let _ = tokio::time::timeout(Duration::from_secs(10), waiting).await;
}
