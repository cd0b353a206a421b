//! A conversation as one HTML page that loads nothing and runs nothing, whatever a report contains. All external text is
//! escaped; a link has the scheme http, https or mailto, or it is rendered as text.

use std::collections::BTreeSet;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use outlast_core::{Source, address_line, visible, without_hidden};
use outlast_sources::CitationCheck;
use pulldown_cmark::HeadingLevel;

use super::addresses::{is_allowed, site};
use super::claims::{check_html, source_mark};
use super::report::{ReportHeading, report_with_check};
use super::transcript::{Transcript, Turn, TurnAnswer};
use crate::text::{count_noun, readable_time};

/// Renders the page.
pub fn html_page(told: &Transcript) -> String {
    let title = visible(&told.title);
    let created = readable_time(&told.created_at, "%-d %B %Y, %H:%M UTC");
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="referrer" content="no-referrer";
                title { (title) }
                style { (PreEscaped(STYLE)) (PreEscaped(REPORT_STYLE)) }
            }
            body {
                header {
                    // A single question is the heading and is not repeated.
                    @if told.turns.len() != 1 { h1 { (title) } }
                    p .facts {
                        (visible(&created)) " · " (count_noun(told.turns.len(), "question", "questions"))
                        " · conversation " (visible(&told.id))
                    }
                }
                @for (number, turn) in (1..).zip(&told.turns) { (self::turn(number, turn)) }
            }
        }
    };
    page.into_string()
}

/// The content security policy: if a script got in, browsers would not run it, and it could not send anything.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

const STYLE: &str = include_str!("export.css");
/// The style of reports, here and on the page.
pub(crate) const REPORT_STYLE: &str = include_str!("report.css");

fn turn(number: usize, turn: &Turn) -> Markup {
    let question = visible(turn.question.trim());
    html! {
        section {
            @if number == 1 {
                h1 .question dir="auto" { (question) }
            } @else {
                h2 .question dir="auto" { (question) }
            }
            @if let Some(answer) = &turn.answer {
                (answer_html(answer, number))
            } @else {
                p .facts { (turn.state.as_str()) }
                ul {
                    @for failure in &turn.failures {
                        li { (visible(&failure.code)) ": " (with_code(&failure.message)) }
                    }
                }
            }
        }
    }
}

/// Renders a report, its sources and its cost. The number separates the ids of several reports on one page.
pub(crate) fn answer_html(answer: &TurnAnswer, number: usize) -> Markup {
    let check = answer.check.as_ref();
    let report = report_with_check(&answer.text, &answer.sources, number, check);
    html! {
        @if has_contents(&report.headings) {
            details .contents { summary { "Contents" } (contents(&report.headings)) }
        }
        article .report { (report.text) }
        @if !answer.sources.is_empty() {
            h2 .sources-title { "Sources" }
            (source_cards(&answer.sources, number, check))
        }
        @if let Some(check) = check { (check_html(check, number)) }
        p .facts {
            (visible(answer.model.as_deref().unwrap_or("unknown model"))) " · cost " (visible(&answer.price))
        }
    }
}

/// The number of headings from which a report has a table of contents.
const MIN_HEADINGS: usize = 3;

/// Returns true if the report is long enough for a table of contents.
pub(crate) fn has_contents(headings: &[ReportHeading]) -> bool {
    headings.len() >= MIN_HEADINGS
}

/// Renders the table of contents: the two highest levels of headings.
pub(crate) fn contents(headings: &[ReportHeading]) -> Markup {
    let highest = headings.iter().map(|heading| heading.level).min();
    // A title above everything is not a level.
    let is_title = |level| headings.iter().filter(|heading| heading.level == level).count() == 1;
    let levels: BTreeSet<HeadingLevel> = headings.iter().map(|heading| heading.level).collect();
    let shown: Vec<HeadingLevel> = levels
        .into_iter()
        .filter(|level| Some(*level) != highest || !is_title(*level))
        .take(2)
        .collect();
    html! {
        ul {
            @for heading in headings.iter().filter(|heading| shown.contains(&heading.level)) {
                li .sub[Some(&heading.level) != shown.first()] {
                    a href={ "#" (heading.id) } dir="auto" { (heading.title.trim()) }
                }
            }
        }
    }
}

/// Renders the sources of a report, each with its title, site and date.
pub(crate) fn source_cards(
    sources: &[Source],
    number: usize,
    check: Option<&CitationCheck>,
) -> Markup {
    let checked = |number| check.and_then(|check| check.sources.iter().find(|it| it.n == number));
    html! {
        ol .sources {
            @for source in sources {
                li value=(source.number) id={ "s" (number) "-" (source.number) } {
                    (source_card(source))
                    @if let Some(checked) = checked(source.number) { (source_mark(checked)) }
                }
            }
        }
    }
}

fn source_card(source: &Source) -> Markup {
    let url = address_line(&source.url);
    let title = source.title.as_deref().map(without_hidden).filter(|title| !title.is_empty());
    let title = visible(title.as_deref().unwrap_or(&url)).into_owned();
    html! {
        @if is_allowed(&source.url) {
            a .source-title href=(url) rel="noopener noreferrer" dir="auto" { (title) }
        } @else {
            span .source-title dir="auto" { (title) }
        }
        span .site {
            @if let Some(site) = site(&url) { b { (site) } }
            @if let Some(date) = &source.date { " · " (visible(date)) }
        }
        span .address { (url) }
    }
}

/// Renders text with its commands, which are between backticks, as code.
pub(crate) fn with_code(text: &str) -> Markup {
    let text = visible(text);
    // Without a partner, a backtick is text.
    let pairs = text.matches('`').count() / 2;
    let mut rest = &*text;
    let mut parts = Vec::with_capacity(pairs);
    for _ in 0..pairs {
        if let Some((before, after)) = rest.split_once('`')
            && let Some((code, after)) = after.split_once('`')
        {
            parts.push((before, code));
            rest = after;
        }
    }
    html! { @for (before, code) in parts { (before) code { (code) } } (rest) }
}

#[cfg(test)]
mod tests;
