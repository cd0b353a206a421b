//! `outlast call`: one call of one tool of any MCP server, with as much patience as asked for.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::anyhow;
use outlast_client::{
    Answer, CallOptions, Client, ClientError, ConnectOptions, Endpoint, LastWords, Limit, Limits,
    Program, Progress,
};
use outlast_engine::Stop;
use serde_json::{Value, json};

use super::signals::stop_on_signals;
use crate::cli::{CallArgs, Global};
use crate::failed::Failed;
use crate::logging;
use crate::ui::{self, Bar, Mark};

/// What the shell sees when the person left before the end.
const INTERRUPTED: u8 = 130;
/// What the shell sees when the tool says that it failed.
const TOOL_FAILED: u8 = 1;

pub(super) async fn run(global: &Global, args: CallArgs) -> Result<ExitCode, Failed> {
    // Of our configuration only the proxy counts: another server is called, and it has its own.
    logging::start(global, "error").map_err(|why| anyhow!("the log cannot be started: {why}"))?;
    let arguments = arguments(args.args.as_deref())?;
    let server = Server::of(global, &args)?;
    let limits = Limits {
        timeout: args.timeout,
        reset_timeout_on_progress: args.reset_timeout_on_progress,
        max_total_timeout: args.max_total_timeout,
    };
    let stop = Stop::new();
    tokio::spawn(stop_on_signals(stop.clone())?);

    let connecting = server.connect(connect_options(&limits));
    let client = tokio::select! {
        client = connecting => client.map_err(failed)?,
        () = stop.asked() => return Ok(interrupted()),
    };
    let bar = LiveBar::start();
    let telling = bar.clone();
    let options =
        CallOptions::with_limits(limits).on_progress(move |progress| telling.show(progress));
    let called = tokio::select! {
        called = client.call_tool(&args.tool, arguments, options) => Some(called),
        () = stop.asked() => None,
    };
    bar.end();
    // Also when interrupted: the server hears of it, and a program gets its time to leave.
    client.close().await;
    match called {
        Some(answer) => Ok(show(&answer.map_err(failed)?, args.json)),
        None => Ok(interrupted()),
    }
}

fn interrupted() -> ExitCode {
    ui::mark(Mark::Step, "left before the answer; the server was told");
    ExitCode::from(INTERRUPTED)
}

/// The answer on standard output.
fn show(answer: &Answer, as_json: bool) -> ExitCode {
    if as_json {
        let mut result = json!({ "content": answer.content, "isError": answer.is_error });
        if let Some(structured) = &answer.structured {
            result["structuredContent"] = structured.clone();
        }
        if let Some(meta) = &answer.meta {
            result["_meta"] = meta.clone();
        }
        ui::json(&result);
    } else {
        show_text(answer);
    }
    if answer.is_error {
        ui::mark(Mark::Bad, "the tool says that it failed");
        return ExitCode::from(TOOL_FAILED);
    }
    ExitCode::SUCCESS
}

fn show_text(answer: &Answer) {
    match (&answer.structured, answer.text.is_empty()) {
        (Some(structured), true) => ui::json(structured),
        (_, false) => ui::text(&answer.text),
        (None, true) => {}
    }
    let others = answer.content.iter().filter(|block| block["type"] != "text").count();
    if others > 0 {
        let blocks = if others == 1 { "block is" } else { "blocks are" };
        ui::remark(&ui::dim(&format!("{others} {blocks} not text; --json shows everything")));
    }
}

/// Where the tool is.
enum Server {
    Program(Program),
    Address(Endpoint),
}

impl Server {
    fn of(global: &Global, args: &CallArgs) -> Result<Self, Failed> {
        let Some(url) = &args.url else { return program(global, args).map(Self::Program) };
        let mut endpoint = Endpoint::new(url).map_err(failed)?;
        if let Some(proxy) = super::configured(global, Vec::new())?.proxy {
            endpoint = endpoint.proxy(proxy).map_err(failed)?;
        }
        for header in &args.header {
            let (name, value) = header.split_once(':').ok_or_else(|| {
                Failed::usage(anyhow!("a header has no colon"), "write it as 'Name: value'")
            })?;
            endpoint = endpoint.header(name.trim(), value.trim()).map_err(failed)?;
        }
        if let Some(name) = &args.bearer_env {
            endpoint = endpoint.bearer(&token(name)?).map_err(failed)?;
        }
        Ok(Self::Address(endpoint))
    }

    async fn connect(self, options: ConnectOptions) -> Result<Client, ClientError> {
        match self {
            Self::Program(program) => Client::spawn(program, options).await,
            Self::Address(endpoint) => Client::http(endpoint, options).await,
        }
    }
}

fn program(global: &Global, args: &CallArgs) -> Result<Program, Failed> {
    let Some((name, arguments)) = args.program.split_first() else {
        return Err(Failed::usage(anyhow!("no server is named"), "give --url URL, or -- CMD"));
    };
    let mut program = Program::new(name).args(arguments);
    for variable in &args.env {
        let pair = variable.split_once('=').filter(|(name, _)| !name.is_empty());
        let (name, value) = pair.ok_or_else(|| {
            Failed::usage(anyhow!("--env has no NAME"), "write it as --env NAME=value")
        })?;
        program = program.env(name, value);
    }
    // Its log would tear the bar apart; whoever wants it asks for it. Its last words are told when it dies.
    let last_words = if global.verbose > 0 { LastWords::Pass } else { LastWords::Keep };
    Ok(program.last_words(last_words))
}

#[expect(clippy::disallowed_methods, reason = "no setting: the variable is named for this call")]
fn token(name: &str) -> Result<String, Failed> {
    std::env::var(name).ok().filter(|token| !token.is_empty()).ok_or_else(|| {
        let error = anyhow!("there is no token in the variable {name}");
        Failed::usage(error, format!("export {name}=... before the call"))
    })
}

fn arguments(text: Option<&str>) -> Result<Value, Failed> {
    let Some(text) = text else { return Ok(Value::Null) };
    let hint = "give --args a JSON object, such as '{\"query\": \"Heat pumps?\"}'";
    match serde_json::from_str(text) {
        Ok(arguments @ Value::Object(_)) => Ok(arguments),
        Ok(_) => Err(Failed::usage(anyhow!("--args is not a JSON object"), hint)),
        Err(error) => Err(Failed::usage(anyhow!("--args is not JSON: {error}"), hint)),
    }
}

/// The greeting may not take longer than the whole.
fn connect_options(limits: &Limits) -> ConnectOptions {
    let options = ConnectOptions::default();
    let greeting = limits.max_total_timeout.map_or(options.greeting, |t| t.min(options.greeting));
    ConnectOptions { greeting, ..options }
}

/// A bar that progress moves from wherever it comes.
#[derive(Clone)]
struct LiveBar(Arc<Mutex<Option<Bar>>>);

impl LiveBar {
    fn start() -> Self {
        Self(Arc::new(Mutex::new(Some(Bar::start()))))
    }

    fn show(&self, progress: &Progress) {
        let mut bar = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bar) = bar.as_mut() {
            let words = progress.message.as_deref().unwrap_or("working");
            bar.at(whole(progress.percent()), &ui::short(words, 100));
        }
    }

    fn end(&self) {
        if let Some(bar) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            bar.end();
        }
    }
}

/// A percentage in whole steps.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a percentage is between 0 and 100"
)]
fn whole(percent: Option<f64>) -> u64 {
    percent.unwrap_or(0.0).round() as u64
}

/// What a failure means to the shell, and what to do next.
fn failed(error: ClientError) -> Failed {
    let hint = match &error {
        ClientError::TimedOut(timed_out) => {
            let hint = match (timed_out.limit, timed_out.notes) {
                (Limit::Total, _) => "give it more time with a longer --max-total-timeout",
                (Limit::Idle, 0) => "give it more time with a longer --timeout",
                (Limit::Idle, _) => {
                    "the server reports progress: --reset-timeout-on-progress waits as long as it does"
                }
            };
            return Failed::timed_out(error).hint(hint);
        }
        ClientError::GreetingTimedOut { .. } => {
            return Failed::timed_out(error).hint("check that this is an MCP server");
        }
        ClientError::Usage(_) => return Failed::usage(error, "see `outlast call --help`"),
        ClientError::Start { .. } => {
            return Failed::usage(error, "check the program's name, and that it may be run");
        }
        ClientError::Unauthorized => {
            return Failed::usage(
                error,
                "put the token in a variable and name it: --bearer-env NAME",
            );
        }
        ClientError::Greeting(_) => "check that this is an MCP server; -v shows what it logs",
        ClientError::Gone { .. } => "check that the server runs; -v shows what it logs",
        ClientError::Refused { .. } => "check the tool's name and its arguments",
        ClientError::NeedsInput => "use a client with a person in front of it",
        _ => return Failed::from(error),
    };
    Failed::from(error).hint(hint)
}
