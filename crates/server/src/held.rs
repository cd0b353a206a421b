//! A held research call from its start to its answer. It waits for the job, records that a call was answered, and says of
//! an outcome that was told before that it is one. Tools of workflows have rules of their own (`tools/jobs/held.rs`).

use std::time::Duration;

use outlast_core::rules::Replay;
use outlast_core::{Job, JobState, StateKind, Timestamp};
use outlast_engine::{Engine, Started};
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::json;

use crate::caller::Caller;
use crate::reply::{Refusal, RefusalCode};
use crate::wait;

/// How a caller asks anew while the outcome of the same call is told again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AskAnew {
    /// With a new key: this call has one of its own, and the same key is the same job.
    WithAnotherKey,
    /// With a key, which the tool takes; this call has none.
    WithAKey,
    /// Later or in other words: the tool takes no key.
    LaterOrInOtherWords,
}

/// What a held call comes to.
pub(crate) enum Waited {
    /// The outcome of its job.
    Answer(Result<CallToolResult, Refusal>),
    /// The wait ended first: the job as it stands.
    Unfinished(Box<Job>),
}

/// Waits for the job of a held call, at most `budget` if there is one, and answers with what came of it.
pub(crate) async fn answer(
    engine: &Engine,
    caller: &mut Caller,
    started: Started,
    budget: Option<Duration>,
    ask_anew: AskAnew,
    outcome: impl FnOnce(&Job) -> Option<Result<CallToolResult, Refusal>>,
) -> Result<Waited, Refusal> {
    let Started { mut job, replay, existed } = started;
    if !job.state.kind().is_terminal() {
        if existed {
            refuse_foreign_settings(engine, caller, &job).await?;
        }
        let reading = wait::for_job(engine, caller, &job.id, budget).await?;
        job = reading.ok_or_else(removed)?.job;
    }
    if job.state.kind().is_terminal() && replay.is_none() {
        // Before the answer goes out: the same call may follow it at once. If this cannot be stored, the outcome is
        // told once more than need be.
        if let Err(error) = engine.record_answer(&job.id).await {
            tracing::warn!(job.id = %job.id, %error, "not recorded that a call was answered");
        }
    }
    let Some(mut outcome) = outcome(&job) else { return Ok(Waited::Unfinished(Box::new(job))) };
    if job.needs_consent() {
        outcome = outcome.map_err(|refusal| refusal.without_retry(instead_of_again(ask_anew)));
    }
    Ok(Waited::Answer(match (replay, outcome) {
        (Some(replay), outcome) => {
            let sentence = sentence(&job, replay, ask_anew, engine.now());
            Ok(marked(outcome.unwrap_or_else(Refusal::into_result), sentence))
        }
        (None, Err(refusal)) if takes_its_run_up(&job, ask_anew) => Err(refusal.or_call_again()),
        (None, outcome) => outcome,
    }))
}

fn instead_of_again(ask_anew: AskAnew) -> &'static str {
    match ask_anew {
        AskAnew::WithAnotherKey => "the same key is told this; a new `idempotency_key` begins anew",
        AskAnew::WithAKey => {
            "the same call is told this for 30 minutes and sends nothing; a new `idempotency_key` begins anew"
        }
        AskAnew::LaterOrInOtherWords => {
            "the same call is told this for 30 minutes and sends nothing; other words begin anew"
        }
    }
}

/// Whether the same call made again goes on with the run this one left (`outlast_core::rules::run_taken_up`), and that may
/// end better by itself: an answer that is too large stays so, a wrong key too.
fn takes_its_run_up(job: &Job, ask_anew: AskAnew) -> bool {
    ask_anew != AskAnew::WithAnotherKey
        && job.run_left().is_some()
        && job.failures.last().is_some_and(|failure| failure.code.is_retryable())
}

/// The answer with a further block and a mark that say that it is a repeated one.
fn marked(mut answer: CallToolResult, sentence: String) -> CallToolResult {
    answer.content.push(ContentBlock::text(sentence));
    let meta = answer.meta.get_or_insert_default();
    meta.0.insert("outlast/replayed".to_owned(), json!(true));
    answer
}

fn sentence(job: &Job, replay: Replay, ask_anew: AskAnew, now: Timestamp) -> String {
    let age = age(now.since(replay.ended_at));
    let what = match &job.state {
        JobState::Succeeded { .. } => "the stored answer to the same call, from",
        JobState::Queued { .. }
        | JobState::Running { .. }
        | JobState::Failed { .. }
        | JobState::Cancelled { .. } => "how the same call ended before,",
    };
    let how = match ask_anew {
        AskAnew::WithAnotherKey | AskAnew::WithAKey => "give a new `idempotency_key`".to_owned(),
        AskAnew::LaterOrInOtherWords => {
            format!("ask again after {}, or change the wording", replay.until)
        }
    };
    let retry = if job.needs_consent() {
        format!("; or `outlast jobs retry {} --again`, where the server runs", job.id)
    } else {
        String::new()
    };
    format!(
        "This is {what} {age} ago; nothing was sent or paid for again. To ask anew: {how}{retry}."
    )
}

fn age(age: Duration) -> String {
    match age.as_secs() {
        seconds @ ..60 => format!("{seconds} s"),
        seconds @ ..3600 => format!("{} min", seconds / 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Refuses to wait for a job that was asked with other settings, if no process that has them is known to live: a caller
/// would wait for ever, and to ask again with these settings could pay a second time.
async fn refuse_foreign_settings(
    engine: &Engine,
    caller: &Caller,
    job: &Job,
) -> Result<(), Refusal> {
    let profile = &job.new.profile;
    if engine.has_provider(profile) || engine.has_worker(profile).await? {
        return Ok(());
    }
    // Read again: a job whose process has died was just put back.
    let job = engine.job(&caller.scope(), &job.id).await?;
    match job {
        Some(job) if job.state.kind() == StateKind::Queued => Err(Refusal::because(
            RefusalCode::Configuration,
            format!(
                "the same call was made with another provider or key, and its job {} waits for a server that has \
                 them; start one, or end the job with `outlast jobs cancel {}` and call again",
                job.id, job.id
            ),
        )),
        Some(_) | None => Ok(()),
    }
}

fn removed() -> Refusal {
    Refusal::validation("the call was removed from the store while it ran; make it again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_told_in_the_unit_a_person_would_use() {
        let cases =
            [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3599, "59 min"), (7260, "2 h 1 min")];
        for (seconds, told) in cases {
            assert_eq!(age(Duration::from_secs(seconds)), told);
        }
    }
}
