//! `outlast jobs`: what is in the store, for people and for scripts.

mod list;
mod watch;
mod wait;
mod cancel;
mod retry;

use std::process::ExitCode;

use outlast_core::{JobId, Prune, Scope, StateKind, Waits};
use outlast_engine::{Providers, Reading};

use super::engine::{Session, with_engine};
use super::find;
use super::job_view::{json, show};
use crate::cli::{Global, JobArgs, JobsCommand, PruneArgs};
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
    with_engine(global, &config, store, providers, async |session| {
        session.engine.find_dead_workers().await;
        match command {
            JobsCommand::List(args) => list::run(session, args).await,
            JobsCommand::Show(args) => show(session, args).await,
            JobsCommand::Watch(args) => watch::run(session, args).await,
            JobsCommand::Wait(args) => wait::run(session, args).await,
            JobsCommand::Cancel(args) => cancel::run(session, args).await,
            JobsCommand::Retry(args) => retry::run(session, args).await,
            JobsCommand::Prune(args) => prune(session, args).await,
        }
    })
    .await
}

fn own_or_all(session: &Session<'_>, all: bool) -> Scope {
    if all { Scope::Operator } else { session.own() }
}

/// The job as it stands. On a shared database a command is too young to judge who is dead, and sees that none is alive.
async fn reading(session: &Session<'_>, id: &JobId) -> CommandResult<Option<Reading>> {
    let engine = &session.engine;
    let Some(mut reading) = engine.reading(&session.own(), id).await? else { return Ok(None) };
    let job = &reading.job;
    if job.state.kind() == StateKind::Running
        && job.new.visibility.goes_through_queue()
        && !engine.has_worker(&job.new.profile).await?
    {
        reading.waits = Some(Waits::ForAWorker);
    }
    Ok(Some(reading))
}

async fn show(session: &Session<'_>, args: JobArgs) -> CommandResult {
    let job = find::job(session, &args.id).await?;
    let now = session.engine.now();
    if args.json {
        ui::json(&json::job(&job, now));
    } else {
        let retries = retry::retries_of(session, &job).await?;
        let waits = reading(session, &job.id).await?.and_then(|reading| reading.waits);
        show::job(&job, waits, now, &retries);
    }
    Ok(ExitCode::SUCCESS)
}

async fn prune(session: &Session<'_>, args: PruneArgs) -> CommandResult {
    let engine = &session.engine;
    let prune = match args.older_than {
        Some(age) => Prune::EndedBefore(engine.now().before(age)),
        None => Prune::Expired,
    };
    let pruned = engine.prune(&own_or_all(session, args.all), &prune).await?;
    if args.json {
        ui::json(&serde_json::json!({ "removed": pruned.jobs }));
        return Ok(ExitCode::SUCCESS);
    }
    ui::line(&pruned.jobs.to_string());
    ui::remark(if pruned.jobs == 1 { "job removed" } else { "jobs removed" });
    Ok(ExitCode::SUCCESS)
}
