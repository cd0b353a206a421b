//! Follows jobs: every change is shown, until all of them have ended or the person leaves. Every command that waits for
//! jobs uses it.

use std::pin::pin;
use std::time::Duration;

use outlast_core::{Job, JobState, Scope, StateKind, Waits};
use outlast_engine::{Engine, JobSnapshot};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::job_view::outcome;
use crate::error::CommandResult;
use crate::ui::Bars;

/// The maximum delay before a due attempt begins.
const CARRY_AGAIN: Duration = Duration::from_millis(250);

/// The processes that work on the jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CarriedBy {
    /// Workers that claim them from the queue.
    Workers,
    /// This process, regardless of other workers.
    ThisProcess,
}

/// Follows one job with a progress bar. Returns the job after its end, or in its state when the person leaves.
pub(super) async fn with_bar(engine: &Engine, job: Job, by: CarriedBy) -> CommandResult<Job> {
    let mut bar = Bars::one();
    let mut show = |_, reading: &JobSnapshot| {
        if !reading.job.state.kind().is_terminal() {
            let (percent, words) = describe_standing(reading);
            bar.show(0, percent, &words);
        }
    };
    let mut jobs = follow(engine, vec![job.clone()], by, &mut show).await?;
    Ok(jobs.pop().unwrap_or(job))
}

/// Follows jobs, and shows each change with the job's place in the list. Fails if one of them is removed meanwhile.
pub(super) async fn follow(
    engine: &Engine,
    mut jobs: Vec<Job>,
    carried_by: CarriedBy,
    show: &mut dyn FnMut(usize, &JobSnapshot),
) -> CommandResult<Vec<Job>> {
    let carries = carried_by == CarriedBy::ThisProcess;
    let (sender, mut readings) = mpsc::channel(jobs.len().max(1));
    let mut watches = JoinSet::new();
    for (row, job) in jobs.iter().enumerate() {
        watches.spawn(watch(engine.clone(), job.clone(), row, sender.clone()));
    }
    drop(sender);
    let mut tick = tokio::time::interval(CARRY_AGAIN);
    let mut looking = pin!(engine.keep_finding_dead_workers());
    loop {
        let (row, mut reading) = tokio::select! {
            reading = readings.recv() => match reading {
                Some(reading) => reading,
                None => break,
            },
            _ = tick.tick(), if carries => {
                let now = engine.now();
                let is_due = |job: &&Job| matches!(job.state, JobState::Queued { run_at } if run_at <= now);
                jobs.iter().filter(is_due).for_each(|job| engine.carry(&job.id));
                continue;
            }
            () = &mut looking, if !carries => continue,
            () = engine.begin_leaving() => break,
        };
        if carries {
            reading.waits = match reading.job.state {
                JobState::Queued { run_at } if run_at > reading.now => Some(Waits::Until(run_at)),
                _ => None,
            };
        }
        show(row, &reading);
        if let Some(job) = jobs.get_mut(row) {
            *job = reading.job;
        }
    }
    watches.abort_all();
    while let Some(ended) = watches.join_next().await {
        if let Ok(Err(error)) = ended {
            return Err(error);
        }
    }
    Ok(jobs)
}

/// Returns the state of a job for a progress bar: the percentage, if it is known, and words.
pub(super) fn describe_standing(reading: &JobSnapshot) -> (Option<u64>, String) {
    let standing = reading.read_standing();
    match reading.job.state.kind() {
        StateKind::Queued | StateKind::Running | StateKind::Waiting => {
            (standing.percent().map(u64::from), standing.words())
        }
        StateKind::Failed => (None, format!("failed: {}", outcome::why(&reading.job))),
        ended @ (StateKind::Succeeded | StateKind::Cancelled) => {
            ((ended == StateKind::Succeeded).then_some(100), ended.as_str().to_owned())
        }
    }
}

/// Sends every change of a job until it has ended.
async fn watch(
    engine: Engine,
    job: Job,
    row: usize,
    sender: mpsc::Sender<(usize, JobSnapshot)>,
) -> CommandResult<()> {
    let scope = Scope::Owner(job.new.owner.clone());
    let removed = || anyhow::anyhow!("job {} was removed while it was waited for", job.id);
    let (mut reading, mut watch) = engine.watch(&scope, &job.id).await?.ok_or_else(removed)?;
    loop {
        let has_ended = reading.job.state.kind().is_terminal();
        if sender.send((row, reading)).await.is_err() || has_ended {
            return Ok(());
        }
        reading = watch.next_change().await?.ok_or_else(removed)?;
    }
}
