//! The only wait of this server: for the end of a job, with progress for callers that want it. A caller that gives up ends
//! the wait, but never the job; only `cancel` ends a job. Ids of other owners, expired ids and invented ids are all unknown.

use std::time::Duration;

use outlast_core::{CancelOutcome, Job, JobId};
use outlast_engine::{Engine, JobSnapshot, PollError};

use crate::caller::{Caller, Reporter};
use crate::questions::{AskedQuestion, Dialog, QuestionChannel, Reaction, StatedQuestion, may_ask};
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

/// The effect of a question of the job on a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnQuestion {
    /// The job asks nothing.
    Nothing,
    /// The user is asked, if the client can ask.
    AskUser,
    /// The same; the wait ends if the client cannot ask.
    AskUserOrEnd,
}

/// Waits for the end of the job, at most `budget` if given, and reads the job; `None` if the caller has no such job.
///
/// Ends early, with the current state of the job, when the server stops, and when the job has a question that is the answer
/// to the call ([`Caller::asked`]).
pub(crate) async fn for_job(
    engine: &Engine,
    caller: &mut Caller,
    id: &JobId,
    budget: Option<Duration>,
    whose: IdOrigin,
    on_question: OnQuestion,
) -> Result<Option<JobSnapshot>, PollError> {
    caller.waits();
    let (began, scope) = (engine.now(), caller.scope());
    let budget = budget.unwrap_or(FOR_EVER);
    let may_ask = match on_question {
        OnQuestion::Nothing => false,
        OnQuestion::AskUser if caller.channel.is_none() => false,
        OnQuestion::AskUser => engine.job(&scope, id).await?.as_ref().is_some_and(may_ask),
        OnQuestion::AskUserOrEnd => true,
    };
    let reading = if may_ask || caller.progress.is_some() {
        follow(engine, caller, id, budget, on_question).await?
    } else {
        // Only the end matters, and it is read once for all that wait for it.
        match whose {
            IdOrigin::JustMade => engine.poll_own(&scope, id, budget).await?,
            IdOrigin::Any => engine.poll(&scope, id, budget).await?,
        }
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
) -> Result<Option<JobSnapshot>, Refusal> {
    let Ok(id) = id.parse::<JobId>() else { return Ok(None) };
    if budget.is_zero() {
        return Ok(engine.read(&caller.scope(), &id).await?);
    }
    let (origin, on_question) = (IdOrigin::Any, OnQuestion::AskUser);
    Ok(for_job(engine, caller, &id, Some(budget), origin, on_question).await?)
}

/// Cancels the job and reads it; a job that has ended keeps its outcome. `None` if the caller has no such job.
pub(crate) async fn cancel(
    engine: &Engine,
    caller: &Caller,
    id: &str,
) -> Result<Option<JobSnapshot>, Refusal> {
    let Ok(id) = id.parse::<JobId>() else { return Ok(None) };
    let cancelled = engine.cancel(&caller.scope(), &id).await?;
    let now = engine.now();
    Ok(cancelled.map(|(CancelOutcome::Now(job) | CancelOutcome::Already(job))| JobSnapshot {
        job,
        now,
        waits: None,
    }))
}

/// Waits while progress is reported and questions are put to the user.
async fn follow(
    engine: &Engine,
    caller: &mut Caller,
    id: &JobId,
    budget: Duration,
    on_question: OnQuestion,
) -> Result<Option<JobSnapshot>, PollError> {
    let scope = caller.scope();
    let Some((mut reading, mut watch)) = engine.watch(&scope, id).await? else { return Ok(None) };
    let mut dialog = Dialog::new(engine, caller, *id);
    let mut over = std::pin::pin!(tokio::time::sleep(budget));
    while !reading.job.state.kind().is_terminal() {
        if let Some(reporter) = &mut caller.progress {
            note(reporter, &reading);
        }
        if ends_with_question(caller, &reading.job, on_question) {
            break;
        }
        dialog.follow(&reading.job).await;
        tokio::select! {
            changed = watch.next_change() => match changed? {
                Some(changed) => reading = changed,
                None => return Ok(None),
            },
            () = due(caller.progress.as_ref()) => {
                if reading.waits.is_some() && let Some(now) = engine.read(&scope, id).await? {
                    // A worker may have started or exited since, which changes no job.
                    reading = now;
                }
                if let Some(reporter) = &mut caller.progress {
                    note(reporter, &reading);
                    reporter.send().await;
                }
            }
            reaction = dialog.response() => match reaction {
                Reaction::NotShown => caller.channel = None,
                reaction => dialog.record(reaction).await,
            },
            () = &mut over => break,
            () = engine.begin_leaving() => break,
        }
    }
    Ok(Some(reading))
}

/// Returns true if the open question of the job ends the wait: it is the answer to the call, or the client cannot ask it.
fn ends_with_question(caller: &mut Caller, job: &Job, on_question: OnQuestion) -> bool {
    let Some(question) = job.open_question().filter(|_| on_question != OnQuestion::Nothing) else {
        return false;
    };
    match &caller.channel {
        None => on_question == OnQuestion::AskUserOrEnd,
        Some(QuestionChannel::Request { .. }) => false,
        // A call that is not repeated with its state cannot be answered with a question.
        Some(QuestionChannel::Answer) if caller.binding.is_none() => {
            on_question == OnQuestion::AskUserOrEnd
        }
        Some(QuestionChannel::Answer) => {
            let has_reacted = |stated: &StatedQuestion| {
                !stated.asks_again && stated.job == job.id && stated.question == question.id
            };
            if caller.resumed.as_ref().is_some_and(has_reacted) {
                return false;
            }
            caller.asked = Some(AskedQuestion { job: job.id, question: question.clone() });
            true
        }
    }
}

async fn due(reporter: Option<&Reporter>) {
    match reporter {
        Some(reporter) => reporter.due().await,
        None => std::future::pending().await,
    }
}

fn note(reporter: &mut Reporter, reading: &JobSnapshot) {
    let standing = reading.read_standing();
    reporter.note(reading.job.id, standing.percent(), &printable(&standing.words()));
}
