//! `outlast jobs`: what is in the store, for people and for scripts.

mod list;
mod watch;
mod wait;
mod cancel;
mod retry;

use std::process::ExitCode;

use outlast_core::{JobId, Prune, Scope, StateKind, Waits};
use outlast_engine::{Engine, Providers, Reading};

use super::engine::with_engine;
use super::find;
use super::job_view::{json, show};
use crate::cli::{Global, JobArgs, JobsCommand, PruneArgs};
use crate::config::Config;
use crate::error::CommandResult;
use crate::open_store::OpenStore;
use crate::ui;
use crate::wire::research_providers;

pub(super) async fn run(global: &Global, command: JobsCommand) -> CommandResult {
    let config = super::configured(global, &[])?;
    let store = match &command {
        JobsCommand::Cancel(_) | JobsCommand::Retry(_) | JobsCommand::Prune(_) => {
            OpenStore::existing(&config).await?
        }
        // They put the jobs of dead workers back into the queue, so that what is said of a job is true.
        _ => match OpenStore::existing(&config).await {
            Ok(store) => store,
            Err(failed) => OpenStore::to_read(&config).await.map_err(|_| failed)?,
        },
    };
    // Known, so that what a cancel or a new run means there can be said; no worker is started.
    let providers = match &command {
        JobsCommand::Cancel(_) | JobsCommand::Retry(_) => {
            research_providers(&config).unwrap_or_default().into_iter().collect()
        }
        _ => Providers::new(),
    };
    with_engine(store, &config, providers, async |opened, stop| {
        let engine = &opened.engine;
        engine.find_dead_workers().await;
        match command {
            JobsCommand::List(args) => list::run(engine, &config, args).await,
            JobsCommand::Show(args) => show(engine, &config, args).await,
            JobsCommand::Watch(args) => watch::run(engine, &config, args, stop).await,
            JobsCommand::Wait(args) => wait::run(engine, &config, args, stop).await,
            JobsCommand::Cancel(args) => cancel::run(engine, &config, args).await,
            JobsCommand::Retry(args) => retry::run(engine, global, &config, args).await,
            JobsCommand::Prune(args) => prune(engine, &config, args).await,
        }
    })
    .await
}

fn own(config: &Config) -> Scope {
    Scope::Owner(config.owner.clone())
}

fn own_or_all(config: &Config, all: bool) -> Scope {
    if all { Scope::Operator } else { own(config) }
}

/// The job as it stands. On a shared database a command is too young to judge who is dead, and sees that none is alive.
async fn reading(engine: &Engine, scope: &Scope, id: &JobId) -> CommandResult<Option<Reading>> {
    let Some(mut reading) = engine.reading(scope, id).await? else { return Ok(None) };
    let job = &reading.job;
    if job.state.kind() == StateKind::Running
        && job.new.visibility.goes_through_queue()
        && !engine.has_worker(&job.new.profile).await?
    {
        reading.waits = Some(Waits::ForAWorker);
    }
    Ok(Some(reading))
}

async fn show(engine: &Engine, config: &Config, args: JobArgs) -> CommandResult {
    let scope = own(config);
    let job = find::job(engine, &scope, &args.id).await?;
    if args.json {
        ui::json(&json::job(&job, engine.now()));
    } else {
        let retries = retry::retries_of(engine, &scope, &job).await?;
        let waits = reading(engine, &scope, &job.id).await?.and_then(|reading| reading.waits);
        show::job(&job, waits, engine.now(), &retries);
    }
    Ok(ExitCode::SUCCESS)
}

async fn prune(engine: &Engine, config: &Config, args: PruneArgs) -> CommandResult {
    let prune = match args.older_than {
        Some(age) => Prune::EndedBefore(engine.now().before(age)),
        None => Prune::Expired,
    };
    let pruned = engine.prune(&own_or_all(config, args.all), &prune).await?;
    if args.json {
        ui::json(&serde_json::json!({ "removed": pruned.jobs }));
        return Ok(ExitCode::SUCCESS);
    }
    ui::line(&pruned.jobs.to_string());
    ui::remark(if pruned.jobs == 1 { "job removed" } else { "jobs removed" });
    Ok(ExitCode::SUCCESS)
}
