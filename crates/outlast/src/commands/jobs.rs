//! `outlast jobs`: what is in the store, for people and for scripts.

pub(super) mod json;
pub(super) mod show;

use std::process::ExitCode;

use outlast_core::{Job, JobId, Prune, Query, Scope, StateKind, Summary};
use outlast_engine::{Engine, Providers, Stop};

use crate::cli::{Global, JobsCommand, ListArgs, PruneArgs, ShowArgs};
use crate::config::Config;
use crate::failed::Failed;
use crate::ui;
use crate::wire::OpenStore;

/// The shortest prefix of an id that is accepted: shorter ones are typing mistakes.
const SHORTEST_PREFIX: usize = 8;

pub(super) async fn run(global: &Global, command: JobsCommand) -> Result<ExitCode, Failed> {
    let config = super::configured(global, Vec::new())?;
    let store = OpenStore::open(&config.store)?;
    let stop = Stop::new();
    let (engine, follower) = store.engine(&config, Providers::new(), stop.clone()).await?;
    let done = match command {
        JobsCommand::List(args) => list(&engine, &config, args).await,
        JobsCommand::Show(args) => show(&engine, &config, args).await,
        JobsCommand::Prune(args) => prune(&engine, &config, args).await,
    };
    stop.ask();
    drop(follower.await);
    store.close().await;
    done
}

async fn list(engine: &Engine, config: &Config, args: ListArgs) -> Result<ExitCode, Failed> {
    let scope = if args.all { Scope::Operator } else { Scope::Owner(config.owner.clone()) };
    let states = args.state.iter().filter_map(|word| StateKind::parse(word)).collect();
    let query = Query { states, search: args.search, limit: args.limit, ..Query::default() };
    let page = engine.list(&scope, &query).await?;
    if args.json {
        ui::line(&json::page(&page));
        return Ok(ExitCode::SUCCESS);
    }
    if page.jobs.is_empty() {
        ui::remark("No jobs.");
        return Ok(ExitCode::SUCCESS);
    }
    let now = engine.now();
    let rows = page.jobs.iter().map(|job| row(job, now, args.all));
    let mut heads = vec!["ID", "STATE", "AGE", "QUESTION"];
    if args.all {
        heads.insert(3, "OWNER");
    }
    ui::table(&heads, rows.collect());
    if page.next.is_some() {
        ui::remark(&format!("Only the newest {} are shown; --limit shows more.", args.limit));
    }
    Ok(ExitCode::SUCCESS)
}

fn row(job: &Summary, now: outlast_core::Timestamp, with_owner: bool) -> Vec<ui::Cell> {
    let percent = job.progress.as_ref().and_then(|progress| progress.percent);
    let state = match percent.filter(|_| job.state == StateKind::Running) {
        Some(percent) => format!("{} {percent}%", job.state.as_str()),
        None => job.state.as_str().to_owned(),
    };
    let mut cells = vec![
        ui::Cell::plain(&job.id.to_string()),
        ui::Cell::state(state, job.state),
        ui::Cell::plain(&ui::ago(now.since(job.created_at))),
        ui::Cell::plain(&job.title),
    ];
    if with_owner {
        cells.insert(3, ui::Cell::plain(job.owner.as_str()));
    }
    cells
}

async fn show(engine: &Engine, config: &Config, args: ShowArgs) -> Result<ExitCode, Failed> {
    let scope = Scope::Owner(config.owner.clone());
    let job = find(engine, &scope, &args.id).await?;
    if args.json {
        ui::line(&json::job(&job, engine.now()));
    } else {
        show::job(&job, engine.now());
    }
    Ok(ExitCode::SUCCESS)
}

async fn prune(engine: &Engine, config: &Config, args: PruneArgs) -> Result<ExitCode, Failed> {
    let scope = if args.all { Scope::Operator } else { Scope::Owner(config.owner.clone()) };
    let prune = match args.older_than {
        Some(age) => Prune::EndedBefore(engine.now().before(age)),
        None => Prune::Expired,
    };
    let pruned = engine.prune(&scope, &prune).await?;
    ui::line(&pruned.jobs.to_string());
    ui::remark(match pruned.jobs {
        1 => "job removed",
        _ => "jobs removed",
    });
    Ok(ExitCode::SUCCESS)
}

/// The job of this id or unique prefix.
async fn find(engine: &Engine, scope: &Scope, given: &str) -> Result<Job, Failed> {
    let hint = "`outlast jobs list` shows the ids";
    let is_prefix = given.len() >= SHORTEST_PREFIX
        && given.len() <= 32
        && given.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !is_prefix {
        let error = anyhow::anyhow!("`{}` is not the id of a job", ui::short(given, 64));
        return Err(Failed::usage(
            error,
            format!("give 8 to 32 lower-case hexadecimal digits; {hint}"),
        ));
    }
    let query = Query { id_prefix: Some(given.to_owned()), limit: 5, ..Query::default() };
    let found = engine.list(scope, &query).await?;
    let ids: Vec<JobId> = found.jobs.iter().map(|job| job.id).collect();
    let job = match ids.as_slice() {
        [id] => engine.job(scope, id).await?,
        [] => None,
        many => {
            let list = many.iter().map(|id| format!("  {id}")).collect::<Vec<_>>().join("\n");
            let error = anyhow::anyhow!("several jobs start with `{given}`:\n{list}");
            return Err(Failed::usage(error, "give more of the id"));
        }
    };
    job.ok_or_else(|| Failed::from(anyhow::anyhow!("there is no job `{given}`")).hint(hint))
}
