//! The only wait of this server: for the end of a job, with progress for callers that want it. A caller that gives up ends
//! the wait, but never the job; only `cancel` ends a job. Ids of other owners, expired ids and invented ids are all unknown.

use std::time::Duration;

use outlast_core::{Cancelled, JobId, Scope};
use outlast_engine::{Engine, PollError, Reading};

use crate::caller::{Caller, Reporter};
use crate::reply::Refusal;
use crate::text::printable;

/// A duration longer than any job can run.
const FOR_EVER: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// The origin of the caller's job id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdOrigin {
    /// This call created the job.
    JustMade,
    /// Any other origin.
    Any,
}

/// Waits for the end of the job, at most `budget` if given, and reads the job; `None` if the caller has no such job.
///
/// Ends early, with the current state of the job, when the server stops.
pub(crate) async fn for_job(
    engine: &Engine,
    caller: &mut Caller,
    id: &JobId,
    budget: Option<Duration>,
    whose: IdOrigin,
) -> Result<Option<Reading>, PollError> {
    caller.waits();
    let (began, scope) = (engine.now(), caller.scope());
    let budget = budget.unwrap_or(FOR_EVER);
    let reading = match &mut caller.progress {
        Some(reporter) => wait_and_report(engine, &scope, id, budget, reporter).await?,
        // Only the end matters, and it is read once for all that wait for it.
        None => match whose {
            IdOrigin::JustMade => engine.poll_own(&scope, id, budget).await?,
            IdOrigin::Any => engine.poll(&scope, id, budget).await?,
        },
    };
    let ended = reading.as_ref().and_then(|reading| Some((reading.job.ended_at()?, reading.now)));
    if let Some((ended_at, now)) = ended.filter(|(ended_at, _)| *ended_at > began) {
        caller.metrics.woke(now.since(ended_at));
    }
    Ok(reading)
}

/// Waits for the end of the job, at most `budget`, and reads the job; `None` if the caller has no such job.
pub(crate) async fn poll(
    engine: &Engine,
    caller: &mut Caller,
    id: &str,
    budget: Duration,
) -> Result<Option<Reading>, Refusal> {
    let Ok(id) = id.parse::<JobId>() else { return Ok(None) };
    if budget.is_zero() {
        return Ok(engine.read(&caller.scope(), &id).await?);
    }
    Ok(for_job(engine, caller, &id, Some(budget), IdOrigin::Any).await?)
}

/// Cancels the job and reads it; a job that has ended keeps its outcome. `None` if the caller has no such job.
pub(crate) async fn cancel(
    engine: &Engine,
    caller: &Caller,
    id: &str,
) -> Result<Option<Reading>, Refusal> {
    let Ok(id) = id.parse::<JobId>() else { return Ok(None) };
    let cancelled = engine.cancel(&caller.scope(), &id).await?;
    let now = engine.now();
    Ok(cancelled.map(|(Cancelled::Now(job) | Cancelled::Already(job))| Reading {
        job,
        now,
        waits: None,
    }))
}

async fn wait_and_report(
    engine: &Engine,
    scope: &Scope,
    id: &JobId,
    budget: Duration,
    reporter: &mut Reporter,
) -> Result<Option<Reading>, PollError> {
    let Some((mut reading, mut watch)) = engine.watch(scope, id).await? else { return Ok(None) };
    let mut over = std::pin::pin!(tokio::time::sleep(budget));
    while !reading.job.state.kind().is_terminal() {
        note(reporter, &reading);
        tokio::select! {
            changed = watch.next_change() => match changed? {
                Some(changed) => reading = changed,
                None => return Ok(None),
            },
            () = reporter.due() => {
                if reading.waits.is_some() && let Some(now) = engine.read(scope, id).await? {
                    // A worker may have started or exited since, which changes no job.
                    note(reporter, &now);
                }
                reporter.send().await;
            }
            () = &mut over => break,
            () = engine.begin_leaving() => break,
        }
    }
    Ok(Some(reading))
}

fn note(reporter: &mut Reporter, reading: &Reading) {
    let standing = reading.read_standing();
    reporter.note(reading.job.id, standing.percent(), &printable(&standing.words()));
}
