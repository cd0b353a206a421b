//! One job: its standing, the money, its timeline, the report and the available actions (I3).

use axum::extract::Path;
use maud::{Markup, html};
use outlast_core::conversation::Conversation;
use outlast_core::{Job, JobQuery, JobState, StoreError, Timestamp, visible};
use outlast_engine::Reading;

use super::layout::{self, Tab, View};
use super::options::PageView;
use super::request::{PageRequest, PageResult};
use super::session::Visitor;
use super::{asking, downloads, timeline};
use crate::export::{Turn, answer_html, question_of, report};
use crate::text::took;

pub(super) async fn view(asked: PageRequest, Path(id): Path<String>) -> PageResult {
    let id = asked.job_id(&id)?;
    let reading = asked.found(asked.engine().reading(&asked.visitor.scope(), &id).await)?;
    let body = asked.read(body(&asked, &reading).await)?;
    let live = Some(format!("/ui/events?job={id}"));
    Ok(View { title: &reading.job.new.title, tab: Tab::Jobs, live, body }.answer(&asked.visitor))
}

async fn body(asked: &PageRequest, reading: &Reading) -> Result<Markup, StoreError> {
    let (engine, visitor) = (asked.engine(), &asked.visitor);
    let Reading { job, now, .. } = reading;
    let is_own = job.new.owner == visitor.owner;
    let conversation = match job.new.conversation.as_ref().filter(|_| is_own) {
        Some(id) => engine.conversation(&visitor.owner, id).await?,
        None => None,
    };
    let query = JobQuery { id_prefix: Some(job.id.to_string()), limit: 1, ..JobQuery::default() };
    let listed = engine.list(&visitor.scope(), &query).await?.jobs;
    let charge = listed.into_iter().next().and_then(|summary| summary.charge);
    let rows = engine.ledger_rows(&visitor.scope(), &job.id).await?;
    Ok(html! {
        div .reading {
            h1 .question { (visible(question_of(job).trim())) }
            (standing(reading))
            (facts(job, visitor, *now))
            @if is_own { (actions(job)) }
            (result(job))
            @if let Some(conversation) = &conversation { (turns(conversation, job)) }
            @if is_own { (asking::follow_up_form(asked.options(), job, conversation.as_ref())) }
            section .noprint #money data-part aria-labelledby="money-title" {
                h2 #money-title { "Money" }
                (timeline::money(job, charge.as_ref(), &rows))
            }
            section .noprint #timeline data-part aria-labelledby="timeline-title" {
                h2 #timeline-title { "Timeline" }
                (timeline::timeline(job, *now))
            }
        }
    })
}

/// Renders the state, and the progress of a job that has not ended.
fn standing(reading: &Reading) -> Markup {
    let Reading { job, .. } = reading;
    let standing = reading.standing();
    let percent = standing.percent().filter(|_| !job.state.kind().is_terminal());
    // The text would only repeat these states.
    let words = match &job.state {
        JobState::Succeeded { .. } | JobState::Failed { .. } => String::new(),
        JobState::Queued { .. } | JobState::Running { .. } | JobState::Cancelled { .. } => {
            standing.words()
        }
    };
    html! {
        section .big #standing data-part aria-live="polite" {
            p { (layout::state(job.state.kind())) " " span .soft { (visible(&words)) } }
            @if let Some(percent) = percent { (layout::bar(percent, "Progress")) }
        }
    }
}

fn facts(job: &Job, visitor: &Visitor, now: Timestamp) -> Markup {
    let model = match &job.state {
        JobState::Succeeded { output, .. } => output.model.as_deref(),
        _ => None,
    };
    html! {
        p .facts #facts data-part {
            (visible(job.new.profile.provider()))
            @if let Some(model) = model { " · " (visible(model)) }
            " · asked " (layout::ago(job.created_at, now))
            " · by " (visible(job.new.tool()))
            @if visitor.view == PageView::AllOwners { " · owner " (visible(job.new.owner.as_str())) }
            @if job.ended_at().is_some() { " · took " (took(job.elapsed(now).as_secs())) }
            " · " span .id { (job.id.to_string()) }
        }
    }
}

/// Renders the actions that are available now.
fn actions(job: &Job) -> Markup {
    let id = job.id.to_string();
    let form = |action: &str, name: &str, class: Option<&str>| {
        html! {
            form method="post" action={ "/ui/jobs/" (id) "/" (action) } {
                button class=[class] { (name) }
            }
        }
    };
    html! {
        div .actions #actions data-part {
            @match &job.state {
                JobState::Queued { .. } | JobState::Running { .. } => (form("cancel", "Cancel", Some("danger"))),
                JobState::Failed { .. } | JobState::Cancelled { .. } => (form("retry", "Retry", None)),
                JobState::Succeeded { .. } => (downloads::links(&format!("/ui/jobs/{id}"))),
            }
            @if job.state.kind().is_terminal() && job.new.conversation.is_some() {
                (form("delete", "Delete", Some("danger")))
            }
        }
    }
}

/// Renders the report, or the partial text (G8).
fn result(job: &Job) -> Markup {
    let failure = match &job.state {
        JobState::Failed { .. } => job.failures.last(),
        _ => None,
    };
    html! {
        section #result data-part {
            @if let Some(answer) = Turn::of(job).answer {
                (answer_html(&answer, 1))
            } @else if let Some(partial) = &job.partial {
                div .notice { p { "The text so far; it is being written and is not the report." } }
                article .report { (report(partial, &[], 1)) }
            } @else if let Some(failure) = failure {
                div .notice.bad { p { strong { (failure.code.to_string()) } ": " (visible(&failure.message)) } }
            }
        }
    }
}

/// Renders the other questions of the conversation.
fn turns(conversation: &Conversation, job: &Job) -> Markup {
    if !conversation.was_continued() {
        return Markup::default();
    }
    html! {
        section .noprint #turns data-part {
            h2 { a href={ "/ui/conversations/" (conversation.id.as_str()) } { "Conversation" } }
            ol {
                @for turn in conversation.turns() {
                    li {
                        @if turn.id == job.id {
                            strong { (visible(&turn.new.title)) }
                        } @else {
                            a href={ "/ui/jobs/" (turn.id.to_string()) } { (visible(&turn.new.title)) }
                        }
                        " " (layout::state(turn.state.kind()))
                    }
                }
            }
        }
    }
}
