//! A conversation as one HTML page that loads nothing and runs nothing, whatever a report contains. All external text is
//! escaped; a link has the scheme http, https or mailto, or it is rendered as text.

use outlast_core::{Source, address_line, visible, without_hidden};
use pulldown_cmark::{
    CodeBlockKind, CowStr, Event, Options, Parser, Tag, TagEnd, TextMergeStream, html,
};

use super::transcript::{Transcript, Turn, TurnAnswer};
use crate::text::{counted, readable_time};

/// Renders the page.
pub fn html_page(told: &Transcript) -> String {
    let turns: String =
        (1..).zip(&told.turns).map(|(number, turn)| self::turn(number, turn)).collect();
    let title = escaped(&told.title);
    // A single question is the heading and is not repeated.
    let questions = counted(told.turns.len(), "question", "questions");
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{title}</title>\n<style>{STYLE}{REPORT_STYLE}</style>\n</head>\n<body>\n\
         <header>\n{heading}<p class=\"facts\">{} &middot; {questions} &middot; conversation {}</p>\n</header>\n\
         {turns}</body>\n</html>\n",
        escaped(&readable_time(&told.created_at, "%-d %B %Y, %H:%M UTC")),
        escaped(&told.id),
        heading = match told.turns.as_slice() {
            [_] => String::new(),
            _ => format!("<h1>{title}</h1>\n"),
        },
    )
}

/// The content security policy: if a script got in, browsers would not run it, and it could not send anything.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

const STYLE: &str = include_str!("export.css");
/// The style of reports, here and on the page.
pub(crate) const REPORT_STYLE: &str = include_str!("report.css");

fn turn(number: usize, turn: &Turn) -> String {
    let answer = match &turn.answer {
        Some(answer) => answer_html(answer, number),
        None => {
            let failures: String = turn
                .failures
                .iter()
                .map(|failure| {
                    format!("<li>{}: {}</li>\n", escaped(&failure.code), escaped(&failure.message))
                })
                .collect();
            format!("<p class=\"facts\">{}</p>\n<ul>{failures}</ul>\n", turn.state.as_str())
        }
    };
    let heading = if number == 1 { "h1" } else { "h2" };
    let question = escaped(turn.question.trim());
    format!("<section>\n<{heading} class=\"question\">{question}</{heading}>\n{answer}</section>\n")
}

/// Renders a report, its sources and its cost. The number separates the anchors of several reports on one page.
pub(crate) fn answer_html(answer: &TurnAnswer, number: usize) -> String {
    let report = report(&answer.text, &answer.sources, number);
    let mut text = format!("<article class=\"report\">\n{report}</article>\n");
    if !answer.sources.is_empty() {
        text.push_str("<h2 class=\"sources-title\">Sources</h2>\n<ol class=\"sources\">\n");
        for source in &answer.sources {
            let url = escaped(&address_line(&source.url));
            let title = source.title.as_deref().map(|title| escaped(&without_hidden(title)));
            let title = title.unwrap_or_else(|| url.clone());
            let line = match is_allowed(&source.url) {
                true => format!("<a href=\"{url}\" rel=\"noopener noreferrer\">{title}</a>"),
                false => title,
            };
            let date = source.date.as_deref().map(|date| format!(" &middot; {}", escaped(date)));
            text.push_str(&format!(
                "<li value=\"{}\" id=\"s{number}-{}\">{line}<br><span class=\"address\">{url}{}</span></li>\n",
                source.number,
                source.number,
                date.unwrap_or_default()
            ));
        }
        text.push_str("</ol>\n");
    }
    let model = escaped(answer.model.as_deref().unwrap_or("unknown model"));
    text.push_str(&format!(
        "<p class=\"facts\">{model} &middot; cost {}</p>\n",
        escaped(&answer.price)
    ));
    text
}

/// Renders Markdown as HTML that contains only our own tags, in which `[n]` links to source `n`.
pub(crate) fn report(markdown: &str, sources: &[Source], number: usize) -> String {
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
                let open = format!(
                    "<a href=\"{}\" rel=\"noopener noreferrer\">",
                    escaped(&address_line(&dest_url))
                );
                Event::InlineHtml(CowStr::from(open))
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
            Some(html) => Event::InlineHtml(CowStr::from(html)),
            None => Event::Text(text),
        },
        event => event,
    });
    let mut text = String::new();
    html::push_html(&mut text, cited);
    text
}

/// Renders the text as HTML with its citations as links; `None` if it cites no listed source.
fn with_citations(text: &str, sources: &[Source], number: usize) -> Option<String> {
    let mut html = String::new();
    let mut rest = text;
    let mut found = false;
    while let Some(open) = rest.find('[') {
        let (before, from) = rest.split_at(open);
        html.push_str(&escaped(before));
        let cited = from.find(']').and_then(|close| {
            let cited: u32 = from[1..close].parse().ok()?;
            sources.iter().find(|source| source.number == cited).map(|source| (close, source))
        });
        match cited {
            Some((close, source)) => {
                found = true;
                let title = source.title.as_deref().map(without_hidden);
                let title =
                    escaped(&title.unwrap_or_else(|| address_line(&source.url).into_owned()));
                html.push_str(&format!(
                    "<a class=\"cite\" href=\"#s{number}-{n}\" title=\"{title}\">[{n}]</a>",
                    n = source.number
                ));
                rest = &from[close + 1..];
            }
            None => {
                html.push('[');
                rest = &from[1..];
            }
        }
    }
    html.push_str(&escaped(rest));
    found.then_some(html)
}

fn is_allowed(address: &str) -> bool {
    let address = address.trim_start().to_ascii_lowercase();
    ["https://", "http://", "mailto:"].iter().any(|scheme| address.starts_with(scheme))
}

/// Escapes external text for a person to read: removes control characters, and shows hidden characters by their numbers.
pub(crate) fn escaped(text: &str) -> String {
    escaped_exactly(&visible(text))
}

/// Escapes text for HTML or a quoted attribute, without any other change.
pub(crate) fn escaped_exactly(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
