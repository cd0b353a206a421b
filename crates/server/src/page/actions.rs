//! Cancel, retry and delete (I4). Each asks for confirmation, and then returns to the job it changed.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Path;
use http::StatusCode;
use maud::{Markup, html};
use outlast_core::{
    AnswerOutcome, CallMode, ConversationId, Cost, FetchConsent, Job, JobId, NanoUsd, NewJob,
    Prune, Resend, StateKind, StoreError, visible,
};

use super::asking::refusal;
use super::confirm::{
    AGAIN, CONFIRMED, Confirm, WORD, about_question, asks_to_share, describe_sharing,
};
use super::form::Fields;
use super::layout::{see_job, see_other};
use super::request::{PageRequest, PageResult, Replacement, all_jobs};
use super::timeline::retry_text;
use crate::citations::has_web_sources;
use crate::retry::{RetrySettings, retry_job, retry_key};

/// The number of times, and the interval, at which a deletion checks that the run of a just-cancelled question has been
/// stopped.
const STOP_LOOKS: u32 = 25;
const STOP_LOOK_EVERY: Duration = Duration::from_millis(200);

/// Performs the action, or asks for confirmation.
pub(super) async fn act(
    asked: PageRequest,
    Path((id, action)): Path<(String, String)>,
    body: Body,
) -> PageResult {
    let id = asked.job_id(&id)?;
    let fields = &asked.form(body).await?;
    let (engine, own) = (asked.engine(), asked.visitor.own());
    let job = asked.require_found(engine.job(&own, &id).await)?;
    let is_confirmed = fields.get(CONFIRMED).is_some();
    match action.as_str() {
        "cancel" if job.state.kind().is_terminal() => Ok(see_job(&id)),
        "cancel" if !is_confirmed => Ok(cancel_first(&job, fields).answer(&asked.visitor)),
        "cancel" => match engine.cancel(&own, &id).await {
            Ok(_) => Ok(see_job(&id)),
            Err(error) => Err(not_done(&asked, &job, &error)),
        },
        "retry" => retry(&asked, &job, is_confirmed, fields).await,
        "answer" => answer(&asked, &job, fields).await,
        "check" => check(&asked, &job, is_confirmed, fields).await,
        "delete" if !is_confirmed => Ok(delete_first(&job, fields).answer(&asked.visitor)),
        "delete" => delete(&asked, &job).await,
        _ => Err(asked.not_found()),
    }
}

fn cancel_first<'a>(job: &Job, fields: &'a Fields) -> Confirm<'a> {
    let paid = match job.may_be_charged() {
        true => " What its run has cost so far stays paid, and there is no report.",
        false => "",
    };
    Confirm {
        title: "Cancel this job?",
        about: title(job),
        text: format!("It ends at once.{paid}"),
        button: "Cancel the job",
        needs_word: false,
        shares_with: None,
        back: format!("/ui/jobs/{}", job.id),
        fields,
    }
}

/// Answers the question that the job waits for (M4).
async fn answer(asked: &PageRequest, job: &Job, fields: &Fields) -> PageResult {
    let refuse = |why: &str| {
        let next = html! { a href={ "/ui/jobs/" (job.id.to_string()) } { "Back to the job" } };
        Err(asked.refuse(StatusCode::CONFLICT, "Not answered", why, &next))
    };
    let (question, text) = (fields.get("question"), fields.get("answer"));
    let Some(text) = text else { return refuse("The answer is empty.") };
    match asked.engine().answer(&asked.visitor.own(), &job.id, question, text).await {
        Ok(Some(AnswerOutcome::Accepted(_))) => Ok(see_job(&job.id)),
        Ok(Some(AnswerOutcome::Refused(refusal))) => {
            let refusal = refusal.to_string();
            let (first, rest) = refusal.split_at(1);
            refuse(&format!("{}{rest}.", first.to_uppercase()))
        }
        Ok(None) => Err(asked.not_found()),
        Err(error) => Err(not_done(asked, job, &error)),
    }
}

/// Renders the question that a job waits for, with a form for the answer.
pub(super) fn question(job: &Job, is_own: bool) -> Markup {
    let Some(question) = job.open_question() else { return html! {} };
    html! {
        form method="post" action={ "/ui/jobs/" (job.id.to_string()) "/answer" } {
            p { strong { "This job waits for an answer" } " until " (question.deadline.to_string()) "." }
            div .question dir="auto" { (visible(&question.text)) }
            @if let Some(default) = &question.default {
                p .soft { "After that, the answer is: " (visible(default)) }
            }
            @if is_own {
                input type="hidden" name="question" value=(question.id);
                @if question.choices.is_empty() {
                    label { "Answer " textarea name="answer" rows="3" required dir="auto" {} }
                    button { "Answer" }
                } @else {
                    @for choice in &question.choices {
                        button name="answer" value=(choice) { (visible(choice)) }
                        " "
                    }
                }
            }
        }
    }
}

fn title(job: &Job) -> Markup {
    html! { div .question dir="auto" { (visible(&job.new.title)) } }
}

async fn retry(asked: &PageRequest, job: &Job, is_confirmed: bool, fields: &Fields) -> PageResult {
    let engine = asked.engine();
    // The effect of a retry depends on whether the run of a cancelled job has ended.
    let job = &asked.read(engine.settle_stop(job.clone()).await)?;
    let Some(text) = retry_text(job) else { return Ok(see_job(&job.id)) };
    let has_word = fields.get(WORD) == Some(AGAIN);
    let needs_word = needs_word(job);
    let new = retry_of_today(asked, job);
    let shares_with = asks_to_share(&new, fields);
    if !is_confirmed || shares_with.is_some() || (needs_word && !has_word) {
        let confirm = Confirm {
            title: "Retry this job?",
            about: about_question(&new, retry_cost(asked, job)),
            text: format!("A retry {text}.{}", describe_sharing(&new)),
            button: "Retry",
            needs_word,
            shares_with: new.sends_library_text().then(|| new.profile.provider().to_owned()),
            back: format!("/ui/jobs/{}", job.id),
            fields,
        };
        return Ok(confirm.answer(&asked.visitor));
    }
    match start_retry(asked, job, new, has_word).await {
        Ok(id) => Ok(see_job(&id)),
        Err(error) => Err(not_done(asked, job, &error)),
    }
}

/// Returns true if a retry of the job may pay a second time, so that it needs the owner's consent.
pub(super) fn needs_word(job: &Job) -> bool {
    job.needs_consent() || job.may_run_on()
}

/// Returns the job that repeats this one under the settings of today.
pub(super) fn retry_of_today(asked: &PageRequest, job: &Job) -> NewJob {
    let settings = asked.options().research.as_ref();
    let settings_of_today = RetrySettings {
        profiles: settings.map_or(&[], |it| &it.profiles),
        max_failures: settings.map_or(job.new.max_failures, |it| it.max_failures),
        attempt_timeout: settings.map_or(job.new.attempt_timeout, |it| it.attempt_timeout),
        life: settings.map_or(job.new.life.unwrap_or_default(), |it| it.life),
    };
    retry_job(job, &settings_of_today)
}

/// Returns the usual price of a retry. One that resumes a run pays nothing more.
pub(super) fn retry_cost(asked: &PageRequest, job: &Job) -> Cost {
    match job.run_left() {
        Some(_) if job.left_run_has_ended() => Cost::Reported(NanoUsd(0)),
        Some(_) | None if !job.may_be_charged() => Cost::Reported(NanoUsd(0)),
        Some(_) | None => asked.engine().expects(&job.new.profile, &job.new.request).cost,
    }
}

/// Starts a retry, and returns its id. With the owner's consent another run begins, whatever the outcome of the first.
pub(super) async fn start_retry(
    asked: &PageRequest,
    job: &Job,
    new: NewJob,
    has_word: bool,
) -> Result<JobId, StoreError> {
    let engine = asked.engine();
    let key = Some(retry_key(&job.id));
    let consent = if has_word { Resend::Allow } else { Resend::Refuse };
    let started = engine.start_after(job, new, key, consent).await?;
    let id = started.job.id;
    if let (false, Some(research)) = (started.existed, &asked.options().research) {
        (research.carry)(started.job).await;
    }
    Ok(id)
}

/// Starts the check of a report. One with text of local documents needs a confirmation, because the addresses of its
/// sources could reveal that text (J4).
async fn check(asked: &PageRequest, job: &Job, is_confirmed: bool, fields: &Fields) -> PageResult {
    let Some(carry) = &asked.options().checks else { return Err(asked.not_found()) };
    let engine = asked.engine();
    if job.holds_library_text() && !is_confirmed && has_web_sources(job) {
        let confirm = Confirm {
            title: "Check the citations of this report?",
            about: title(job),
            text: "The report has text of local documents. Its web sources are fetched, which reveals their addresses to their sites.".to_owned(),
            button: "Fetch the sources",
            needs_word: false,
            shares_with: None,
            back: format!("/ui/jobs/{}", job.id),
            fields,
        };
        return Ok(confirm.answer(&asked.visitor));
    }
    let known = engine.finished_check(&asked.visitor.scope(), &job.id).await;
    let mode = match known.map_err(|error| not_done(asked, job, &error))? {
        Some(_) => CallMode::Fresh,
        None => CallMode::Attach,
    };
    let consent = if is_confirmed { FetchConsent::Given } else { FetchConsent::NotGiven };
    match engine.start_check(job, "the page", consent, mode).await {
        Ok(Some(started)) => {
            let id = started.job.id;
            carry(started.job).await;
            Ok(see_job(&id))
        }
        Ok(None) => Ok(see_job(&job.id)),
        Err(error) => Err(not_done(asked, job, &error)),
    }
}

fn delete_first<'a>(job: &Job, fields: &'a Fields) -> Confirm<'a> {
    Confirm {
        title: "Delete this conversation?",
        about: title(job),
        text: "This and every other question and report of its conversation go for good. What was spent stays in the ledger.".to_owned(),
        button: "Delete",
        needs_word: false,
        shares_with: None,
        back: format!("/ui/jobs/{}", job.id),
        fields,
    }
}

async fn delete(asked: &PageRequest, job: &Job) -> PageResult {
    let Some(conversation) = &job.new.conversation else {
        let why = "A job without a conversation goes by itself when its retention ends.";
        return Err(asked.refuse(StatusCode::BAD_REQUEST, "Not deleted", why, &all_jobs()));
    };
    match delete_conversation(asked, conversation).await {
        Ok(Deletion::Whole) => Ok(see_other("/ui")),
        Ok(Deletion::ExceptStopping) => {
            let next = html! { a href="/ui/conversations" { "Conversations" } };
            Err(asked.refuse(StatusCode::CONFLICT, "Not all is deleted", STOPPING, &next))
        }
        Err(error) => Err(not_done(asked, job, &error)),
    }
}

/// The reason why a deletion leaves a question behind.
pub(super) const STOPPING: &str = "Everything of this conversation is deleted except the question that was cancelled: its run is still to be stopped at \
    the provider, and that would be forgotten with it. Delete it when its page says that the run was stopped.";

/// The result of a deletion.
pub(super) enum Deletion {
    Whole,
    /// A question whose run is still to be stopped at the provider is left.
    ExceptStopping,
}

/// Deletes a conversation with all its questions.
pub(super) async fn delete_conversation(
    asked: &PageRequest,
    conversation: &ConversationId,
) -> Result<Deletion, StoreError> {
    let (engine, visitor) = (asked.engine(), &asked.visitor);
    for _ in 0..STOP_LOOKS {
        match engine.prune(&visitor.own(), &Prune::Conversation(conversation.clone())).await {
            Ok(_) => {}
            Err(StoreError::NotFound) => return Ok(Deletion::Whole),
            Err(error) => return Err(error),
        }
        match engine.conversation(&visitor.owner, conversation).await? {
            None => return Ok(Deletion::Whole),
            // The pending stop of a run is recorded in its job, so the job stays until the run has stopped.
            Some(_) => tokio::time::sleep(STOP_LOOK_EVERY).await,
        }
    }
    Ok(Deletion::ExceptStopping)
}

fn not_done(asked: &PageRequest, job: &Job, error: &StoreError) -> Replacement {
    let next = html! { a href={ "/ui/jobs/" (job.id.to_string()) } { "Back to the job" } };
    let ended = if job.state.kind() == StateKind::Running { "Not done" } else { "Refused" };
    asked.refuse(StatusCode::CONFLICT, ended, &refusal(error), &next)
}
