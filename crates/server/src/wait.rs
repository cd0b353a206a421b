//! A held call: waits for a job and tells its caller how it comes on. Whoever hangs up ends the wait, never the job.

use std::time::Duration;

use outlast_core::JobId;
use outlast_engine::{Engine, PollError, Reading};

use crate::caller::{Caller, Reporter};
use crate::text::printable;

/// Longer than any job lives.
const FOR_EVER: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// Waits for the job's end, at most `budget` if there is one, and reads it; `None` when the caller has no such job.
///
/// Ends early, with the job as it stands, when the server leaves.
pub(crate) async fn for_job(
    engine: &Engine,
    caller: &mut Caller,
    id: &JobId,
    budget: Option<Duration>,
) -> Result<Option<Reading>, PollError> {
    caller.waits();
    let began = engine.now();
    let reading = waited(engine, caller, id, budget).await?;
    let ended = reading.as_ref().and_then(|reading| Some((reading.job.ended_at()?, reading.now)));
    if let Some((ended_at, now)) = ended.filter(|(ended_at, _)| *ended_at > began) {
        caller.metrics.woke(now.since(ended_at));
    }
    Ok(reading)
}

async fn waited(
    engine: &Engine,
    caller: &mut Caller,
    id: &JobId,
    budget: Option<Duration>,
) -> Result<Option<Reading>, PollError> {
    let scope = caller.scope();
    if caller.progress.is_none() {
        // Nobody to tell: only the end matters, and is read once for all who wait for it.
        return engine.poll(&scope, id, budget.unwrap_or(FOR_EVER)).await;
    }
    let Some((mut reading, mut watch)) = engine.watch(&scope, id).await? else { return Ok(None) };
    let over = async {
        match budget {
            Some(budget) => tokio::time::sleep(budget).await,
            None => std::future::pending().await,
        }
    };
    let mut over = std::pin::pin!(over);
    while !reading.job.state.kind().is_terminal() {
        if let Some(reporter) = &mut caller.progress {
            note(reporter, &reading);
        }
        tokio::select! {
            changed = watch.changed() => match changed? {
                Some(changed) => reading = changed,
                None => return Ok(None),
            },
            () = due(caller.progress.as_ref()) => {
                if let Some(reporter) = &mut caller.progress {
                    if reading.waits.is_some()
                        && let Some(now) = engine.reading(&scope, id).await?
                    {
                        // A worker may have come or gone since, which changes no job.
                        note(reporter, &now);
                    }
                    reporter.send().await;
                }
            }
            () = &mut over => break,
            () = engine.leaving() => break,
        }
    }
    Ok(Some(reading))
}

fn note(reporter: &mut Reporter, reading: &Reading) {
    reporter.about(reading.job.id);
    let standing = reading.standing();
    reporter.note(standing.percent().map(f64::from), &printable(&standing.words()));
}

/// Waits until the caller should be told something; for ever when they want nothing.
pub(crate) async fn due(reporter: Option<&Reporter>) {
    match reporter {
        Some(reporter) => reporter.due().await,
        None => std::future::pending().await,
    }
}
