//! `outlast jobs watch`: a live row for each job until all of them have ended; and `outlast jobs wait`.

use std::process::ExitCode;
use std::time::Duration;

use outlast_core::{Job, JobQuery, StateKind, Waits};
use outlast_engine::{Engine, JobSnapshot};

use super::find;
use crate::cli::{WaitArgs, WatchArgs};
use crate::commands::engine::CommandSession;
use crate::commands::follow::{CarriedBy, describe_standing, follow};
use crate::commands::job_view::{json, outcome};
use crate::commands::left_worker::short_id;
use crate::commands::signals::{INTERRUPTED, stop_on_signals};
use crate::error::{CommandResult, DONE, TIMED_OUT};
use crate::ui::{self, Bars, LineMark};

/// The number of unfinished jobs that are watched if none is named.
const MAX_WATCHED: u32 = 20;

pub(super) async fn run(session: &CommandSession<'_>, args: WatchArgs) -> CommandResult {
    let CommandSession { engine, stop, .. } = session;
    let jobs = find_named(session, &args.ids).await?;
    if jobs.is_empty() {
        ui::remark("No unfinished jobs.");
        return DONE;
    }
    outlast_engine::spawn(stop_on_signals(stop.clone())?);
    let jobs = follow_jobs(engine, jobs).await?;
    if jobs.iter().any(|job| !job.state.kind().is_terminal()) {
        ui::mark(LineMark::Step, &format!("left; {}", what_goes_on(session, &jobs).await?));
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let code = outcome::print(&jobs, engine, args.json);
    if !args.json {
        ui::aside("`outlast jobs show ID` has the report, or what went wrong");
    }
    Ok(code)
}

/// `outlast jobs wait`: for scripts and for agents in the background. Prints a line for each job when it ends.
pub(super) async fn wait(session: &CommandSession<'_>, args: WaitArgs) -> CommandResult {
    let CommandSession { engine, stop, .. } = session;
    let mut jobs = find_named(session, &args.ids).await?;
    outlast_engine::spawn(stop_on_signals(stop.clone())?);
    let followed = jobs.clone();
    let print = |job: &Job| {
        if job.state.kind().is_terminal() && !args.json {
            outcome::end(job);
        }
    };
    jobs.iter().for_each(print);
    let mut keep = |row: usize, reading: &JobSnapshot| {
        if !jobs[row].state.kind().is_terminal() {
            jobs[row].clone_from(&reading.job);
            print(&reading.job);
        }
    };
    let followed = follow(engine, followed, CarriedBy::Workers, &mut keep);
    // Without a limit it waits indefinitely.
    let limit = args.timeout.unwrap_or(Duration::MAX);
    if let Ok(followed) = tokio::time::timeout(limit, followed).await {
        followed?;
    }
    if args.json {
        ui::json(&json::jobs(&jobs, engine.now()));
    }
    if jobs.iter().all(|job| job.state.kind().is_terminal()) {
        return Ok(outcome::exit_code(&jobs));
    }
    let goes_on = what_goes_on(session, &jobs).await?;
    if stop.is_asked() {
        ui::remark(&format!("left; {goes_on}"));
        return Ok(ExitCode::from(INTERRUPTED));
    }
    ui::remark(&goes_on);
    Ok(ExitCode::from(TIMED_OUT))
}

/// Returns the jobs with these ids, each once; all unfinished ones if none is given.
pub(super) async fn find_named(
    session: &CommandSession<'_>,
    ids: &[String],
) -> CommandResult<Vec<Job>> {
    let (engine, scope) = (&session.engine, session.own());
    let mut jobs: Vec<Job> = Vec::new();
    if ids.is_empty() {
        let states = StateKind::UNFINISHED.to_vec();
        let query = JobQuery { states, limit: MAX_WATCHED, ..JobQuery::default() };
        for found in engine.list(&scope, &query).await?.jobs {
            jobs.extend(engine.job(&scope, &found.id).await?);
        }
    }
    for id in ids {
        let job = find::job(session, id).await?;
        if jobs.iter().all(|known| known.id != job.id) {
            jobs.push(job);
        }
    }
    Ok(jobs)
}

/// Returns what will happen to the unfinished jobs among these when this command exits (P4).
pub(super) async fn what_goes_on(
    session: &CommandSession<'_>,
    jobs: &[Job],
) -> CommandResult<String> {
    // A job whose worker has died waits for another one, whatever its row says.
    session.engine.find_dead_workers().await;
    let (mut unfinished, mut waiting) = (0, Vec::new());
    for job in jobs.iter().filter(|job| !job.state.kind().is_terminal()) {
        let Some(reading) = super::read(session, &job.id).await? else { continue };
        if !reading.job.state.kind().is_terminal() {
            unfinished += 1;
        }
        if reading.waits == Some(Waits::ForAWorker) {
            waiting.push(reading.read_standing().words());
        }
    }
    let are = |jobs: usize| ui::count(jobs, "job is", "jobs are");
    let goes = |jobs: usize| if jobs == 1 { "it goes on" } else { "they go on" };
    Ok(match (unfinished, waiting.first()) {
        (0, _) => "no job is unfinished any more".to_owned(),
        (all, None) => format!("{} unfinished; {}", are(all), goes(all)),
        (all, Some(why)) => {
            let idle = waiting.len();
            let them = if idle == all { String::new() } else { format!(", {} of them wait", idle) };
            format!("{} unfinished{them}. {why}", are(all))
        }
    })
}

/// Returns the jobs after their end, or in their state when the person leaves.
async fn follow_jobs(engine: &Engine, jobs: Vec<Job>) -> CommandResult<Vec<Job>> {
    let named = jobs.iter().map(|job| (short_id(job), job.elapsed(engine.now())));
    ui::captions(jobs.iter().map(|job| (short_id(job), job.new.title.as_str())));
    let mut rows = Bars::start(named);
    let mut warned = false;
    follow(engine, jobs, CarriedBy::Workers, &mut |row, reading| {
        let (percent, message) = describe_standing(reading);
        rows.show(row, percent, &message);
        if reading.job.state.kind().is_terminal() {
            rows.rest(row);
        }
        if reading.waits == Some(Waits::ForAWorker) && !warned {
            warned = true;
            rows.remark(&format!("{message}."));
        }
    })
    .await
}
