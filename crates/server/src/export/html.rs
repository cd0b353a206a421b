//! A conversation as one HTML page that loads nothing and runs nothing, whatever a report contains. All external text is
//! escaped; a link has the scheme http, https or mailto, or it is rendered as text.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use outlast_core::{Source, address_line, visible, without_hidden};
use pulldown_cmark::html::push_html;
use pulldown_cmark::{CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd, TextMergeStream};

use super::transcript::{Transcript, Turn, TurnAnswer};
use crate::text::{counted, readable_time};

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
                        (visible(&created)) " · " (counted(told.turns.len(), "question", "questions"))
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
                h1 .question { (question) }
            } @else {
                h2 .question { (question) }
            }
            @if let Some(answer) = &turn.answer {
                (answer_html(answer, number))
            } @else {
                p .facts { (turn.state.as_str()) }
                ul {
                    @for failure in &turn.failures {
                        li { (visible(&failure.code)) ": " (visible(&failure.message)) }
                    }
                }
            }
        }
    }
}

/// Renders a report, its sources and its cost. The number separates the anchors of several reports on one page.
pub(crate) fn answer_html(answer: &TurnAnswer, number: usize) -> Markup {
    html! {
        article .report { (report(&answer.text, &answer.sources, number)) }
        @if !answer.sources.is_empty() {
            h2 .sources-title { "Sources" }
            ol .sources { @for source in &answer.sources { (source_line(source, number)) } }
        }
        p .facts {
            (visible(answer.model.as_deref().unwrap_or("unknown model"))) " · cost " (visible(&answer.price))
        }
    }
}

fn source_line(source: &Source, number: usize) -> Markup {
    let url = address_line(&source.url);
    let title = source.title.as_deref().map(without_hidden);
    let title = visible(title.as_deref().unwrap_or(&url)).into_owned();
    html! {
        li value=(source.number) id={ "s" (number) "-" (source.number) } {
            @if is_allowed(&source.url) {
                a href=(url) rel="noopener noreferrer" { (title) }
            } @else {
                (title)
            }
            br;
            span .address {
                (url)
                @if let Some(date) = &source.date { " · " (visible(date)) }
            }
        }
    }
}

/// Renders Markdown as HTML that contains only our own tags, in which `[n]` links to source `n`.
pub(crate) fn report(markdown: &str, sources: &[Source], number: usize) -> Markup {
    let mut links = Vec::new();
    let mut in_code = false;
    let parsed = Parser::new_ext(markdown, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH);
    let safe = parsed.filter_map(|event| match event {
        // Filtered here, after the parser has decoded entities: an entity can encode a control character or a hidden one.
        Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => {
            Some(Event::Text(CowStr::from(visible(&text).into_owned())))
        }
        Event::Code(code) => Some(Event::Code(CowStr::from(visible(&code).into_owned()))),
        Event::Start(Tag::CodeBlock(_)) => {
            Some(Event::Start(Tag::CodeBlock(CodeBlockKind::Indented)))
        }
        Event::Start(Tag::Link { dest_url, .. }) => {
            let allowed = is_allowed(&dest_url);
            links.push(allowed);
            allowed.then(|| {
                let link = html! { a href=(address_line(&dest_url)) rel="noopener noreferrer" {} };
                Event::InlineHtml(CowStr::from(opening(link)))
            })
        }
        Event::End(TagEnd::Link) => match links.pop() {
            Some(true) => Some(Event::InlineHtml(CowStr::from("</a>"))),
            _ => None,
        },
        // The image is on another server, and loading it would reveal the reader to that server.
        Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => None,
        event => Some(event),
    });
    let mut depth = 0_usize;
    let cited = TextMergeStream::new(safe).map(|event| match event {
        Event::Start(Tag::CodeBlock(_)) => {
            in_code = true;
            event
        }
        Event::End(TagEnd::CodeBlock) => {
            in_code = false;
            event
        }
        Event::InlineHtml(tag) => {
            depth = if &*tag == "</a>" { depth.saturating_sub(1) } else { depth + 1 };
            Event::InlineHtml(tag)
        }
        Event::Text(text) if !in_code && depth == 0 => match with_citations(&text, sources, number)
        {
            Some(html) => Event::InlineHtml(CowStr::from(html.into_string())),
            None => Event::Text(text),
        },
        event => event,
    });
    let mut text = String::new();
    push_html(&mut text, cited);
    PreEscaped(text)
}

/// Returns the opening tag of an empty element.
fn opening(element: Markup) -> String {
    let mut tag = element.into_string();
    tag.truncate(tag.rfind("</").unwrap_or(tag.len()));
    tag
}

/// Renders the text as HTML with its citations as links; `None` if it cites no listed source.
fn with_citations(text: &str, sources: &[Source], number: usize) -> Option<Markup> {
    let mut parts = Vec::new();
    let mut rest = text;
    let mut found = false;
    while let Some(open) = rest.find('[') {
        let (before, from) = rest.split_at(open);
        let cited = from.find(']').and_then(|close| {
            let cited: u32 = from[1..close].parse().ok()?;
            sources.iter().find(|source| source.number == cited).map(|source| (close, source))
        });
        parts.push(html! { (before) });
        match cited {
            Some((close, source)) => {
                found = true;
                let title = source.title.as_deref().map(without_hidden);
                let title = title.unwrap_or_else(|| address_line(&source.url).into_owned());
                let to = source.number;
                parts.push(html! {
                    a .cite href={ "#s" (number) "-" (to) } title=(visible(&title)) { "[" (to) "]" }
                });
                rest = &from[close + 1..];
            }
            None => {
                parts.push(html! { "[" });
                rest = &from[1..];
            }
        }
    }
    parts.push(html! { (rest) });
    found.then(|| html! { @for part in parts { (part) } })
}

fn is_allowed(address: &str) -> bool {
    let address = address.trim_start().to_ascii_lowercase();
    ["https://", "http://", "mailto:"].iter().any(|scheme| address.starts_with(scheme))
}

#[cfg(test)]
mod tests;
