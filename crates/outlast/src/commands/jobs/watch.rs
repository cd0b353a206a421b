//! `outlast jobs watch`: a row for each job that moves until all of them have ended.

use std::process::ExitCode;

use outlast_core::{Job, JobId, JobState, Query, Scope, StateKind};
use outlast_engine::{Engine, PollError, Reading, Stop, Waits};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::{find, json, own, show};
use crate::cli::WatchArgs;
use crate::commands::left_behind::short_id;
use crate::commands::research::INTERRUPTED;
use crate::commands::signals::stop_on_signals;
use crate::config::Config;
use crate::failed::Failed;
use crate::ui::{self, Mark, Rows};

/// How many unfinished jobs are watched when none is named.
const MOST: u32 = 20;

pub(super) async fn run(
    engine: &Engine,
    config: &Config,
    args: WatchArgs,
    stop: &Stop,
) -> Result<ExitCode, Failed> {
    let scope = own(config);
    let jobs = named(engine, &scope, &args.ids).await?;
    if jobs.is_empty() {
        ui::remark("No unfinished jobs.");
        return Ok(ExitCode::SUCCESS);
    }
    tokio::spawn(stop_on_signals(stop.clone())?);
    let jobs = followed(engine, &scope, jobs).await?;
    if jobs.iter().any(|job| !job.state.kind().is_terminal()) {
        ui::mark(Mark::Step, "left; the jobs go on");
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
) -> Result<Vec<Job>, Failed> {
    let mut jobs: Vec<Job> = Vec::new();
    if ids.is_empty() {
        let states = vec![StateKind::Queued, StateKind::Running];
        let query = Query { states, limit: MOST, ..Query::default() };
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
    let attempt = job.failures.len() + 1;
    let tries = if attempt > 1 { format!(" (attempt {attempt})") } else { String::new() };
    match (&job.state, reading.waits) {
        (JobState::Queued { .. }, Some(Waits::Until(at))) => {
            let wait = ui::ago(at.since(reading.now));
            (None, format!("attempt {attempt} in {wait}, after {}", show::why(job)))
        }
        (JobState::Queued { .. }, _) => (None, format!("waiting for a worker{tries}")),
        (JobState::Running { .. }, _) => {
            let doing = job.progress.as_ref().map_or("working", |progress| &progress.message);
            (percent, format!("{doing}{tries}"))
        }
        (JobState::Succeeded { .. }, _) => (Some(100), "succeeded".to_owned()),
        (JobState::Failed { .. }, _) => (percent, format!("failed: {}", show::why(job))),
        (JobState::Cancelled { .. }, _) => (percent, "cancelled".to_owned()),
    }
}

/// The jobs as they ended, or as they stand when the person leaves.
async fn followed(engine: &Engine, scope: &Scope, jobs: Vec<Job>) -> Result<Vec<Job>, Failed> {
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
            ui::remark("No live worker fits; `outlast worker --until-idle` would begin.");
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
