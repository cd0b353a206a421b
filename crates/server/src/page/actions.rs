//! Cancel, retry and delete (I4). Each asks for confirmation, and then returns to the job it changed.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Path;
use http::StatusCode;
use maud::html;
use outlast_core::{Job, Prune, StateKind, StoreError};

use super::asking::refusal;
use super::confirm::{AGAIN, CONFIRMED, Confirm, WORD, asks_to_share, sharing_text};
use super::form::Fields;
use super::layout::{see_job, see_other};
use super::request::{Instead, PageRequest, PageResult, all_jobs};
use super::timeline::retry_text;
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
    let job = asked.found(engine.job(&own, &id).await)?;
    let is_confirmed = fields.get(CONFIRMED).is_some();
    match action.as_str() {
        "cancel" if job.state.kind().is_terminal() => Ok(see_job(&id)),
        "cancel" if !is_confirmed => Ok(cancel_first(&job, fields).answer(&asked.visitor)),
        "cancel" => match engine.cancel(&own, &id).await {
            Ok(_) => Ok(see_job(&id)),
            Err(error) => Err(not_done(&asked, &job, &error)),
        },
        "retry" => retry(&asked, &job, is_confirmed, fields).await,
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
        text: format!("\"{}\" ends at once.{paid}", job.new.title),
        button: "Cancel the job",
        needs_word: false,
        shares_with: None,
        back: format!("/ui/jobs/{}", job.id),
        fields,
    }
}

async fn retry(asked: &PageRequest, job: &Job, is_confirmed: bool, fields: &Fields) -> PageResult {
    let engine = asked.engine();
    // The effect of a retry depends on whether the run of a cancelled job has ended.
    let job = &asked.read(engine.settle_stop(job.clone()).await)?;
    let Some(text) = retry_text(job) else { return Ok(see_job(&job.id)) };
    let has_word = fields.get(WORD) == Some(AGAIN);
    let needs_word = job.needs_consent() || job.may_run_on();
    let settings = asked.options().research.as_ref();
    let settings_of_today = RetrySettings {
        profiles: settings.map_or(&[], |it| &it.profiles),
        max_failures: settings.map_or(job.new.max_failures, |it| it.max_failures),
        attempt_timeout: settings.map_or(job.new.attempt_timeout, |it| it.attempt_timeout),
        life: settings.map_or(job.new.life.unwrap_or_default(), |it| it.life),
    };
    let new = retry_job(job, &settings_of_today);
    let shares_with = asks_to_share(&new, fields);
    if !is_confirmed || shares_with.is_some() || (needs_word && !has_word) {
        let cost = engine.expects(&job.new.profile, &job.new.request).cost;
        let costs = cost.amount().filter(|amount| amount.0 > 0);
        let costs =
            costs.map(|amount| format!(" Such a run usually costs {amount}.")).unwrap_or_default();
        let confirm = Confirm {
            title: "Retry this job?",
            text: format!("A retry {text}.{costs}{}", sharing_text(&new)),
            button: "Retry",
            needs_word,
            shares_with: new.sends_library_text().then(|| new.profile.provider().to_owned()),
            back: format!("/ui/jobs/{}", job.id),
            fields,
        };
        return Ok(confirm.answer(&asked.visitor));
    }
    let key = Some(retry_key(&job.id));
    // With the owner's consent another run begins, whatever the outcome of the first.
    let started = match job.run_left().filter(|_| !has_word) {
        Some(_) => engine.start_after(job, new, key).await,
        None => engine.start(new, key).await,
    };
    match started {
        Ok(started) => {
            let id = started.job.id;
            if let (false, Some(research)) = (started.existed, settings) {
                (research.carry)(started.job).await;
            }
            Ok(see_job(&id))
        }
        Err(error) => Err(not_done(asked, job, &error)),
    }
}

fn delete_first<'a>(job: &Job, fields: &'a Fields) -> Confirm<'a> {
    Confirm {
        title: "Delete this conversation?",
        text: format!(
            "\"{}\" and every other question and report of its conversation go for good. What was spent stays in the ledger.",
            job.new.title
        ),
        button: "Delete",
        needs_word: false,
        shares_with: None,
        back: format!("/ui/jobs/{}", job.id),
        fields,
    }
}

async fn delete(asked: &PageRequest, job: &Job) -> PageResult {
    let Some(conversation) = job.new.conversation.clone() else {
        let why = "A job without a conversation goes by itself when its retention ends.";
        return Err(asked.refused(StatusCode::BAD_REQUEST, "Not deleted", why, &all_jobs()));
    };
    let (engine, visitor) = (asked.engine(), &asked.visitor);
    for _ in 0..STOP_LOOKS {
        match engine.prune(&visitor.own(), &Prune::Conversation(conversation.clone())).await {
            Ok(_) => {}
            Err(StoreError::NotFound) => return Ok(see_other("/ui")),
            Err(error) => return Err(not_done(asked, job, &error)),
        }
        match asked.read(engine.conversation(&visitor.owner, &conversation).await)? {
            None => return Ok(see_other("/ui")),
            // The pending stop of a run is recorded in its job, so the job stays until the run has stopped.
            Some(_) => tokio::time::sleep(STOP_LOOK_EVERY).await,
        }
    }
    let why = "Everything of this conversation is deleted except the question that was cancelled: its run is still to be stopped at \
               the provider, and that would be forgotten with it. Delete it when its page says that the run was stopped.";
    let next = html! { a href="/ui/conversations" { "Conversations" } };
    Err(asked.refused(StatusCode::CONFLICT, "Not all is deleted", why, &next))
}

fn not_done(asked: &PageRequest, job: &Job, error: &StoreError) -> Instead {
    let next = html! { a href={ "/ui/jobs/" (job.id.to_string()) } { "Back to the job" } };
    let ended = if job.state.kind() == StateKind::Running { "Not done" } else { "Refused" };
    asked.refused(StatusCode::CONFLICT, ended, &refusal(error), &next)
}
