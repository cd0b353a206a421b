//! `outlast run`: starts a workflow from the shell, as `start_job` does (E16). A worker runs the job, so that neither
//! Ctrl-C nor a closed terminal ends it.

use std::io::{IsTerminal as _, Read as _};
use std::process::ExitCode;

use anyhow::Context as _;
use outlast_core::{Body, Job, JobState, NewJob};
use outlast_engine::{Engine, LeaveTime, Providers, Worker, WorkerRole};
use outlast_provider::command::output_bytes;
use serde_json::{Map, Value};

use super::engine::{CommandSession, with_engine};
use super::follow::{self, CarriedBy};
use super::job_view::outcome::unsuccessful;
use super::job_view::{json, show};
use super::left_worker::{self, Carrier};
use super::serve::jobs::startable;
use super::serve::tool_schemas::last_seen_input;
use super::signals::stop_on_signals;
use super::start;
use crate::cli::{Global, RunArgs};
use crate::config::Config;
use crate::error::{CommandError, CommandResult, DONE, OrUsage as _, documentation, refuse};
use crate::open_store::OpenStore;
use crate::ui::{self, LineMark};
use crate::wire::{ProviderWithProfile, research_providers, workflow_providers};

pub(super) async fn run(global: &Global, args: RunArgs) -> CommandResult {
    let config = super::load_config(global, &[])?;
    super::start_quiet_log(global, &config)?;
    start::check_detach(args.detach, &config)?;
    let research = research_providers(&config)?;
    let job = new_job(&config, &research, &args)?;
    let mut providers: Providers = workflow_providers(&config, None)?;
    providers.extend(research);

    let store = OpenStore::open(&config).await?;
    with_engine(global, &config, store, providers, async |session| {
        check_input(session, &args, &job).await?;
        let job = start::start(&session.engine, job).await?;
        if args.detach {
            return start::detach(session, &[], &job, args.json).await;
        }
        outlast_engine::spawn(stop_on_signals(session.stop.clone())?);
        attend(session, job, &args).await
    })
    .await
}

fn new_job(
    config: &Config,
    research: &[ProviderWithProfile],
    args: &RunArgs,
) -> CommandResult<NewJob> {
    let workflows = startable(config, research.first().map(|(profile, _)| profile));
    let Some(workflow) = workflows.iter().find(|workflow| workflow.name == args.workflow) else {
        let names: Vec<_> = workflows.iter().map(|workflow| workflow.name.as_str()).collect();
        let why = format!("there is no workflow `{}`", ui::short(&args.workflow, 64));
        let hint = match names.as_slice() {
            [] => format!(
                "configure a [[workflow]] in outlast.toml: {}",
                documentation("workflows.md")
            ),
            names => format!("there is: {}", names.join(", ")),
        };
        return refuse(why, hint);
    };
    let arguments: Map<String, Value> = match &args.arguments {
        Some(text) => serde_json::from_str(text)
            .context("read --arguments")
            .or_usage("give a JSON object, such as '{\"since\":\"2026-01-01\"}'")?,
        None => Map::new(),
    };
    let message = match args.message.as_deref() {
        Some("-") => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("read standard input")?;
            Some(text)
        }
        given => given.map(str::to_owned),
    };
    let job = workflow.job(&config.owner, message, arguments, config.job_ttl);
    let hint = "`outlast run --help` says what goes where";
    let job = job.map_err(|why| CommandError::wrong(why, hint))?;
    Ok(job.with_tool("outlast run").with_traceparent(config.trace.as_ref()))
}

/// Checks the arguments of another server's tool against the schema that was last seen.
async fn check_input(
    session: &CommandSession<'_>,
    args: &RunArgs,
    job: &NewJob,
) -> CommandResult<()> {
    let input = last_seen_input(&args.workflow, session.config, &session.engine).await;
    let (Some(input), Ok(ask)) = (input, job.request.to_workflow()) else { return Ok(()) };
    let hint = "give --arguments what the tool's schema asks for";
    input.check(ask).map_err(|why| CommandError::wrong(why, hint))
}

/// Follows the job while a worker runs it, and shows its result.
async fn attend(session: &CommandSession<'_>, job: Job, args: &RunArgs) -> CommandResult {
    let CommandSession { engine, stop, .. } = session;
    let carrier = left_worker::ensure(session, &[], &job).await?;
    let own_worker = matches!(carrier, Carrier::ThisProcess).then(|| {
        outlast_engine::spawn(Worker::new(engine, WorkerRole::TheQueue).run(LeaveTime::Asked))
    });
    let job = follow::with_bar(engine, job, CarriedBy::Workers).await;
    if let Some(worker) = own_worker {
        stop.ask();
        drop(worker.await);
    }
    let job = job?;
    if job.state.kind().is_terminal() {
        return report_end(engine, args, &job);
    }
    Ok(left_worker::leave(&carrier, &job))
}

fn report_end(engine: &Engine, args: &RunArgs, job: &Job) -> CommandResult {
    if args.json {
        ui::json(&json::job(job, engine.now()));
    }
    let JobState::Succeeded { output, .. } = &job.state else {
        if let Some(detail) = job.failures.last().and_then(|failure| failure.detail.as_deref()) {
            last_lines(detail).for_each(|line| ui::remark(&format!("  {}", ui::short(line, 500))));
        }
        return Err(unsuccessful("workflow", job));
    };
    if !args.json {
        match bytes_for_a_program(&output.body) {
            Some(bytes) => ui::raw(&bytes),
            None => show::report(&output.body),
        }
    }
    if let Body::Tool { is_error: true, .. } = &output.body {
        ui::mark(LineMark::Bad, "the tool says that it failed");
        return Ok(ExitCode::FAILURE);
    }
    DONE
}

/// Returns the end of what a command wrote to standard error, which is the cause of its failure.
fn last_lines(detail: &str) -> impl Iterator<Item = &str> {
    const SHOWN: usize = 5;
    let lines: Vec<_> = detail.lines().filter(|line| !line.trim().is_empty()).collect();
    let from = lines.len().saturating_sub(SHOWN);
    lines.into_iter().skip(from)
}

/// Returns the text of a result with only one text, unchanged: a program that reads it gets the command's exact output.
/// `None` for a terminal.
fn bytes_for_a_program(body: &Body) -> Option<Vec<u8>> {
    let Body::Tool { content, .. } = body else { return None };
    let [block] = content.as_slice() else { return None };
    output_bytes(block).filter(|_| !std::io::stdout().is_terminal())
}
