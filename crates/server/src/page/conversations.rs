//! Conversations: the list, and one conversation with all its questions in order.

use axum::extract::{Path, Query};
use maud::{Markup, html};
use outlast_core::{
    ConversationId, ConversationQuery, ConversationSummary, Cursor, Job, StateKind, Timestamp,
    visible,
};

use super::form::{Fields, address};
use super::layout::{self, Tab, View};
use super::request::{PageRequest, PageResult};
use super::{asking, downloads};
use crate::export::{Turn, answer_html, with_code};
use crate::text::count_noun;

const PAGE: u32 = 50;

pub(super) async fn list(asked: PageRequest, Query(fields): Query<Fields>) -> PageResult {
    let (engine, visitor) = (asked.engine(), &asked.visitor);
    let states: Vec<StateKind> =
        fields.get("state").and_then(StateKind::parse).into_iter().collect();
    let after = fields.get("after").and_then(|after| after.parse().ok()).map(Cursor);
    let query = ConversationQuery { states, limit: PAGE, after };
    let page = asked.read(engine.conversations(&visitor.owner, &query).await)?;
    let now = engine.now();
    let older =
        |Cursor(after): Cursor| address("/ui/conversations", &[("after", &after.to_string())]);
    let body = html! {
        h1 { "Conversations" }
        @if page.conversations.is_empty() {
            div .notice #jobs data-part {
                p { "No conversations yet." }
                p { a href="/ui/ask" { "Ask a question" } }
            }
        } @else {
            ul .jobs.conversations #jobs data-part data-rows aria-label="Conversations, newest first" {
                @for found in &page.conversations { (row(found, now)) }
            }
        }
        @if let Some(next) = page.next {
            p .actions { a .button rel="next" href=(older(next)) { "Older" } }
        }
    };
    let live = Some("/ui/events".to_owned());
    Ok(View { title: "Conversations", tab: Tab::Conversations, live, body }.answer(visitor))
}

fn row(found: &ConversationSummary, now: Timestamp) -> Markup {
    let id = found.id.as_str();
    html! {
        li .job id={ "conversation-" (id) } {
            (layout::state(found.state))
            div .what {
                a .title href={ "/ui/conversations/" (id) } { (visible(&found.title)) }
            }
            div .who { (count_noun(found.turns as usize, "question", "questions")) }
            div .num { (layout::ago(found.updated_at, now)) }
        }
    }
}

pub(super) async fn view(asked: PageRequest, Path(id): Path<String>) -> PageResult {
    let (engine, visitor) = (asked.engine(), &asked.visitor);
    let id = ConversationId::new(id);
    let conversation = asked.require_found(engine.conversation(&visitor.owner, &id).await)?;
    let now = engine.now();
    let last = conversation.last();
    let body = html! {
        div .reading {
            @for (number, job) in (1..).zip(conversation.turns()) { (turn(number, job, now)) }
            div .actions.noprint {
                (downloads::links(&format!("/ui/conversations/{}", id.as_str())))
                button type="button" data-print hidden { "Print" }
                @if last.state.kind().is_terminal() {
                    form method="post" action={ "/ui/jobs/" (last.id.to_string()) "/delete" } {
                        button .danger { "Delete" }
                    }
                }
            }
            (asking::follow_up_form(asked.options(), last, Some(&conversation)))
        }
    };
    let live = Some("/ui/events".to_owned());
    Ok(View { title: &last.new.title, tab: Tab::Conversations, live, body }.answer(visitor))
}

fn turn(number: usize, job: &Job, now: Timestamp) -> Markup {
    let turn = Turn::of(job);
    let failure = job.failures.last().filter(|_| job.state.kind().is_terminal());
    let question = visible(turn.question.trim());
    html! {
        section id={ "turn-" (number) } data-part {
            @if number == 1 {
                h1 .question dir="auto" { (question) }
            } @else {
                h2 .question dir="auto" { (question) }
            }
            p .facts {
                (layout::state(job.kind())) " " (layout::ago(job.created_at, now))
                " · " a href={ "/ui/jobs/" (job.id.to_string()) } { "job" }
            }
            @if let Some(answer) = &turn.answer {
                (answer_html(answer, number))
            } @else if let Some(failure) = failure {
                p { strong { (failure.code.to_string()) } ": " (with_code(&failure.message)) }
            }
        }
    }
}
