//! One job: the report with its contents and sources, and beside it the facts, the money and the timeline (I3).

use axum::extract::Path;
use maud::{Markup, html};
use outlast_core::conversation::Conversation;
use outlast_core::{Job, JobQuery, JobState, StoreError, Timestamp, visible};
use outlast_engine::JobSnapshot;
use outlast_sources::CitationCheck;

use super::actions::question;
use super::layout::{self, Tab, View};
use super::options::PageView;
use super::request::{PageRequest, PageResult};
use super::session::Visitor;
use super::{asking, downloads, steps, timeline};
use crate::citations::{check_of, citation_check};
use crate::export::{
    Turn, check_html, contents, has_contents, report, report_with_check, source_cards, with_code,
};
use crate::text::took;

pub(super) async fn view(asked: PageRequest, Path(id): Path<String>) -> PageResult {
    let id = asked.job_id(&id)?;
    let reading = asked.require_found(asked.engine().read(&asked.visitor.scope(), &id).await)?;
    let body = asked.read(body(&asked, &reading).await)?;
    let live = Some(format!("/ui/events?job={id}"));
    Ok(View { title: &reading.job.new.title, tab: Tab::Jobs, live, body }.answer(&asked.visitor))
}

async fn body(asked: &PageRequest, reading: &JobSnapshot) -> Result<Markup, StoreError> {
    let (engine, visitor) = (asked.engine(), &asked.visitor);
    let JobSnapshot { job, now, .. } = reading;
    let is_own = job.new.owner == visitor.owner;
    let conversation = match job.new.conversation.as_ref().filter(|_| is_own) {
        Some(id) => engine.conversation(&visitor.owner, id).await?,
        None => None,
    };
    let query = JobQuery { id_prefix: Some(job.id.to_string()), limit: 1, ..JobQuery::default() };
    let listed = engine.list(&visitor.scope(), &query).await?.jobs;
    let charge = listed.into_iter().next().and_then(|summary| summary.charge);
    let rows = engine.ledger_rows(&visitor.scope(), &job.id).await?;
    let taken = steps::read(asked, job).await?;
    let turn = Turn::of(job);
    let check = read_check(asked, job).await?;
    let check = check.as_ref();
    let answer = turn.answer.filter(|_| !job.new.request.is_citation_check());
    let answer =
        answer.map(|answer| (report_with_check(&answer.text, &answer.sources, 1, check), answer));
    Ok(html! {
        div .job-view {
            div .main {
                div .head {
                    h1 .question dir="auto" { (visible(turn.question.trim())) }
                    (render_standing(reading))
                    section .notice #question data-part hidden[job.open_question().is_none()] { (question(job, is_own)) }
                    @if is_own { (actions(asked, job, check)) }
                }
                section .result #result data-part {
                    @match &answer {
                        Some((report, _)) => article .report #report { (report.text) },
                        None => (without_report(job)),
                    }
                    @if let Some(check) = check { (check_html(check, 1)) }
                    @if let Some(subject) = &job.new.subject {
                        p .noprint { a href={ "/ui/jobs/" (subject.to_string()) } { "The report" } }
                    }
                }
                section .turns.noprint #turns data-part {
                    @if let Some(conversation) = &conversation { (turns(conversation, job)) }
                }
                @if is_own { (asking::follow_up_form(asked.options(), job, conversation.as_ref())) }
            }
            aside .about aria-label="About this job" {
                section .facts-money #facts data-part {
                    (facts(job, visitor, *now))
                    h2 .noprint { "Money" }
                    (timeline::money(job, charge.as_ref(), &rows))
                }
                // The whole of it stays in view next to a long report.
                div .stay {
                    nav .contents.noprint #contents data-part aria-label="Contents" {
                        @if let Some((report, _)) = answer.as_ref().filter(|(report, _)| has_contents(&report.headings)) {
                            h2 { "Contents" }
                            (contents(&report.headings))
                        }
                    }
                    section .sources-part #sources data-part {
                        @if let Some((_, answer)) = answer.as_ref().filter(|(_, answer)| !answer.sources.is_empty()) {
                            h2 { "Sources" }
                            (source_cards(&answer.sources, 1, check))
                        }
                    }
                    section .timeline-part.noprint #timeline data-part {
                        h2 { "Timeline" }
                        (timeline::timeline(job, *now))
                    }
                    section .steps-part.noprint #steps data-part { (steps::render(&taken)) }
                }
            }
        }
    })
}

/// Returns the newest check of a report, or the result of a job that is a check.
async fn read_check(asked: &PageRequest, job: &Job) -> Result<Option<CitationCheck>, StoreError> {
    match job.new.request.is_citation_check() {
        true => Ok(citation_check(job)),
        false => check_of(asked.engine(), &asked.visitor.scope(), job).await,
    }
}

/// Renders the state, and the progress and a clock of a job that has not ended.
fn render_standing(reading: &JobSnapshot) -> Markup {
    let JobSnapshot { job, now, .. } = reading;
    let standing = reading.read_standing();
    let percent = standing.percent().filter(|_| !job.state.kind().is_terminal());
    // The text would only repeat these states.
    let words = match &job.state {
        JobState::Succeeded { .. } | JobState::Failed { .. } => String::new(),
        JobState::Queued { .. } | JobState::Running { .. } | JobState::Cancelled { .. } => {
            standing.words()
        }
    };
    html! {
        section .big #standing data-part {
            p {
                (layout::state(job.kind())) " "
                // The clock is outside, so that a screen reader does not announce it every second.
                @if !job.state.kind().is_terminal() { " · " (layout::clock(job.elapsed(*now).as_secs())) " · " }
                span .soft aria-live="polite" { (with_code(&words)) }
            }
            @if let Some(percent) = percent { (layout::bar(percent, "Progress")) }
        }
    }
}

fn facts(job: &Job, visitor: &Visitor, now: Timestamp) -> Markup {
    let model = match &job.state {
        JobState::Succeeded { output, .. } => output.model.as_deref(),
        _ => None,
    };
    let effort = job.new.request.research().and_then(|ask| ask.effort);
    html! {
        dl {
            dt { "Provider" } dd { (visible(job.new.profile.provider())) }
            @if let Some(model) = model { dt { "Model" } dd { (visible(model)) } }
            @if let Some(effort) = effort { dt { "Effort" } dd { (layout::effort(effort)) } }
            dt { "Asked" } dd { (layout::ago(job.created_at, now)) " by " (visible(job.new.tool())) }
            @if visitor.view == PageView::AllOwners { dt { "Owner" } dd { (visible(job.new.owner.as_str())) } }
            @if job.ended_at().is_some() { dt { "Took" } dd { (took(job.elapsed(now).as_secs())) } }
            dt { "Job" }
            dd {
                span .id #job-id { (job.id.to_string()) } " "
                button .link.noprint type="button" data-copy="job-id" hidden { "Copy" }
            }
        }
    }
}

/// Renders the actions that are available now.
fn actions(asked: &PageRequest, job: &Job, check: Option<&CitationCheck>) -> Markup {
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
                JobState::Succeeded { .. } => {
                    button type="button" data-copy-report={ "/ui/jobs/" (id) "/export/md" } hidden { "Copy" }
                    @if asked.options().checks.is_some() && job.has_report() {
                        (form("check", if check.is_some() { "Check citations again" } else { "Check citations" }, None))
                    }
                    (downloads::links(&format!("/ui/jobs/{id}")))
                    button type="button" data-print hidden { "Print" }
                },
            }
            @if job.state.kind().is_terminal() && job.new.conversation.is_some() {
                (form("delete", "Delete", Some("danger")))
            }
        }
    }
}

/// Renders the partial text (G8), or the failure with the effect of a retry.
fn without_report(job: &Job) -> Markup {
    let failure = match &job.state {
        JobState::Failed { .. } => job.failures.last(),
        _ => None,
    };
    html! {
        @if let Some(partial) = &job.partial {
            div .notice { p { "The text so far; it is being written and is not the report." } }
            article .report { (report(partial, &[], 1).text) }
        } @else if let Some(failure) = failure {
            div .notice.bad {
                p { strong { (failure.code.to_string()) } }
                p { (with_code(&failure.message)) }
                @if let Some(effect) = timeline::retry_text(job) { p { strong { "Retry" } " " (effect) "." } }
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
        h2 { a href={ "/ui/conversations/" (conversation.id.as_str()) } { "Conversation" } }
        ol {
            @for turn in conversation.turns() {
                li {
                    @if turn.id == job.id {
                        strong { (visible(&turn.new.title)) }
                    } @else {
                        a href={ "/ui/jobs/" (turn.id.to_string()) } { (visible(&turn.new.title)) }
                    }
                    " " (layout::state(turn.kind()))
                }
            }
        }
    }
}
