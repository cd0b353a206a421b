//! A held call, from its job to its answer and receipt, for every tool that answers with the outcome of a job. It starts the
//! job or attaches to the job of an earlier identical call, waits for the end, and marks a repeated answer as a replay.

use std::time::Duration;

use outlast_core::rules::{self, Replay};
use outlast_core::{
    Code, ConversationId, Job, JobId, JobState, Key, NewJob, Scope, StateKind, StoreError,
    Timestamp, Visibility,
};
use outlast_engine::{Engine, StartOutcome};
use outlast_mirror::StatusWord;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::json;
use tokio::time::Instant;

use crate::caller::Caller;
use crate::questions;
use crate::receipt::Receipt;
use crate::reply::{CallResult, Refusal, RefusalCode, ToolResult};
use crate::tool_names::research::HISTORY;
use crate::wait::{self, IdOrigin, OnQuestion};

/// The interval at which a call that attached to another process's job checks that this process is still running.
const LOOK_AFTER: Duration = Duration::from_secs(2);

/// The metadata field that marks an answer as a replay.
pub(crate) const REPLAYED: &str = "outlast/replayed";

/// A call whose answer is the outcome of a job.
pub(crate) struct HeldCall {
    pub(crate) job: NewJob,
    /// The key that the caller passed.
    pub(crate) key: Option<Key>,
    /// The key derived from the call: identical calls without a caller's key share one job.
    pub(crate) call_key: Key,
    pub(crate) answer_with: AnswerWith,
    pub(crate) told_again: ToldAgain,
}

/// The kind of answer of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerWith {
    /// A task; the outcome, if the call attaches to a job that has ended.
    Task,
    /// The current state of the job, without waiting. Attaches only by the caller's key.
    JobAtOnce,
    /// The outcome; the wait has this limit, if any.
    Outcome { within: Option<Duration> },
}

/// Returns the visibility and the answer of a call that ends with its job: a task if the caller accepts tasks, otherwise the
/// outcome.
pub(crate) fn until_its_end(takes_tasks: bool) -> (Visibility, AnswerWith) {
    match takes_tasks {
        true => (Visibility::Task, AnswerWith::Task),
        false => (Visibility::Unpromised, AnswerWith::Outcome { within: None }),
    }
}

/// The time for which a repeated call returns the same outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToldAgain {
    /// Research: for a while after the end, even if an earlier call was answered. The answer explains how to start over.
    ForAWhile(AskAnew),
    /// A workflow: until one caller has received the answer, because a workflow may be run twice on purpose.
    UntilReceived,
}

/// The way to start over while a repeated call still returns the same outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AskAnew {
    /// With a new key: this call has a key, and the same key is the same job.
    WithAnotherKey,
    /// With a key or with `fresh`. The tool accepts both; this call has neither.
    WithAKey,
    /// By repeating the call: it has `fresh`.
    ByFreshCall,
    /// Later or in other words: the tool accepts no key.
    LaterOrInOtherWords,
}

/// The result of a held call.
pub(crate) enum HeldResult {
    Answered(CallResult),
    /// The job has not ended: the call did not wait, or the wait ended first.
    Unfinished {
        job: Box<Job>,
        /// The limit of the wait, if the wait reached it; otherwise the server is shutting down.
        timed_out: Option<Duration>,
    },
}

impl HeldResult {
    /// Returns the answer. For a job that has not ended, returns an error that says how to get the result with the same
    /// call.
    pub(crate) fn into_answer(self) -> ToolResult<CallResult> {
        match self {
            Self::Answered(answer) => Ok(answer),
            Self::Unfinished { timed_out: Some(limit), .. } => Err(Refusal::because(
                Code::Timeout,
                format!(
                    "there is no answer after {} s; make the same call again to pick it up",
                    limit.as_secs()
                ),
            )),
            Self::Unfinished { timed_out: None, .. } => Err(Refusal::because(
                Code::ServiceUnavailable,
                "this server is stopping; make the same call again: it goes on, or says what became of it",
            )),
        }
    }
}

/// A function that renders the outcome of a job in the format of the tool that started it; `None` while the job is unfinished.
pub(crate) type OutcomeFormat<'a> = dyn Fn(&Job) -> Option<ToolResult> + Send + Sync + 'a;

/// Serves a call from its job to its answer, and sets the receipt.
pub(crate) async fn carry(
    engine: &Engine,
    caller: &mut Caller,
    call: HeldCall,
    outcome: &OutcomeFormat<'_>,
) -> Result<HeldResult, Refusal> {
    let (answer_with, has_key) = (call.answer_with, call.key.is_some());
    let visibility = call.job.visibility;
    let told_again = match call.told_again {
        ToldAgain::ForAWhile(_) if has_key => ToldAgain::ForAWhile(AskAnew::WithAnotherKey),
        told_again => told_again,
    };
    let mut started = start(engine, caller, call).await?;
    let within = match answer_with {
        AnswerWith::Task
            if caller.needs_task
                || !(started.existed && started.job.state.kind().is_terminal()) =>
        {
            if started.existed {
                // The process that ran the job may have crashed.
                engine.find_dead_workers().await;
                refuse_foreign_settings(engine, &caller.scope(), &started.job).await?;
            }
            engine.carry_if_held(&started.job);
            return Ok(HeldResult::Answered(CallResult::Task(Box::new(started.job))));
        }
        // A repeated answer is marked as a replay. A task cannot be marked, so the outcome is returned instead.
        AnswerWith::Task => None,
        AnswerWith::JobAtOnce => {
            return Ok(match outcome(&started.job) {
                Some(outcome) => HeldResult::Answered(outcome?.into()),
                None => HeldResult::Unfinished { job: Box::new(started.job), timed_out: None },
            });
        }
        AnswerWith::Outcome { within } => within,
    };
    let since = Instant::now();
    started.job = wait_for_end(engine, caller, &started, within, visibility).await?;
    let Some(outcome) = outcome(&started.job) else {
        if let Some(question) = started.job.open_question()
            && !started.job.is_shown()
        {
            return Err(questions::report_waiting(&started.job, question, caller.page.as_deref()));
        }
        let timed_out = within.filter(|limit| since.elapsed() >= *limit);
        return Ok(HeldResult::Unfinished { job: Box::new(started.job), timed_out });
    };
    let answer = match told_again {
        ToldAgain::ForAWhile(ask_anew) => tell(engine, &started, ask_anew, outcome)?,
        ToldAgain::UntilReceived if rules::is_expired(&started.job, engine.now()) => {
            return Err(Refusal::validation(
                "idempotency_key names a call that is no longer kept; use a new key to make it again",
            ));
        }
        ToldAgain::UntilReceived => {
            caller.receipt = Some(Receipt { engine: engine.clone(), job: started.job.id });
            outcome?
        }
    };
    Ok(HeldResult::Answered(answer.into()))
}

/// Starts the job of a call, or attaches to the job of an earlier identical call.
async fn start(engine: &Engine, caller: &Caller, call: HeldCall) -> Result<StartOutcome, Refusal> {
    let HeldCall { job, key, call_key, answer_with, .. } = call;
    // The state of the question names the job of this very call.
    if let Some(resumed) = &caller.resumed
        && let Some(job) = engine.job(&caller.scope(), &resumed.job).await?
    {
        return Ok(StartOutcome { job, existed: true, replay: None });
    }
    let conversation = job.conversation.clone();
    let started = match answer_with {
        AnswerWith::JobAtOnce => {
            engine.start(job, key.map(|key| Key { identity: None, ..key })).await
        }
        AnswerWith::Task => engine.start(job, Some(key.unwrap_or(call_key))).await,
        // The job goes through the queue, but identical calls still share one job.
        AnswerWith::Outcome { .. } if job.visibility.goes_through_queue() => {
            engine.start(job, Some(key.unwrap_or(call_key))).await
        }
        AnswerWith::Outcome { .. } => engine.start_held(job, key.unwrap_or(call_key)).await,
    };
    match (started, conversation) {
        (Ok(started), _) => Ok(started),
        (Err(StoreError::ConversationBusy(job)), Some(id)) => {
            Err(busy(engine, caller, &job, &id).await)
        }
        (Err(error), _) => Err(error.into()),
    }
}

/// Returns the refusal of a question to a conversation that has an unfinished one.
async fn busy(engine: &Engine, caller: &Caller, job: &JobId, id: &ConversationId) -> Refusal {
    let job = engine.job(&caller.scope(), job).await.ok().flatten();
    let status = job.map_or(StatusWord::InProgress, |job| job.kind().into());
    tracing::info!(conversation.id = %id, status = status.as_str(), "follow-up refused: the conversation is busy");
    Refusal::because(
        RefusalCode::JOB_IN_PROGRESS,
        format!(
            "conversation {id} has an unfinished question (status: {}); use {HISTORY} to see when it has ended, then \
             ask again",
            status.as_str()
        ),
    )
}

/// Waits for the end of the job. Returns the job at its end, or its current state if the wait ends first.
async fn wait_for_end(
    engine: &Engine,
    caller: &mut Caller,
    started: &StartOutcome,
    within: Option<Duration>,
    visibility: Visibility,
) -> Result<Job, Refusal> {
    let StartOutcome { job, existed, .. } = started;
    if job.state.kind().is_terminal() {
        return Ok(job.clone());
    }
    let scope = caller.scope();
    if *existed {
        refuse_foreign_settings(engine, &scope, job).await?;
    }
    let whose = if *existed { IdOrigin::Any } else { IdOrigin::JustMade };
    let on_question = match questions::may_ask(job) {
        true => OnQuestion::AskUserOrEnd,
        false => OnQuestion::Nothing,
    };
    let reading = tokio::select! {
        reading = wait::for_job(engine, caller, &job.id, within, whose, on_question) => reading?,
        refused = refuse_uncarried(engine, &scope, job, visibility), if *existed => return Err(refused),
    };
    let removed = "the call was removed from the store while it ran; make it again";
    Ok(reading.ok_or_else(|| Refusal::validation(removed))?.job)
}

/// Watches a job that another process ran when this call attached to it. If that process exits, this process runs the job.
/// Returns a refusal if no process can run it, and otherwise never returns.
async fn refuse_uncarried(
    engine: &Engine,
    scope: &Scope,
    job: &Job,
    visibility: Visibility,
) -> Refusal {
    loop {
        tokio::time::sleep(LOOK_AFTER).await;
        let now = engine.job(scope, &job.id).await;
        let is_queued = matches!(now, Ok(Some(now)) if now.state.kind() == StateKind::Queued);
        if is_queued && !visibility.goes_through_queue() {
            engine.carry(&job.id);
        }
        if let Err(refused) = refuse_foreign_settings(engine, scope, job).await {
            return refused;
        }
    }
}

/// Renders the outcome of research for this call: either its first answer, which is recorded, or a replay.
fn tell(
    engine: &Engine,
    started: &StartOutcome,
    ask_anew: AskAnew,
    outcome: ToolResult,
) -> ToolResult {
    let StartOutcome { job, replay, .. } = started;
    let outcome = match job.needs_consent() {
        true => outcome.map_err(|refusal| refusal.without_retry(instead_of_again(ask_anew))),
        false => outcome,
    };
    let Some(replay) = replay else {
        // Recorded before the answer goes out: an identical call may follow at once.
        engine.record_answer_soon(&job.id);
        return match takes_its_run_up(job, ask_anew) {
            true => outcome.map_err(Refusal::or_call_again),
            false => outcome,
        };
    };
    let sentence = sentence(job, *replay, ask_anew, engine.now());
    Ok(mark(outcome.unwrap_or_else(Refusal::into_result), sentence))
}

fn instead_of_again(ask_anew: AskAnew) -> &'static str {
    match ask_anew {
        AskAnew::WithAnotherKey => {
            "this key always returns this result; pass a new `idempotency_key` to start over"
        }
        AskAnew::WithAKey => {
            "the same call returns this for 30 minutes and sends nothing; pass a new `idempotency_key` or `fresh: true` \
             to start over"
        }
        AskAnew::ByFreshCall => {
            "without `fresh`, the same call returns this for 30 minutes and sends nothing; with `fresh: true` it starts over"
        }
        AskAnew::LaterOrInOtherWords => {
            "the same call returns this for 30 minutes and sends nothing; change the wording to start over"
        }
    }
}

/// Returns true if an identical call would resume the run that this one left (`outlast_core::rules::run_to_resume`), and if a
/// new attempt can end better: an answer that is too large stays too large, and a wrong key stays wrong.
fn takes_its_run_up(job: &Job, ask_anew: AskAnew) -> bool {
    let is_resumed = match ask_anew {
        AskAnew::WithAKey | AskAnew::LaterOrInOtherWords => true,
        AskAnew::WithAnotherKey | AskAnew::ByFreshCall => false,
    };
    is_resumed
        && job.run_left().is_some()
        && job.failures.last().is_some_and(|failure| failure.code.is_retryable())
}

/// Adds a block and a metadata field that mark the answer as a replay.
fn mark(mut answer: CallToolResult, sentence: String) -> CallToolResult {
    answer.content.push(ContentBlock::text(sentence));
    let meta = answer.meta.get_or_insert_default();
    meta.0.insert(REPLAYED.to_owned(), json!(true));
    answer
}

fn sentence(job: &Job, repeat: Replay, ask_anew: AskAnew, now: Timestamp) -> String {
    let age = age(now.since(repeat.ended_at));
    let what = match &job.state {
        JobState::Succeeded { .. } => "the stored answer to the same call, from",
        JobState::Queued { .. }
        | JobState::Running { .. }
        | JobState::Failed { .. }
        | JobState::Cancelled { .. } => "how the same call ended before,",
    };
    let how = match ask_anew {
        AskAnew::WithAnotherKey => "give a new `idempotency_key`".to_owned(),
        AskAnew::WithAKey => "give a new `idempotency_key`, or `fresh: true`".to_owned(),
        AskAnew::ByFreshCall => "make the same call again with `fresh: true`".to_owned(),
        AskAnew::LaterOrInOtherWords => {
            format!("ask again after {}, or change the wording", repeat.until)
        }
    };
    let retry = if job.needs_consent() {
        format!("; or `outlast jobs retry {} --again`, where the server runs", job.id)
    } else {
        String::new()
    };
    format!(
        "This is {what} {age} ago; nothing was sent or paid for again. For a new answer, {how}{retry}."
    )
}

fn age(age: Duration) -> String {
    match age.as_secs() {
        seconds @ ..60 => format!("{seconds} s"),
        seconds @ ..3600 => format!("{} min", seconds / 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Refuses to wait for a job with other settings if no running process is known to have them. The caller would wait forever,
/// and asking again with the new settings could cost a second payment.
async fn refuse_foreign_settings(engine: &Engine, scope: &Scope, job: &Job) -> Result<(), Refusal> {
    let profile = &job.new.profile;
    if engine.has_provider(profile) || engine.has_worker(profile).await? {
        return Ok(());
    }
    // Read again: a job whose process crashed has just returned to the queue.
    let job = engine.job(scope, &job.id).await?;
    match job {
        Some(job) if job.state.kind() == StateKind::Queued => Err(Refusal::because(
            RefusalCode::CONFIGURATION,
            format!(
                "the same call was made with another provider or key, and its job {} waits for a server that has \
                 them; start one, or end the job with `outlast jobs cancel {}` and call again",
                job.id, job.id
            ),
        )),
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_shown_in_the_unit_a_person_would_use() {
        let cases =
            [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3599, "59 min"), (7260, "2 h 1 min")];
        for (seconds, told) in cases {
            assert_eq!(age(Duration::from_secs(seconds)), told);
        }
    }
}
