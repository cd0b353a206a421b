//! `outlast jobs watch`: a row for each job that moves until all of them have ended.

use std::process::ExitCode;

use outlast_core::{Job, JobId, JobQuery, JobState, Scope, StateKind, Waits};
use outlast_engine::{Engine, PollError, Reading, Shutdown};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::{find, json, own, show};
use crate::cli::WatchArgs;
use crate::commands::detached_worker::short_id;
use crate::commands::research::INTERRUPTED;
use crate::commands::signals::stop_on_signals;
use crate::config::Config;
use crate::error::CommandError;
use crate::ui::{self, Mark, Rows};

/// How many unfinished jobs are watched when none is named.
const MOST: u32 = 20;

pub(super) async fn run(
    engine: &Engine,
    config: &Config,
    args: WatchArgs,
    stop: &Shutdown,
) -> Result<ExitCode, CommandError> {
    let scope = own(config);
    let jobs = named(engine, &scope, &args.ids).await?;
    if jobs.is_empty() {
        ui::remark("No unfinished jobs.");
        return Ok(ExitCode::SUCCESS);
    }
    tokio::spawn(stop_on_signals(stop.clone())?);
    let jobs = followed(engine, &scope, jobs).await?;
    if jobs.iter().any(|job| !job.state.kind().is_terminal()) {
        ui::mark(Mark::Step, &format!("left; {}", what_goes_on(engine, &scope, &jobs).await?));
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let code = told(&jobs, engine, args.json);
    if !args.json {
        ui::aside("`outlast jobs show ID` has the report, or what went wrong");
    }
    Ok(code)
}

/// The jobs of these ids, each once; all unfinished ones when none is given.
pub(super) async fn named(
    engine: &Engine,
    scope: &Scope,
    ids: &[String],
) -> Result<Vec<Job>, CommandError> {
    let mut jobs: Vec<Job> = Vec::new();
    if ids.is_empty() {
        let states = vec![StateKind::Queued, StateKind::Running];
        let query = JobQuery { states, limit: MOST, ..JobQuery::default() };
        for found in engine.list(scope, &query).await?.jobs {
            jobs.extend(engine.job(scope, &found.id).await?);
        }
    }
    for id in ids {
        let job = find::job(engine, scope, id).await?;
        if jobs.iter().all(|known| known.id != job.id) {
            jobs.push(job);
        }
    }
    Ok(jobs)
}

/// Prints how jobs have ended; the exit code says whether all did well.
pub(super) fn told(jobs: &[Job], engine: &Engine, as_json: bool) -> ExitCode {
    if as_json {
        ui::line(&json::jobs(jobs, engine.now()));
    } else {
        for job in jobs {
            let words = match job.state.kind() {
                StateKind::Failed => show::why(job),
                StateKind::Succeeded | StateKind::Cancelled => {
                    format!("after {}", ui::took(job.elapsed(engine.now())))
                }
                StateKind::Queued | StateKind::Running => String::new(),
            };
            ui::outcome(&job.id.to_string(), job.state.kind(), &words);
        }
    }
    match jobs.iter().all(|job| job.state.kind() == StateKind::Succeeded) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Where a job stands, for a bar: how far, if that is known, and in words.
pub(in crate::commands) fn standing(reading: &Reading) -> (Option<u64>, String) {
    let job = &reading.job;
    let percent = job.progress.as_ref().and_then(|progress| progress.percent).map(u64::from);
    match &job.state {
        JobState::Queued { .. } => (None, reading.standing().words()),
        JobState::Running { .. } => (percent, reading.standing().words()),
        JobState::Succeeded { .. } => (Some(100), "succeeded".to_owned()),
        JobState::Failed { .. } => (percent, format!("failed: {}", show::why(job))),
        JobState::Cancelled { .. } => (percent, "cancelled".to_owned()),
    }
}

/// What becomes of the unfinished ones among these jobs when this command leaves (P4).
pub(super) async fn what_goes_on(
    engine: &Engine,
    scope: &Scope,
    jobs: &[Job],
) -> Result<String, CommandError> {
    // A job whose worker has died waits for one, whatever its row says.
    engine.find_dead_workers().await;
    let (mut unfinished, mut waiting) = (0, Vec::new());
    for job in jobs.iter().filter(|job| !job.state.kind().is_terminal()) {
        let Some(reading) = engine.reading(scope, &job.id).await? else { continue };
        if !reading.job.state.kind().is_terminal() {
            unfinished += 1;
        }
        if reading.waits == Some(Waits::ForAWorker) {
            waiting.push(reading.standing().words());
        }
    }
    let count = |jobs: usize| if jobs == 1 { "1 job".to_owned() } else { format!("{jobs} jobs") };
    let is = |jobs: usize| if jobs == 1 { "is" } else { "are" };
    let goes = |jobs: usize| if jobs == 1 { "it goes on" } else { "they go on" };
    Ok(match (unfinished, waiting.first()) {
        (0, _) => "no job is unfinished any more".to_owned(),
        (all, None) => format!("{} {} unfinished; {}", count(all), is(all), goes(all)),
        (all, Some(why)) => {
            let idle = waiting.len();
            let them = if idle == all { String::new() } else { format!(", {} of them wait", idle) };
            format!("{} {} unfinished{them}. {why}", count(all), is(all))
        }
    })
}

/// The jobs as they ended, or as they stand when the person leaves.
async fn followed(
    engine: &Engine,
    scope: &Scope,
    jobs: Vec<Job>,
) -> Result<Vec<Job>, CommandError> {
    let named = jobs.iter().map(|job| (short_id(job), job.elapsed(engine.now())));
    ui::captions(jobs.iter().map(|job| (short_id(job), job.new.title.as_str())));
    let mut rows = Rows::start(named);
    let (sender, mut readings) = mpsc::channel(jobs.len().max(1));
    let mut watches = JoinSet::new();
    for (row, job) in jobs.iter().enumerate() {
        let watch = watch(engine.clone(), scope.clone(), job.id, row, sender.clone());
        watches.spawn(watch);
    }
    drop(sender);
    let mut jobs = jobs;
    let mut warned = false;
    loop {
        let (row, reading) = tokio::select! {
            reading = readings.recv() => match reading {
                Some(reading) => reading,
                None => break,
            },
            () = engine.leaving() => break,
        };
        let (percent, message) = standing(&reading);
        rows.show(row, percent, &message);
        if reading.job.state.kind().is_terminal() {
            rows.rest(row);
        }
        if reading.waits == Some(Waits::ForAWorker) && !warned {
            warned = true;
            rows.remark(&format!("{}.", reading.standing().words()));
        }
        if let Some(job) = jobs.get_mut(row) {
            *job = reading.job;
        }
    }
    rows.end();
    watches.abort_all();
    while let Some(ended) = watches.join_next().await {
        if let Ok(Err(error)) = ended {
            return Err(error.into());
        }
    }
    Ok(jobs)
}

/// Sends every change of a job until it has ended.
async fn watch(
    engine: Engine,
    scope: Scope,
    id: JobId,
    row: usize,
    sender: mpsc::Sender<(usize, Reading)>,
) -> Result<(), PollError> {
    let Some((mut reading, mut watch)) = engine.watch(&scope, &id).await? else { return Ok(()) };
    loop {
        let has_ended = reading.job.state.kind().is_terminal();
        if sender.send((row, reading)).await.is_err() || has_ended {
            return Ok(());
        }
        match watch.changed().await? {
            Some(changed) => reading = changed,
            None => return Ok(()),
        }
    }
}
