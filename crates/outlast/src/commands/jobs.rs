//! `outlast jobs`: the jobs in the store, for people and for scripts.

mod watch;
mod retry;
mod answer;

use std::time::Duration;

use outlast_core::{
    CancelOutcome, Code, Job, JobId, JobQuery, JobState, Profile, Prune, RemoteStop,
    ResearchRecord, Scope, StateKind, Summary, Timestamp, Waits,
};
use outlast_engine::{JobSnapshot, Providers};
use outlast_server::{PaidRun, ResearchDetails, StepTotals};
use tokio::time::Instant;

use super::engine::{CommandSession, with_engine};
use super::find;
use super::job_view::{json, show};
use crate::cli::{Global, JobArgs, JobsCommand, ListArgs, PruneArgs};
use crate::error::{CommandError, CommandResult, DONE};
use crate::open_store::OpenStore;
use crate::ui;
use crate::wire::research_providers;

/// The time within which a host process records the reaction of its server to a cancel: a server has 2 s to answer.
const STOP_WAIT: Duration = Duration::from_secs(4);
/// The interval of the checks for it.
const STOP_LOOK: Duration = Duration::from_millis(50);

pub(super) async fn run(global: &Global, command: JobsCommand) -> CommandResult {
    let config = super::load_config(global, &[])?;
    let changes = matches!(
        command,
        JobsCommand::Cancel(_)
            | JobsCommand::Retry(_)
            | JobsCommand::Answer(_)
            | JobsCommand::Prune(_)
    );
    // Commands that change nothing open the store for writing too: they return the jobs of dead workers to the queue,
    // so that the displayed state of a job is true.
    let store = match OpenStore::open_existing(&config).await {
        Err(failed) if !changes => OpenStore::to_read(&config).await.map_err(|_| failed)?,
        opened => opened?,
    };
    // The providers are known, so that the effect of a cancel or a new run can be stated; no worker is started.
    let providers = match &command {
        JobsCommand::Cancel(_) | JobsCommand::Retry(_) => {
            research_providers(&config).unwrap_or_default().into_iter().collect()
        }
        _ => Providers::new(),
    };
    with_engine(global, &config, store, providers, async |session| {
        session.engine.find_dead_workers().await;
        super::wrap::end_left_calls(session).await;
        match command {
            JobsCommand::List(args) => list(session, args).await,
            JobsCommand::Show(args) => show(session, args).await,
            JobsCommand::Watch(args) => watch::run(session, args).await,
            JobsCommand::Wait(args) => watch::wait(session, args).await,
            JobsCommand::Answer(args) => answer::run(session, args).await,
            JobsCommand::Cancel(args) => cancel(session, args).await,
            JobsCommand::Retry(args) => retry::run(session, args).await,
            JobsCommand::Prune(args) => prune(session, args).await,
        }
    })
    .await
}

fn own_or_all(session: &CommandSession<'_>, all: bool) -> Scope {
    if all { Scope::Operator } else { session.own() }
}

/// Returns the present state of the job, and the reason why it waits. On a shared database a command is too short-lived
/// to decide which workers are dead, and only sees that none is alive.
pub(super) async fn read(
    session: &CommandSession<'_>,
    id: &JobId,
) -> CommandResult<Option<JobSnapshot>> {
    let engine = &session.engine;
    let Some(mut reading) = engine.read(&session.own(), id).await? else { return Ok(None) };
    let job = &reading.job;
    if job.state.kind() == StateKind::Running
        && job.new.visibility.goes_through_queue()
        && !engine.has_worker(&job.new.profile).await?
    {
        reading.waits = Some(Waits::ForAWorker);
    }
    Ok(Some(reading))
}

async fn list(session: &CommandSession<'_>, args: ListArgs) -> CommandResult {
    let states: Vec<StateKind> =
        args.state.iter().filter_map(|word| StateKind::parse(word)).collect();
    let is_filtered = !states.is_empty() || args.search.is_some();
    let query = JobQuery { states, search: args.search, limit: args.limit, ..JobQuery::default() };
    let page = session.engine.list(&own_or_all(session, args.all), &query).await?;
    if args.json {
        ui::json(&json::page(&page));
        return DONE;
    }
    if page.jobs.is_empty() {
        ui::remark(match is_filtered {
            true => "No such jobs.",
            false => "No jobs yet; `outlast research QUESTION` starts one.",
        });
        return DONE;
    }
    let now = session.engine.now();
    let mut rows = Vec::new();
    for job in &page.jobs {
        rows.push(row(job, code(session, job).await?, now, args.all));
    }
    let mut heads = vec!["ID", "STATE", "WORKFLOW", "PROVIDER", "COST", "AGE", "QUESTION"];
    if args.all {
        heads.insert(OWNER, "OWNER");
    }
    ui::table_with_optional(&["WORKFLOW", "PROVIDER", "COST"], &heads, rows);
    if page.next.is_some() {
        ui::remark(&format!("Only the newest {} are shown; --limit shows more.", args.limit));
    }
    DONE
}

/// The column of the owner, between the age and the question.
const OWNER: usize = 6;

/// Returns the code with which a job failed.
async fn code(session: &CommandSession<'_>, job: &Summary) -> CommandResult<Option<Code>> {
    if job.state != StateKind::Failed {
        return Ok(None);
    }
    let job = session.engine.job(&Scope::Owner(job.owner.clone()), &job.id).await?;
    Ok(job.and_then(|job| job.failures.last().map(|failure| failure.code)))
}

fn row(job: &Summary, code: Option<Code>, now: Timestamp, with_owner: bool) -> Vec<ui::Cell> {
    let percent = job.progress.as_ref().and_then(|progress| progress.percent);
    let state = job.state.as_str();
    let state = match (percent.filter(|_| job.state == StateKind::Running), code) {
        (Some(percent), _) => format!("{state} {percent} %"),
        (None, Some(code)) => format!("{state} {code}"),
        (None, None) => state.to_owned(),
    };
    let mut cells = vec![
        ui::Cell::id(&job.id.to_string()),
        ui::Cell::state(state, job.state),
        ui::Cell::plain(&job.workflow),
        ui::Cell::plain(&job.provider),
        ui::Cell::plain(&ui::cost(job.charge.as_ref())),
        ui::Cell::plain(&ui::ago(now.since(job.created_at))),
        ui::Cell::plain(&job.title),
    ];
    if with_owner {
        cells.insert(OWNER, ui::Cell::plain(job.owner.as_str()));
    }
    cells
}

async fn show(session: &CommandSession<'_>, args: JobArgs) -> CommandResult {
    let job = find::job(session, &args.id).await?;
    let now = session.engine.now();
    let scope = Scope::Owner(job.new.owner.clone());
    let steps = session.engine.steps(&scope, &job.id).await?;
    let outputs = match job.new.profile.provider() {
        Profile::RESEARCHER => {
            session.engine.step_outputs(&scope, &job.id, &ResearchRecord::KINDS).await?
        }
        _ => Vec::new(),
    };
    let details = ResearchDetails::new(&steps, outputs);
    if args.json {
        let mut shown = json::job(&job, now);
        shown["runs"] = json::runs(&list_paid_runs(session, &job).await?);
        shown["steps"] = json::steps(&StepTotals::sum(&steps));
        shown["research"] = json::research(&details);
        ui::json(&shown);
    } else {
        let retries = retry::retries_of(session, &job).await?;
        let waits = read(session, &job.id).await?.and_then(|reading| reading.waits);
        let runs = list_paid_runs(session, &job).await?;
        let steps = (StepTotals::sum(&steps), details);
        show::job(&job, waits, now, &retries, &runs, &steps);
    }
    DONE
}

async fn list_paid_runs(session: &CommandSession<'_>, job: &Job) -> CommandResult<Vec<PaidRun>> {
    let rows = session.engine.ledger_rows(&Scope::Owner(job.new.owner.clone()), &job.id).await?;
    Ok(PaidRun::all(job, &rows))
}

async fn cancel(session: &CommandSession<'_>, args: JobArgs) -> CommandResult {
    let engine = &session.engine;
    let job = find::job(session, &args.id).await?;
    let Some(cancelled) = engine.cancel(&session.own(), &job.id).await? else {
        return Err(anyhow::anyhow!("job {} was removed", job.id).into());
    };
    let (job, was_ended) = match cancelled {
        CancelOutcome::Now(job) => (after_stop(session, job).await?, false),
        CancelOutcome::Already(job) => (job, true),
    };
    if was_ended && job.state.kind() != StateKind::Cancelled {
        let state = job.state.kind().as_str();
        let why = format!("job {} has ended already: {state}", job.id);
        return Err(CommandError::failed(why, "`outlast jobs show` has its result"));
    }
    if args.json {
        ui::json(&json::job(&job, engine.now()));
    } else {
        ui::outcome(&job.id.to_string(), job.state.kind(), "");
    }
    if was_ended {
        ui::remark("It was cancelled before.");
    }
    if let Some(told) = job.stop_text() {
        ui::remark(&told);
    }
    let is_wrapped = job.new.profile.provider() == Profile::WRAP;
    if matches!(job.state, JobState::Cancelled { remote: RemoteStop::Owed, .. })
        && !is_wrapped
        && !engine.has_worker(&job.new.profile).await?
    {
        ui::remark("No worker is there to tell it: `outlast worker --until-idle` does so.");
    }
    DONE
}

/// Returns a cancelled call of a wrapped server after its host process has recorded the server's reaction.
async fn after_stop(session: &CommandSession<'_>, mut job: Job) -> CommandResult<Job> {
    let is_stopping =
        |job: &Job| matches!(job.state, JobState::Cancelled { remote: RemoteStop::Owed, .. });
    let limit = Instant::now() + STOP_WAIT;
    while job.new.profile.provider() == Profile::WRAP && is_stopping(&job) {
        if Instant::now() >= limit {
            break;
        }
        tokio::time::sleep(STOP_LOOK).await;
        let Some(now) = session.engine.job(&session.own(), &job.id).await? else { break };
        job = now;
    }
    Ok(job)
}

async fn prune(session: &CommandSession<'_>, args: PruneArgs) -> CommandResult {
    let engine = &session.engine;
    let prune = match args.older_than {
        Some(age) => Prune::EndedBefore(engine.now().before(age)),
        None => Prune::Expired,
    };
    let pruned = engine.prune(&own_or_all(session, args.all), &prune).await?;
    if args.json {
        ui::json(&serde_json::json!({ "removed": pruned.jobs }));
        return DONE;
    }
    ui::line(&pruned.jobs.to_string());
    ui::remark(if pruned.jobs == 1 { "job removed" } else { "jobs removed" });
    DONE
}
