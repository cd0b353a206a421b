//! Conversations: the list, and one conversation with all its questions in order.

use axum::extract::{Path, Query};
use outlast_core::{ConversationId, ConversationQuery, Cursor, StateKind};

use super::form::{Fields, address};
use super::layout::{self, Tab, View};
use super::request::{PageRequest, PageResult};
use super::{asking, downloads};
use crate::export::{Turn, answer_html, escaped};
use crate::text::counted;

const PAGE: u32 = 50;

pub(super) async fn list(asked: PageRequest, Query(fields): Query<Fields>) -> PageResult {
    let (engine, visitor) = (asked.engine(), &asked.visitor);
    let states: Vec<StateKind> =
        fields.get("state").and_then(StateKind::parse).into_iter().collect();
    let after = fields.get("after").and_then(|after| after.parse().ok()).map(Cursor);
    let query = ConversationQuery { states, limit: PAGE, after };
    let page = asked.read(engine.conversations(&visitor.owner, &query).await)?;
    let now = engine.now();
    let rows: String = page
        .conversations
        .iter()
        .map(|found| {
            let id = escaped(found.id.as_str());
            let questions = counted(found.turns as usize, "question", "questions");
            format!(
                "<li class=\"job\" id=\"conversation-{id}\">{}<div class=\"what\"><a class=\"title\" href=\"/ui/conversations/{id}\">{}</a></div>\
                 <div class=\"who\">{questions}</div><div class=\"num\"></div><div class=\"num\">{}</div></li>\n",
                layout::state(found.state),
                escaped(&found.title),
                layout::ago(found.updated_at, now),
            )
        })
        .collect();
    let rows = match rows.as_str() {
        "" => "<div class=\"notice\" id=\"jobs\" data-part><p>No conversations yet.</p><p><a href=\"/ui/ask\">Ask a question</a></p></div>\n".to_owned(),
        rows => format!("<ul class=\"jobs\" id=\"jobs\" data-part data-rows aria-label=\"Conversations, newest first\">\n{rows}</ul>\n"),
    };
    let more = page.next.map(|Cursor(after)| {
        let address = address("/ui/conversations", &[("after", &after.to_string())]);
        format!(
            "<p class=\"actions\"><a class=\"button\" rel=\"next\" href=\"{}\">Older</a></p>\n",
            escaped(&address)
        )
    });
    let body = format!("<h1>Conversations</h1>\n{rows}{}", more.unwrap_or_default());
    let live = Some("/ui/events".to_owned());
    Ok(View { title: "Conversations", tab: Tab::Conversations, live, body }.answer(visitor))
}

pub(super) async fn view(asked: PageRequest, Path(id): Path<String>) -> PageResult {
    let (engine, visitor) = (asked.engine(), &asked.visitor);
    let id = ConversationId::new(id);
    let conversation = asked.found(engine.conversation(&visitor.owner, &id).await)?;
    let now = engine.now();
    let mut body = String::from("<div class=\"reading\">\n");
    for (number, job) in (1..).zip(conversation.turns()) {
        let turn = Turn::of(job);
        let heading = if number == 1 { "h1" } else { "h2" };
        let answer = match &turn.answer {
            Some(answer) => answer_html(answer, number),
            None => job.failures.last().filter(|_| job.state.kind().is_terminal()).map_or_else(
                String::new,
                |failure| {
                    format!(
                        "<p>{}: {}</p>",
                        escaped(&failure.code.to_string()),
                        escaped(&failure.message)
                    )
                },
            ),
        };
        body.push_str(&format!(
            "<section id=\"turn-{number}\" data-part><{heading} class=\"question\">{}</{heading}>\n\
             <p class=\"facts\">{} {} &middot; <a href=\"/ui/jobs/{}\">job</a></p>\n{answer}</section>\n",
            escaped(turn.question.trim()),
            layout::state(job.state.kind()),
            layout::ago(job.created_at, now),
            job.id,
        ));
    }
    let address = format!("/ui/conversations/{}", escaped(id.as_str()));
    body.push_str("<div class=\"actions noprint\">");
    body.push_str(&downloads::links(&address));
    let last = conversation.last();
    if last.state.kind().is_terminal() {
        body.push_str(&format!("<form method=\"post\" action=\"/ui/jobs/{}/delete\"><button class=\"danger\">Delete</button></form>", last.id));
    }
    body.push_str("</div>\n");
    body.push_str(&asking::follow_up_form(asked.options(), last, Some(&conversation)));
    body.push_str("</div>\n");
    let live = Some("/ui/events".to_owned());
    Ok(View { title: &last.new.title, tab: Tab::Conversations, live, body }.answer(visitor))
}
