//! Asking after a job and cancelling it, by the id that a caller gave. Foreign, expired and made-up ids are all unknown.

use std::time::Duration;

use outlast_core::{Cancelled, JobId};
use outlast_engine::{Engine, Reading};

use crate::caller::Caller;
use crate::reply::Refusal;
use crate::wait;

/// Waits for the job's end, at most `budget`, and reads it; `None` when the caller has no such job.
pub(crate) async fn poll(
    engine: &Engine,
    caller: &mut Caller,
    id: &str,
    budget: Duration,
) -> Result<Option<Reading>, Refusal> {
    let Ok(id) = id.parse::<JobId>() else { return Ok(None) };
    if budget.is_zero() {
        return Ok(engine.reading(&caller.scope(), &id).await?);
    }
    Ok(wait::for_job(engine, caller, &id, Some(budget)).await?)
}

/// Cancels the job and reads it; one that has ended keeps its end. `None` when the caller has no such job.
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
