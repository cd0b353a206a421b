//! Cancel, retry, delete (I4). Each asks first and then goes back to what it changed.

use std::time::Duration;

use axum::response::Response;
use http::StatusCode;
use outlast_core::{Job, JobId, Prune, StateKind, StoreError};
use outlast_engine::Engine;

use super::asking::refusal;
use super::confirm::{AGAIN, CONFIRMED, Confirm, WORD};
use super::form::Fields;
use super::layout::{self, message, see_other};
use super::options::PageOptions;
use super::session::Visitor;
use super::timeline::retry_text;
use crate::retry::{RetrySettings, retry_job, retry_key};

/// How often, and how far apart, a deletion looks whether the run of a question that was cancelled just before has been stopped.
const STOP_LOOKS: u32 = 25;
const STOP_LOOK_EVERY: Duration = Duration::from_millis(200);

/// What is to be done with a job.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Cancel,
    Retry,
    Delete,
}

impl Action {
    pub(super) fn parse(word: &str) -> Option<Self> {
        match word {
            "cancel" => Some(Self::Cancel),
            "retry" => Some(Self::Retry),
            "delete" => Some(Self::Delete),
            _ => None,
        }
    }
}

/// Does it, or asks first.
pub(super) async fn act(
    engine: &Engine,
    options: &PageOptions,
    visitor: &Visitor,
    (id, action): (&str, Action),
    fields: &Fields,
) -> Response {
    let Ok(id) = id.parse::<JobId>() else { return layout::not_found(visitor) };
    let job = match engine.job(&visitor.own(), &id).await {
        Ok(Some(job)) => job,
        Ok(None) => return layout::not_found(visitor),
        Err(error) => return layout::unreadable(visitor, &error),
    };
    let is_confirmed = fields.get(CONFIRMED).is_some();
    let has_word = fields.get(WORD) == Some(AGAIN);
    match action {
        Action::Cancel if job.state.kind().is_terminal() => see_other(&format!("/ui/jobs/{id}")),
        Action::Cancel if !is_confirmed => cancel_first(&job, fields).answer(visitor),
        Action::Cancel => match engine.cancel(&visitor.own(), &id).await {
            Ok(_) => see_other(&format!("/ui/jobs/{id}")),
            Err(error) => not_done(visitor, &job, &error),
        },
        Action::Retry => {
            retry(engine, options, visitor, &job, (is_confirmed, has_word), fields).await
        }
        Action::Delete if !is_confirmed => delete_first(&job, fields).answer(visitor),
        Action::Delete => delete(engine, visitor, &job).await,
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
        action: "",
        button: "Cancel the job",
        needs_word: false,
        back: format!("/ui/jobs/{}", job.id),
        fields,
    }
}

async fn retry(
    engine: &Engine,
    options: &PageOptions,
    visitor: &Visitor,
    job: &Job,
    (is_confirmed, has_word): (bool, bool),
    fields: &Fields,
) -> Response {
    let Some(text) = retry_text(job) else { return see_other(&format!("/ui/jobs/{}", job.id)) };
    let needs_word = job.needs_consent() || job.may_run_on();
    if !is_confirmed || (needs_word && !has_word) {
        let cost = engine.expects(&job.new.profile, &job.new.ask).cost;
        let costs = cost.amount().filter(|amount| amount.0 > 0);
        let costs =
            costs.map(|amount| format!(" Such a run usually costs {amount}.")).unwrap_or_default();
        let confirm = Confirm {
            title: "Retry this job?",
            text: format!("A retry {text}.{costs}"),
            action: "",
            button: "Retry",
            needs_word,
            back: format!("/ui/jobs/{}", job.id),
            fields,
        };
        return confirm.answer(visitor);
    }
    let (profiles, settings) = match &options.research {
        Some(research) => (research.profiles.as_slice(), Some(research)),
        None => (&[][..], None),
    };
    let settings_of_today = RetrySettings {
        profiles,
        max_failures: settings.map_or(job.new.max_failures, |it| it.max_failures),
        attempt_timeout: settings.map_or(job.new.attempt_timeout, |it| it.attempt_timeout),
        life: settings.map_or(job.new.life.unwrap_or_default(), |it| it.life),
    };
    let new = retry_job(job, &settings_of_today);
    let key = Some(retry_key(&job.id));
    // With the owner's word another run is begun, whatever became of the first.
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
            see_other(&format!("/ui/jobs/{id}"))
        }
        Err(error) => not_done(visitor, job, &error),
    }
}

fn delete_first<'a>(job: &Job, fields: &'a Fields) -> Confirm<'a> {
    Confirm {
        title: "Delete this conversation?",
        text: format!(
            "\"{}\" and every other question and report of its conversation go for good. What was spent stays in the ledger.",
            job.new.title
        ),
        action: "",
        button: "Delete",
        needs_word: false,
        back: format!("/ui/jobs/{}", job.id),
        fields,
    }
}

async fn delete(engine: &Engine, visitor: &Visitor, job: &Job) -> Response {
    let Some(conversation) = job.new.conversation.clone() else {
        let next = "<a href=\"/ui\">All jobs</a>";
        let why = "A job without a conversation goes by itself when its retention ends.";
        return message(StatusCode::BAD_REQUEST, Some(visitor), "Not deleted", why, next);
    };
    for _ in 0..STOP_LOOKS {
        match engine.prune(&visitor.own(), &Prune::Conversation(conversation.clone())).await {
            Ok(_) => {}
            Err(StoreError::NotFound) => return see_other("/ui"),
            Err(error) => return not_done(visitor, job, &error),
        }
        match engine.conversation(&visitor.owner, &conversation).await {
            Ok(None) => return see_other("/ui"),
            // The duty to stop a run is in its job, which therefore stays until that is done.
            Ok(Some(_)) => tokio::time::sleep(STOP_LOOK_EVERY).await,
            Err(error) => return layout::unreadable(visitor, &error),
        }
    }
    let why = "Everything of this conversation is deleted except the question that was cancelled: its run is still to be stopped at \
               the provider, and that would be forgotten with it. Delete it when its page says that the run was stopped.";
    let next = "<a href=\"/ui/conversations\">Conversations</a>";
    message(StatusCode::CONFLICT, Some(visitor), "Not all is deleted", why, next)
}

fn not_done(visitor: &Visitor, job: &Job, error: &StoreError) -> Response {
    let next = format!("<a href=\"/ui/jobs/{}\">Back to the job</a>", job.id);
    let ended = if job.state.kind() == StateKind::Running { "Not done" } else { "Refused" };
    message(StatusCode::CONFLICT, Some(visitor), ended, &refusal(error), &next)
}
