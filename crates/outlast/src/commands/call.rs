//! `outlast call`: one call of one tool of any MCP server, with the time limits that the user chooses.

use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use outlast_client::{
    CallOptions, Client, ClientError, ConnectOptions, Endpoint, Limit, ProgramToStart, Progress,
    RequestLimits, StartedCall, StderrMode, TaskFate, TimedOut, ToolAnswer,
};
use serde_json::{Value, json};

use super::signals::{INTERRUPTED, Signals, StopSignal};
use crate::cli::{CallArgs, Global};
use crate::config::LogFormat;
use crate::error::{CommandError, CommandResult, DONE, OrUsage as _, refuse};
use crate::logging::{self, Relay};
use crate::ui::{self, Bars, Cell, LineMark};

/// The exit code when the tool reports a failure.
const TOOL_FAILED: u8 = 1;

/// The time within which a second Ctrl-C cancels the task.
const SECOND_CTRL_C: Duration = Duration::from_secs(2);
/// The time that the server may take to cancel it.
const CANCELLING: Duration = Duration::from_secs(5);

pub(super) async fn run(global: &Global, args: CallArgs) -> CommandResult {
    // Of our configuration only the proxy applies: the called server has its own configuration.
    let logs = logging::start(std::io::stderr, global, "error", LogFormat::Text, Relay::None);
    logs.map_err(|why| anyhow!("the log cannot be started: {why}"))?;
    let arguments = arguments(args.args.as_deref())?;
    let limits = RequestLimits {
        timeout: args.timeout,
        reset_timeout_on_progress: args.reset_timeout_on_progress,
        max_total_timeout: args.max_total_timeout,
    };
    let mut signals = Signals::listen()?;
    let client = tokio::select! {
        client = connect(global, &args) => client?,
        _ = signals.next() => {
            ui::mark(LineMark::Step, "left before the server was reached");
            return Ok(ExitCode::from(INTERRUPTED));
        }
    };
    let mut exchange = Exchange { client: &client, args: &args, limits, signals };
    let done = match &args.tool {
        Some(tool) => exchange.call(tool, arguments).await,
        None => exchange.list().await,
    };
    // Also after an interruption: the server is notified, and a program gets its time to exit.
    client.close().await;
    done
}

/// A request to a server, with its time limits.
struct Exchange<'a> {
    client: &'a Client,
    args: &'a CallArgs,
    limits: RequestLimits,
    signals: Signals,
}

impl Exchange<'_> {
    /// Prints the server's tools on standard output.
    async fn list(&mut self) -> CommandResult {
        let options = CallOptions::with_limits(self.limits);
        let tools = tokio::select! {
            tools = self.client.list_tools(options) => tools.map_err(explain_failure)?,
            _ = self.signals.next() => return Ok(ExitCode::from(INTERRUPTED)),
        };
        if self.args.json {
            ui::json(&Value::Array(tools));
            return DONE;
        }
        let text = |tool: &Value, field: &str| tool[field].as_str().unwrap_or_default().to_owned();
        let rows = tools.iter().map(|tool| {
            let description = text(tool, "description");
            let first_line = description.lines().next().unwrap_or_default();
            vec![Cell::plain(&text(tool, "name")), Cell::plain(first_line)]
        });
        ui::table(&["TOOL", "DESCRIPTION"], rows.collect());
        ui::aside("`--tool NAME --args JSON` calls one; --json shows their arguments");
        DONE
    }

    /// Makes one call, from its request to the output of its answer.
    async fn call(&mut self, tool: &str, arguments: Value) -> CommandResult {
        let Self { client, args, limits, .. } = *self;
        let work = RemoteWork::at(client, args.url.is_none());
        let noting = work.clone();
        let mut options = CallOptions::with_limits(limits).on_progress(move |it| noting.note(it));
        if args.cancel_on_timeout {
            options = options.cancel_on_give_up();
        }
        let calling = async {
            match client.start_tool(tool, arguments, options).await? {
                StartedCall::Answered(answer) => Ok(answer),
                StartedCall::Task(task) => {
                    work.lock_known().task = Some(task.id().to_owned());
                    // Ctrl-C is not a limit: only the second one cancels a task.
                    task.leave_running().finish().await
                }
            }
        };
        let ended = tokio::select! {
            answer = calling => Ok(answer),
            asked = self.signals.next() => Err(asked),
        };
        work.lock_known().bar = None;
        match ended {
            Ok(Ok(answer)) => Ok(show(&answer, args.json)),
            Ok(Err(ClientError::TimedOut(timed_out))) => Err(gave_up(timed_out, &limits, &work)),
            Ok(Err(error)) => Err(explain_failure(error)),
            Err(asked) => Ok(self.interrupt(asked, &work).await),
        }
    }

    /// Handles a person who leaves: the job or task continues, unless Ctrl-C is typed a second time.
    async fn interrupt(&mut self, asked: StopSignal, work: &RemoteWork) -> ExitCode {
        let goes_on = work.goes_on().unwrap_or_else(|| "the server was notified".to_owned());
        ui::mark(LineMark::Step, &format!("left before the answer; {goes_on}"));
        if let (StopSignal::Interrupt, Some(task)) = (asked, work.task()) {
            ui::remark("  Ctrl-C again cancels it");
            let second = tokio::time::timeout(SECOND_CTRL_C, self.signals.next()).await;
            if second == Ok(StopSignal::Interrupt) {
                cancel(self.client, &task).await;
            }
        }
        ExitCode::from(INTERRUPTED)
    }
}

async fn cancel(client: &Client, id: &str) {
    let options = CallOptions::default().timeout(CANCELLING);
    let cancelled = match client.resume_task(id, options) {
        Ok(task) => task.cancel().await,
        Err(error) => Err(error),
    };
    match cancelled {
        Ok(()) => ui::mark(LineMark::Step, &format!("{id} is cancelled")),
        Err(error) => {
            ui::mark(LineMark::Bad, &format!("{id} may go on; it was not cancelled: {error}"))
        }
    }
}

/// The known state of the work behind a call, for a caller that leaves before the answer.
#[derive(Clone)]
struct RemoteWork {
    /// True if the server is an outlast server, whose jobs outlive their callers.
    is_outlast: bool,
    /// True if the server was started for the call, and exits with it.
    leaves: bool,
    known: Arc<Mutex<KnownWork>>,
}

struct KnownWork {
    /// Shows the progress; `None` once the call is over.
    bar: Option<Bars>,
    /// The task that the call became.
    task: Option<String>,
    /// The job that the server's progress named.
    job: Option<String>,
}

impl RemoteWork {
    fn at(client: &Client, leaves: bool) -> Self {
        let is_outlast = client.server_name().as_deref() == Some("outlast");
        let known = KnownWork { bar: Some(Bars::one()), task: None, job: None };
        Self { is_outlast, leaves, known: Arc::new(Mutex::new(known)) }
    }

    fn lock_known(&self) -> MutexGuard<'_, KnownWork> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn task(&self) -> Option<String> {
        self.lock_known().task.clone()
    }

    fn note(&self, progress: &Progress) {
        let mut known = self.lock_known();
        let job = progress.meta.as_ref().and_then(|meta| meta["outlast/jobId"].as_str());
        if let Some(job) = job.filter(|_| self.is_outlast) {
            known.job = Some(job.to_owned());
        }
        if let Some(bar) = &mut known.bar {
            let words = progress.message.as_deref().unwrap_or("working");
            bar.show(0, progress.percent().map(whole), &ui::short(words, 100));
        }
    }

    /// Returns the outcome of the work without the caller, and the way back to it: a repeated call attaches to its job,
    /// if the server is an outlast server.
    fn goes_on(&self) -> Option<String> {
        let known = self.lock_known();
        let is_task = known.task.is_some();
        let Some(id) = known.task.as_ref().or(known.job.as_ref()) else {
            return self.is_outlast.then(|| "the same call made again picks it up".to_owned());
        };
        Some(match (self.is_outlast, self.leaves) {
            (true, true) => format!(
                "job {id} goes on in the detached worker of its server, or, if it has none, once `outlast worker --until-idle` \
                 or the next server runs; `outlast jobs watch {id}` follows it; the same call made again picks it up"
            ),
            (true, false) if is_task => format!(
                "job {id} goes on; the same call made again picks it up, `outlast jobs watch {id}` on the server's machine \
                 follows it"
            ),
            (true, false) => format!("job {id} goes on; the same call made again picks it up"),
            (false, true) => format!("the server leaves with the call, and knows the task as {id}"),
            (false, false) => format!("the task {id} goes on at the server"),
        })
    }
}

/// Returns the error for a limit that was reached: the work that continues, and the way to wait longer.
fn gave_up(mut timed_out: TimedOut, limits: &RequestLimits, work: &RemoteWork) -> CommandError {
    let longer = longer_wait(&timed_out, limits);
    let fate = timed_out.task.as_ref().map(|task| task.fate);
    let hint = match work.goes_on() {
        Some(goes_on) if fate != Some(TaskFate::Cancelled) => {
            let next_time = if fate.is_some() { "next time, " } else { "" };
            format!("{goes_on}; {next_time}{longer}")
        }
        Some(_) | None => longer.to_owned(),
    };
    if work.leaves && fate == Some(TaskFate::GoesOn) {
        // The error would say that the task continues. It does not without its server; the hint states its outcome.
        timed_out.task = None;
    }
    CommandError::timed_out(timed_out).hint(hint)
}

fn longer_wait(timed_out: &TimedOut, limits: &RequestLimits) -> &'static str {
    match (timed_out.limit, timed_out.notes) {
        (Limit::Total, _) => "a longer --max-total-timeout gives it more time",
        (Limit::Idle, 1..) if !limits.reset_timeout_on_progress => {
            "--reset-timeout-on-progress waits as long as the server reports progress"
        }
        (Limit::Idle, _) => "a longer --timeout gives it more time",
    }
}

/// Prints the answer on standard output.
fn show(answer: &ToolAnswer, as_json: bool) -> ExitCode {
    if as_json {
        let mut result = json!({ "content": answer.content, "isError": answer.is_error });
        for (name, part) in [("structuredContent", &answer.structured), ("_meta", &answer.meta)] {
            if let Some(part) = part {
                result[name] = part.clone();
            }
        }
        ui::json(&result);
    } else {
        show_text(answer);
    }
    if answer.is_error {
        ui::mark(LineMark::Bad, "the tool says that it failed");
        return ExitCode::from(TOOL_FAILED);
    }
    ExitCode::SUCCESS
}

fn show_text(answer: &ToolAnswer) {
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

/// Connects a client to the server that has the tool.
async fn connect(global: &Global, args: &CallArgs) -> CommandResult<Client> {
    // `--timeout` is the idle window of a request. The handshake has its own limit, which only the total one shortens.
    let mut options = ConnectOptions::default();
    if let Some(total) = args.max_total_timeout {
        options.handshake_timeout = options.handshake_timeout.min(total);
    }
    let client = match &args.url {
        Some(url) => {
            Client::http(endpoint(global, url, &args.header, args.bearer_env.as_deref())?, options)
                .await
        }
        None => Client::spawn(program(global, args)?, options).await,
    };
    client.map_err(explain_failure)
}

/// Returns an address with its headers, through the configured proxy.
pub(super) fn endpoint(
    global: &Global,
    url: &str,
    headers: &[String],
    bearer_env: Option<&str>,
) -> CommandResult<Endpoint> {
    let mut endpoint = Endpoint::new(url).map_err(explain_failure)?;
    if let Some(proxy) = super::load_config(global, &[])?.proxy {
        endpoint = endpoint.proxy(proxy).map_err(explain_failure)?;
    }
    for header in headers {
        let pair = header.split_once(':').context("a header has no colon");
        let (name, value) = pair.or_usage("write it as 'Name: value'")?;
        endpoint = endpoint.header(name.trim(), value.trim()).map_err(explain_failure)?;
    }
    match bearer_env {
        Some(name) => endpoint.bearer(&variable(name)?).map_err(explain_failure),
        None => Ok(endpoint),
    }
}

fn program(global: &Global, args: &CallArgs) -> CommandResult<ProgramToStart> {
    let Some((name, arguments)) = args.program.split_first() else {
        let hint = "give its address, `outlast call --url URL`, or a program that is started for the call, \
                    `outlast call -- CMD`";
        return refuse("no server is named", hint);
    };
    let mut program = ProgramToStart::new(name).args(arguments);
    for variable in &args.env {
        let pair = variable.split_once('=').filter(|(name, _)| !name.is_empty());
        let pair = pair.context("--env has no NAME");
        let (name, value) = pair.or_usage("write it as --env NAME=value")?;
        program = program.env(name, value);
    }
    // Its log would break up the bar; -v shows it. Its last lines are shown when it exits.
    let stderr = if global.verbose > 0 { StderrMode::Pass } else { StderrMode::Keep };
    Ok(program.stderr(stderr))
}

#[expect(clippy::disallowed_methods, reason = "no setting: the variable is named for this call")]
pub(super) fn variable(name: &str) -> CommandResult<String> {
    let value = std::env::var(name).ok().filter(|value| !value.is_empty());
    let value = value.with_context(|| format!("there is nothing in the variable {name}"));
    value.or_usage(format!("export {name}=... before the call"))
}

fn arguments(text: Option<&str>) -> CommandResult<Value> {
    let Some(text) = text else { return Ok(Value::Null) };
    let hint = "give --args a JSON object, such as '{\"query\": \"Heat pumps?\"}'";
    match serde_json::from_str(text) {
        Ok(arguments @ Value::Object(_)) => Ok(arguments),
        Ok(_) => refuse("--args is not a JSON object", hint),
        Err(error) => refuse(format!("--args is not JSON: {error}"), hint),
    }
}

/// Returns a percentage in whole steps.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a percentage is between 0 and 100"
)]
fn whole(percent: f64) -> u64 {
    percent.round() as u64
}

/// Returns the exit code and the next step for a failure.
fn explain_failure(error: ClientError) -> CommandError {
    let hint = match &error {
        ClientError::TimedOut(_) => return CommandError::timed_out(error),
        ClientError::HandshakeTimedOut { .. } => {
            return CommandError::timed_out(error).hint("check that this is an MCP server");
        }
        ClientError::Usage(_) => "see `outlast call --help`",
        ClientError::Start { .. } => "check the program's name, and that it may be run",
        ClientError::Unauthorized => "put the token in a variable and name it: --bearer-env NAME",
        ClientError::Handshake(_) => "check that this is an MCP server; -v shows what it logs",
        ClientError::Gone { .. } => "check that the server runs; -v shows what it logs",
        ClientError::Refused { .. } => "check the tool's name and its arguments",
        ClientError::NeedsInput => "use a client with a person in front of it",
        _ => return CommandError::from(error),
    };
    let is_usage = matches!(
        error,
        ClientError::Usage(_) | ClientError::Start { .. } | ClientError::Unauthorized
    );
    CommandError::from(error).hint(hint).usage_if(is_usage)
}
