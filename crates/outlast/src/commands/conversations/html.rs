//! A conversation as one HTML page: nothing is loaded, nothing runs, and what a report says cannot change that. Whatever
//! comes from outside is escaped; a link leads to http, https or mailto, or is no link.

use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

use super::transcript::{Transcript, Turn, TurnAnswer};
use crate::ui;

/// The page.
pub(super) fn page(told: &Transcript) -> String {
    let turns: String = told.turns.iter().map(turn).collect();
    let title = escaped(&told.title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <header>\n<h1>{title}</h1>\n<p class=\"facts\">{} &middot; {} &middot; conversation {}</p>\n</header>\n\
         {turns}</body>\n</html>\n",
        escaped(&told.created_at),
        ui::count(told.turns.len(), "question", "questions"),
        escaped(&told.id),
    )
}

/// Were a script to get in, no browser would run it, and nothing could be sent anywhere.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

const STYLE: &str = include_str!("page.css");

fn turn(turn: &Turn) -> String {
    let question = escaped(turn.question.trim()).replace('\n', "<br>\n");
    let answer = match &turn.answer {
        Some(answer) => self::answer(answer),
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
    format!("<section>\n<p class=\"question\">{question}</p>\n{answer}</section>\n")
}

fn answer(answer: &TurnAnswer) -> String {
    let mut text = format!("<article>\n{}</article>\n", report(&answer.text));
    if !answer.sources.is_empty() {
        text.push_str("<h2>Sources</h2>\n<ol class=\"sources\">\n");
        for source in &answer.sources {
            let title = escaped(source.title.as_deref().unwrap_or(&source.url));
            let url = escaped(&source.url);
            let line = match is_allowed(&source.url) {
                true => format!("<a href=\"{url}\" rel=\"noopener noreferrer\">{title}</a>"),
                false => title,
            };
            text.push_str(&format!(
                "<li value=\"{}\">{line}<br><span class=\"address\">{url}</span></li>\n",
                source.number
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

/// Markdown as HTML in which only our own tags are tags.
fn report(markdown: &str) -> String {
    let mut links = Vec::new();
    let events =
        Parser::new_ext(markdown, Options::ENABLE_TABLES).filter_map(|event| match event {
            Event::Html(text) | Event::InlineHtml(text) => Some(Event::Text(text)),
            Event::Start(Tag::Link { dest_url, .. }) => {
                let allowed = is_allowed(&dest_url);
                links.push(allowed);
                allowed.then(|| {
                    let open =
                        format!("<a href=\"{}\" rel=\"noopener noreferrer\">", escaped(&dest_url));
                    Event::InlineHtml(CowStr::from(open))
                })
            }
            Event::End(TagEnd::Link) => match links.pop() {
                Some(true) => Some(Event::InlineHtml(CowStr::from("</a>"))),
                _ => None,
            },
            // What it shows lies elsewhere, and loading it would tell that server who reads this.
            Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => None,
            event => Some(event),
        });
    let mut text = String::new();
    html::push_html(&mut text, events);
    text
}

fn is_allowed(address: &str) -> bool {
    let address = address.trim_start().to_ascii_lowercase();
    ["https://", "http://", "mailto:"].iter().any(|scheme| address.starts_with(scheme))
}

fn escaped(text: &str) -> String {
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
mod tests {
    use outlast_core::{Source, StateKind};

    use super::*;

    /// Everything a report, a source or a question might try.
    const HOSTILE: &str = "# Hi <script>alert(1)</script>\n\n<script>alert(2)</script>\n\n\
        <img src=x onerror=alert(3)>\n\n[a](javascript:alert(4)) [b](JaVaScRiPt:alert(5)) [c](  javascript:alert(6))\n\n\
        [d](data:text/html,<script>alert(7)</script>) <javascript:alert(8)> [e](vbscript:x) [f](//evil.example)\n\n\
        ![i](https://evil.example/pixel.png) ![j](javascript:alert(9))\n\n\
        [g](https://good.example/\"onmouseover=alert(10)) `</code><script>alert(11)</script>`\n\n\
        ```\"><script>\n</pre><script>alert(12)</script>\n```\n\n\
        | <script>alert(13)</script> |\n|---|\n| <style>*{display:none}</style> |\n\n\
        [h]: javascript:alert(14)\n\n[h] <iframe src=x></iframe> <svg onload=alert(15)> </article></body>\n";

    fn hostile() -> Transcript {
        let source = Source {
            number: 1,
            url: "javascript:alert(16)".to_owned(),
            title: Some("\"><script>alert(17)</script>".to_owned()),
            ..Source::default()
        };
        let answer = TurnAnswer {
            text: HOSTILE.to_owned(),
            sources: vec![source],
            model: Some("<script>".to_owned()),
            usage: None,
            cost: None,
            price: "<b>".to_owned(),
        };
        let turn = Turn {
            job: None,
            question: "'\"></title><script>alert(18)</script>".to_owned(),
            state: StateKind::Succeeded,
            asked_at: None,
            ended_at: None,
            failures: Vec::new(),
            answer: Some(answer),
        };
        Transcript {
            id: "<script>".to_owned(),
            title: turn.question.clone(),
            state: StateKind::Succeeded,
            created_at: "<script>".to_owned(),
            updated_at: String::new(),
            turns: vec![turn],
        }
    }

    /// The tags of a page with their attributes, as a browser would find them.
    fn tags(page: &str) -> Vec<&str> {
        page.split('<').skip(1).map(|rest| rest.split('>').next().unwrap_or_default()).collect()
    }

    #[test]
    fn a_hostile_report_can_run_load_and_break_nothing() {
        let page = page(&hostile());
        let known = [
            "html", "head", "meta", "title", "style", "body", "header", "h1", "h2", "p", "section",
            "article", "a", "ol", "li", "span", "br", "code", "pre", "table", "thead", "tbody",
            "tr", "th", "td",
        ];
        for tag in tags(&page).into_iter().filter(|tag| *tag != "!doctype html") {
            let name = tag.trim_start_matches('/').split([' ', '\n']).next().unwrap_or_default();
            assert!(known.contains(&name), "<{tag}>");
            let attributes = tag.strip_prefix(name).unwrap_or_default();
            for attribute in attributes.split('"').step_by(2) {
                let name = attribute.trim().trim_end_matches('=');
                let known = [
                    "",
                    "lang",
                    "charset",
                    "http-equiv",
                    "content",
                    "name",
                    "class",
                    "href",
                    "rel",
                    "value",
                ];
                assert!(known.contains(&name), "<{tag}>: {name}");
            }
            if name == "a" && tag != "/a" {
                assert!(tag.starts_with("a href=\"https://good.example/"), "<{tag}>");
            }
        }
        assert_eq!(page.matches("<style>").count(), 1);
        assert_eq!(page.matches("</body>").count(), 1);
    }

    #[test]
    fn a_page_says_what_was_asked_and_answered() {
        let mut told = hostile();
        told.turns[0].question = "Why?".to_owned();
        told.turns[0].answer.as_mut().unwrap().text = "# Because\n\n- of **this** [1]".to_owned();
        let page = page(&told);
        for part in
            ["<p class=\"question\">Why?</p>", "<h1>Because</h1>", "<strong>this</strong> [1]"]
        {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
}
