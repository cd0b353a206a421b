//! One job: its standing, the money, its timeline, the report and the available actions (I3).

use axum::extract::Path;
use outlast_core::conversation::Conversation;
use outlast_core::{Job, JobQuery, JobState, StoreError};
use outlast_engine::Reading;

use super::layout::{self, Tab, View};
use super::options::PageView;
use super::request::{PageRequest, PageResult};
use super::session::Visitor;
use super::{asking, downloads, timeline};
use crate::export::{Turn, answer_html, escaped, question_of, report};
use crate::text::took;

pub(super) async fn view(asked: PageRequest, Path(id): Path<String>) -> PageResult {
    let id = asked.job_id(&id)?;
    let reading = asked.found(asked.engine().reading(&asked.visitor.scope(), &id).await)?;
    let body = asked.read(body(&asked, &reading).await)?;
    let live = Some(format!("/ui/events?job={id}"));
    Ok(View { title: &reading.job.new.title, tab: Tab::Jobs, live, body }.answer(&asked.visitor))
}

async fn body(asked: &PageRequest, reading: &Reading) -> Result<String, StoreError> {
    let (engine, visitor) = (asked.engine(), &asked.visitor);
    let Reading { job, now, .. } = reading;
    let is_own = job.new.owner == visitor.owner;
    let standing = reading.standing();
    let bar = match (job.state.kind().is_terminal(), standing.percent()) {
        (false, Some(percent)) => layout::bar(percent, "Progress"),
        _ => String::new(),
    };
    let mut text = format!(
        "<div class=\"reading\">\n<h1 class=\"question\">{}</h1>\n\
         <section id=\"standing\" class=\"big\" data-part aria-live=\"polite\">\n<p>{} <span class=\"soft\">{}</span></p>{bar}\n</section>\n",
        escaped(question_of(job).trim()),
        layout::state(job.state.kind()),
        escaped(&beside_state(job, standing.words())),
    );
    text.push_str(&facts(job, visitor, *now));
    if is_own {
        text.push_str(&actions(job));
    }
    text.push_str(&result(job));
    let conversation = match job.new.conversation.as_ref().filter(|_| is_own) {
        Some(id) => engine.conversation(&visitor.owner, id).await?,
        None => None,
    };
    text.push_str(&conversation.as_ref().map_or_else(String::new, |found| turns(found, job)));
    if is_own {
        text.push_str(&asking::follow_up_form(asked.options(), job, conversation.as_ref()));
    }
    let query = JobQuery { id_prefix: Some(job.id.to_string()), limit: 1, ..JobQuery::default() };
    let listed = engine.list(&visitor.scope(), &query).await?.jobs;
    let charge = listed.into_iter().next().and_then(|summary| summary.charge);
    let rows = engine.ledger_rows(&visitor.scope(), &job.id).await?;
    text.push_str(&format!(
        "<section class=\"noprint\" id=\"money\" data-part aria-labelledby=\"money-title\"><h2 id=\"money-title\">Money</h2>\n{}</section>\n\
         <section class=\"noprint\" id=\"timeline\" data-part aria-labelledby=\"timeline-title\"><h2 id=\"timeline-title\">Timeline</h2>\n{}</section>\n</div>\n",
        timeline::money(job, charge.as_ref(), &rows),
        timeline::timeline(job, *now),
    ));
    Ok(text)
}

/// Returns the text next to the state of a job; empty if it would only repeat the state.
fn beside_state(job: &Job, words: String) -> String {
    match &job.state {
        JobState::Succeeded { .. } | JobState::Failed { .. } => String::new(),
        JobState::Queued { .. } | JobState::Running { .. } | JobState::Cancelled { .. } => words,
    }
}

fn facts(job: &Job, visitor: &Visitor, now: outlast_core::Timestamp) -> String {
    let mut facts = vec![escaped(job.new.profile.provider())];
    if let JobState::Succeeded { output, .. } = &job.state {
        facts.extend(output.model.as_deref().map(escaped));
    }
    facts.push(format!("asked {}", layout::ago(job.created_at, now)));
    facts.push(format!("by {}", escaped(job.new.tool())));
    if visitor.view == PageView::AllOwners {
        facts.push(format!("owner {}", escaped(job.new.owner.as_str())));
    }
    if job.ended_at().is_some() {
        facts.push(format!("took {}", took(job.elapsed(now).as_secs())));
    }
    facts.push(format!("<span class=\"id\">{}</span>", job.id));
    format!("<p class=\"facts\" id=\"facts\" data-part>{}</p>\n", facts.join(" &middot; "))
}

/// Returns the actions that are available now.
fn actions(job: &Job) -> String {
    let id = job.id;
    let form = |action: &str, name: &str, class: &str| {
        format!(
            "<form method=\"post\" action=\"/ui/jobs/{id}/{action}\"><button class=\"{class}\">{name}</button></form>\n"
        )
    };
    let mut text = String::new();
    match &job.state {
        JobState::Queued { .. } | JobState::Running { .. } => {
            text.push_str(&form("cancel", "Cancel", "danger"));
        }
        JobState::Failed { .. } | JobState::Cancelled { .. } => {
            text.push_str(&form("retry", "Retry", ""));
        }
        JobState::Succeeded { .. } => {
            text.push_str(&downloads::links(&format!("/ui/jobs/{id}")));
        }
    }
    if job.state.kind().is_terminal() && job.new.conversation.is_some() {
        text.push_str(&form("delete", "Delete", "danger"));
    }
    format!("<div class=\"actions\" id=\"actions\" data-part>\n{text}</div>\n")
}

/// Returns the report, or the partial text (G8).
fn result(job: &Job) -> String {
    if let Some(answer) = Turn::of(job).answer {
        return format!(
            "<section id=\"result\" data-part>\n{}</section>\n",
            answer_html(&answer, 1)
        );
    }
    if let Some(partial) = &job.partial {
        return format!(
            "<section id=\"result\" data-part><div class=\"notice\"><p>The text so far; it is being written and is not the report.</p></div>\n\
             <article class=\"report\">\n{}</article></section>\n",
            report(partial, &[], 1)
        );
    }
    let failed = match (&job.state, job.failures.last()) {
        (JobState::Failed { .. }, Some(failure)) => format!(
            "<div class=\"notice bad\"><p><strong>{}</strong>: {}</p></div>",
            escaped(&failure.code.to_string()),
            escaped(&failure.message)
        ),
        _ => String::new(),
    };
    format!("<section id=\"result\" data-part>{failed}</section>\n")
}

/// Returns the other questions of the conversation.
fn turns(conversation: &Conversation, job: &Job) -> String {
    if !conversation.was_continued() {
        return String::new();
    }
    let turns: String = conversation
        .turns()
        .map(|turn| {
            let title = escaped(&turn.new.title);
            let line = match turn.id == job.id {
                true => format!("<strong>{title}</strong>"),
                false => format!("<a href=\"/ui/jobs/{}\">{title}</a>", turn.id),
            };
            format!("<li>{line} {}</li>\n", layout::state(turn.state.kind()))
        })
        .collect();
    format!(
        "<section id=\"turns\" class=\"noprint\" data-part><h2><a href=\"/ui/conversations/{}\">Conversation</a></h2><ol>\n{turns}</ol></section>\n",
        escaped(conversation.id.as_str())
    )
}
