//! `outlast demo`: a research job survives `kill -9`, before the user's eyes. It uses a simulated provider, the real
//! server as a child over a real pipe, and a real SIGKILL.

mod provider;

use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use outlast_client::{CallOptions, Client, ConnectOptions};
use outlast_engine::Shutdown;
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio::time::Instant;

use self::provider::DemoProvider;
use super::signals::{INTERRUPTED, stop_on_signals};
use crate::error::{CommandResult, DONE};
use crate::ui::{self, Bars, LineMark};

const QUESTION: &str = "Heat pumps in cold climates?";
/// The progress of the research at which the server is killed.
const KILL_AT_PERCENT: u64 = 30;
/// The time for which the server stays dead, so that one can see the provider continue without it.
const DEAD_FOR: Duration = Duration::from_millis(1_500);
/// The time limit of a demo.
const MAX_DEMO: Duration = Duration::from_secs(120);

pub(super) async fn run() -> CommandResult {
    let folder = tempfile::tempdir().context("make a folder for the demo's job store")?;
    let provider = DemoProvider::start().await.context("start the simulated provider")?;
    let stop = Shutdown::new();
    outlast_engine::spawn(stop_on_signals(stop.clone())?);
    let played = tokio::select! {
        played = tokio::time::timeout(MAX_DEMO, play(&provider, folder.path())) => Some(played),
        // The interrupted step is dropped, and with it its bar and its server.
        () = stop.wait() => None,
    };
    let Some(played) = played else {
        ui::mark(LineMark::Step, "the demo was left before its end; it leaves nothing behind");
        return Ok(ExitCode::from(INTERRUPTED));
    };
    played.map_err(|_| anyhow!("the demo did not end within {} s", MAX_DEMO.as_secs()))?
}

async fn play(provider: &DemoProvider, folder: &Path) -> CommandResult {
    ui::heading("outlast: a tool call that outlasts its client");
    ui::remark(&ui::dim(
        "A simulated provider, the real server as a child process, a real kill -9.",
    ));
    ui::remark("");

    let mut server = DemoServer::spawn(provider.url(), folder).await?;
    ui::mark(
        LineMark::Good,
        &format!("server started {}", ui::dim(&format!("(pid {})", server.pid))),
    );
    ui::mark(LineMark::Step, &format!("question: {QUESTION}"));
    let asked = Instant::now();
    let question = json!({ "role": "user", "content": QUESTION });
    let question = json!({ "messages": [question], "reasoning_effort": "low" });
    let started = server.call("perplexity_research_start", question).await?;
    let job = started["jobId"].as_str().context("the server gave no job id")?.to_owned();
    let answered = format!("(answered in {:.1} ms)", asked.elapsed().as_secs_f64() * 1000.0);
    ui::mark(LineMark::Good, &format!("job {job} is durable {}", ui::dim(&answered)));

    let poll = poll_to(&server, &job, KILL_AT_PERCENT).await?;
    if !is_unfinished(&poll) {
        return Err(anyhow!("the research ended before the server could be killed: {poll}").into());
    }

    // SIGKILL: the server gets no chance to report or save anything.
    server.child.kill().await.context("kill the server")?;
    let killed =
        format!("kill -9 {}: the server is gone, in the middle of the research", server.pid);
    ui::mark(LineMark::Bad, &killed);
    ui::remark(&ui::dim("  no server is listening; the provider goes on with what was paid for"));
    tokio::time::sleep(DEAD_FOR).await;
    let server = DemoServer::spawn(provider.url(), folder).await?;
    let pid = ui::dim(&format!("(pid {})", server.pid));
    ui::mark(LineMark::Again, &format!("server started again {pid}"));
    ui::mark(LineMark::Step, &format!("polling the same job {job}"));

    let report = poll_to(&server, &job, 101).await?;
    if report["status"] != "COMPLETED" {
        return Err(anyhow!("the research did not complete: {}", report["error"]).into());
    }
    server.leave().await;

    let elapsed = report["elapsedSec"].as_f64().unwrap_or_default();
    ui::mark(LineMark::Good, &format!("COMPLETED after {elapsed} s"));
    ui::gap();
    show(report["response"].as_str().unwrap_or_default());
    summary(provider)
}

/// Prints the report as prose, and its sources, a line each.
fn show(response: &str) {
    let (report, citations) = response.split_once("\nCitations:\n").unwrap_or((response, ""));
    ui::report(report);
    ui::line("\nCitations:");
    citations.lines().for_each(|citation| ui::entry(citation, 4));
}

/// Prints the essential result, as counted by the provider.
fn summary(provider: &DemoProvider) -> CommandResult {
    let submits = provider.submits();
    ui::remark("");
    if submits != 1 {
        let error = anyhow!("{submits} submits seen by the provider, where there should be 1");
        return Err(error.into());
    }
    ui::mark(
        LineMark::Good,
        "1 submit seen by the provider: one question, two servers, paid for once",
    );
    ui::remark("");
    ui::remark("Next, still without a key:");
    ui::remark("  outlast research --library FOLDER \"a question to your own documents\"");
    ui::remark("With one, from your agent:");
    ui::remark("  outlast init claude-code   # or another client: `outlast init --help`");
    DONE
}

/// Polls until the research has ended or reached `percent`, and shows its progress.
async fn poll_to(server: &DemoServer, job: &str, percent: u64) -> CommandResult<Value> {
    let mut bar = Bars::one();
    loop {
        let poll = server.call("perplexity_research_poll", json!({ "jobId": job })).await?;
        let (reached, message) = progress(&poll);
        if !is_unfinished(&poll) || reached >= percent {
            return Ok(poll);
        }
        bar.show(0, Some(reached), &message);
    }
}

fn is_unfinished(poll: &Value) -> bool {
    matches!(poll["status"].as_str(), Some("IN_PROGRESS" | "CREATED"))
}

/// Parses percent and words from a poll's message: "Still running: Researching: ... (30 %). Call ...".
fn progress(poll: &Value) -> (u64, String) {
    let message = poll["message"].as_str().unwrap_or_default();
    let said = message.split(". Call ").next().unwrap_or_default();
    let said = said.strip_prefix("Still running: ").unwrap_or(said);
    match said.rsplit_once(" (") {
        Some((words, percent)) => {
            let digits: String = percent.chars().take_while(char::is_ascii_digit).collect();
            (digits.parse().unwrap_or(0), words.to_owned())
        }
        None => (0, said.to_owned()),
    }
}

/// The real server as a child process.
struct DemoServer {
    child: Child,
    client: Client,
    pid: u32,
}

impl DemoServer {
    async fn spawn(provider: &str, folder: &Path) -> CommandResult<Self> {
        let program = std::env::current_exe().context("find this program")?;
        let log =
            std::fs::File::options().create(true).append(true).open(folder.join("server.log"))?;
        let mut child = Command::new(program)
            .args(["serve", "--no-detach", "--config", "/dev/null", "--data-dir"])
            .arg(folder)
            .env_remove("OUTLAST_STORE")
            .env_remove("OUTLAST_TOOLS")
            .env_remove("PERPLEXITY_PROXY")
            .env_remove("PERPLEXITY_API")
            .env("XDG_STATE_HOME", folder)
            .env("PERPLEXITY_API_KEY", "pplx-demo")
            .env("PERPLEXITY_BASE_URL", provider)
            .env("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "200")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .context("start the server")?;
        let pid = child.id().context("the server ended at once")?;
        let (output, input) = (child.stdout.take(), child.stdin.take());
        let (output, input) = output.zip(input).context("connect to the server")?;
        let client = Client::connect(output, input, ConnectOptions::default()).await;
        let client = client.context("greet the server")?;
        Ok(Self { child, client, pid })
    }

    async fn call(&self, tool: &str, arguments: Value) -> CommandResult<Value> {
        let called = self.client.call_tool(tool, arguments, CallOptions::default()).await;
        let answer = called.with_context(|| format!("call {tool}"))?;
        if answer.is_error {
            return Err(anyhow!("{tool} answered {}", answer.text).into());
        }
        Ok(answer.structured.context("the server's answer has no structured content")?)
    }

    /// Closes the server's input, which is enough to make it exit.
    async fn leave(self) {
        let Self { mut child, client, pid: _ } = self;
        client.close().await;
        drop(tokio::time::timeout(Duration::from_secs(3), child.wait()).await);
    }
}
