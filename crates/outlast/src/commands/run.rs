//! `outlast run`: a workflow from the shell, as `start_job` starts it (E16). A worker carries the job, so that neither
//! Ctrl-C nor a closed terminal ends what it runs.

use std::io::Read as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use outlast_core::{Body, Job, JobState, NewJob, Scope};
use outlast_engine::{Engine, Providers, Shutdown, Takes, Until, Worker};
use serde_json::{Map, Value};

use super::detached_worker::{self, Carrier, Flags, short_id};
use super::research::{INTERRUPTED, refused};
use super::serve::jobs::startable;
use super::signals::stop_on_signals;
use super::{detach, jobs};
use crate::cli::{Global, RunArgs};
use crate::config::{Config, StoreUrl};
use crate::error::CommandError;
use crate::ui::{self, Bar, Mark};
use crate::wire::{OpenEngine, OpenStore, research_providers, workflow_providers};

pub(super) async fn run(global: &Global, args: RunArgs) -> Result<ExitCode, CommandError> {
    let config = super::configured(global, Vec::new())?;
    super::start_quiet_log(global, &config)?;
    if args.detach && config.store == StoreUrl::Memory {
        let error = anyhow::anyhow!("a job in a memory store ends with this command");
        return Err(CommandError::usage(error, "leave out --detach, or name a store with --store"));
    }
    let research = research_providers(&config, None)?;
    let job = new_job(&config, &research, &args)?;
    let mut providers: Providers = workflow_providers(&config, None)?;
    providers.extend(research);

    let stop = Shutdown::new();
    let store = OpenStore::open(&config.store)?;
    let OpenEngine { engine, follower, .. } =
        store.engine(&config, providers, stop.clone()).await?;
    let flags = Flags { global, config: &config, library: &[] };
    let done = match engine.start(job, None).await {
        Ok(started) if args.detach => detach::run(&engine, &flags, &started.job, args.json).await,
        Ok(started) => {
            tokio::spawn(stop_on_signals(stop.clone())?);
            attended(&engine, &flags, started.job, &args, &stop).await
        }
        Err(error) => Err(refused(error)),
    };
    stop.ask();
    drop(follower.await);
    store.close().await;
    done
}

fn new_job(
    config: &Config,
    research: &[crate::wire::Profiled],
    args: &RunArgs,
) -> Result<NewJob, CommandError> {
    let workflows = startable(config, research.first().map(|(profile, _)| profile));
    let Some(workflow) = workflows.iter().find(|workflow| workflow.name == args.workflow) else {
        let names: Vec<_> = workflows.iter().map(|workflow| workflow.name.as_str()).collect();
        let error = anyhow::anyhow!("there is no workflow `{}`", ui::short(&args.workflow, 64));
        let hint = match names.as_slice() {
            [] => "configure a [[workflow]] in outlast.toml: docs/workflows.md".to_owned(),
            names => format!("there is: {}", names.join(", ")),
        };
        return Err(CommandError::usage(error, hint));
    };
    let arguments: Map<String, Value> = match &args.arguments {
        Some(text) => serde_json::from_str(text).map_err(|error| {
            let error = anyhow::Error::new(error).context("read --arguments");
            CommandError::usage(error, "give a JSON object, such as '{\"since\":\"2026-01-01\"}'")
        })?,
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
    let job = job.map_err(|why| {
        CommandError::usage(anyhow::anyhow!(why), "`outlast run --help` says what goes where")
    })?;
    Ok(job.made_by("outlast run"))
}

/// Follows the job while a worker carries it, and shows what comes of it.
async fn attended(
    engine: &Engine,
    flags: &Flags<'_>,
    job: Job,
    args: &RunArgs,
    stop: &Shutdown,
) -> Result<ExitCode, CommandError> {
    let carrier = flags.ensure_worker(engine, &job).await?;
    // A store in memory has no other process.
    let own = matches!(carrier, Carrier::Nobody)
        .then(|| tokio::spawn(Worker::new(engine, Takes::TheQueue).run(Until::Asked)));
    let job = followed(engine, job).await;
    if let Some(worker) = own {
        stop.ask();
        drop(worker.await);
    }
    let job = job?;
    if job.state.kind().is_terminal() {
        return ended(engine, args, &job);
    }
    ui::mark(Mark::Step, &format!("left before the end: {}", job.id));
    detached_worker::tell(&carrier, &job);
    Ok(ExitCode::from(INTERRUPTED))
}

/// The job, when it has ended or the person has left; shows how it comes on.
async fn followed(engine: &Engine, job: Job) -> Result<Job, CommandError> {
    let scope = Scope::Owner(job.new.owner.clone());
    let Some((mut reading, mut watch)) = engine.watch(&scope, &job.id).await? else {
        return Ok(job);
    };
    let mut bar = Bar::since(Duration::ZERO);
    while !reading.job.state.kind().is_terminal() {
        let (percent, message) = jobs::watch::standing(&reading);
        bar.show(percent, &message);
        tokio::select! {
            changed = watch.changed() => match changed? {
                Some(changed) => reading = changed,
                None => break,
            },
            () = engine.leaving() => break,
        }
    }
    bar.end();
    Ok(reading.job)
}

fn ended(engine: &Engine, args: &RunArgs, job: &Job) -> Result<ExitCode, CommandError> {
    if args.json {
        ui::line(&jobs::json::job(job, engine.now()));
    }
    let id = short_id(job);
    match &job.state {
        JobState::Succeeded { output, .. } => {
            if !args.json {
                jobs::show::report(&output.body);
            }
            Ok(match &output.body {
                Body::Tool { is_error: true, .. } => {
                    ui::mark(Mark::Bad, "the tool says that it failed");
                    ExitCode::FAILURE
                }
                Body::Tool { .. } | Body::Report { .. } => ExitCode::SUCCESS,
            })
        }
        JobState::Cancelled { .. } => {
            let failed = CommandError::from(anyhow::anyhow!("the job was cancelled"));
            Err(failed.hint(format!("`outlast jobs retry {id}` starts it again")))
        }
        JobState::Failed { .. } | JobState::Queued { .. } | JobState::Running { .. } => {
            let error = anyhow::anyhow!("the workflow failed: {}", jobs::show::why(job));
            let hint = format!(
                "`outlast jobs show {id}` has the details, `outlast jobs retry {id}` starts it again"
            );
            Err(CommandError::from(error).hint(hint))
        }
    }
}
