//! A conversation as one Markdown document with front matter.

use outlast_core::{Source, address_line, printable, without_hidden};
use serde_json::Value;

use super::claims::check_markdown;
use super::transcript::{Transcript, TurnAnswer};

/// Renders the document.
pub fn markdown_document(told: &Transcript) -> String {
    let mut text = format!(
        "---\nconversation: {}\nquestion: {}\ncreated: {}\nupdated: {}\nturns: {}\n---\n",
        yaml_string(&told.id),
        yaml_string(&told.title),
        yaml_string(&told.created_at),
        yaml_string(&told.updated_at),
        told.turns.len()
    );
    for turn in &told.turns {
        // A quotation keeps a question of several lines, or one that looks like a heading, in one piece.
        let question = printable(turn.question.trim()).replace('\n', "\n> ");
        text.push_str(&format!("\n> **Question:** {question}\n"));
        match &turn.answer {
            Some(answer) => push_answer(&mut text, answer),
            None => {
                text.push_str(&format!("\n*{}*\n", turn.state.as_str()));
                for failure in &turn.failures {
                    let message = markdown_text(&failure.message);
                    text.push_str(&format!("\n- {}: {message}\n", failure.code));
                }
            }
        }
    }
    text
}

fn push_answer(text: &mut String, answer: &TurnAnswer) {
    text.push_str(&format!("\n{}\n", answer.text.trim()));
    text.push_str(&markdown_sources(&answer.sources));
    if let Some(check) = &answer.check {
        text.push_str(&check_markdown(check));
    }
    let model = markdown_text(answer.model.as_deref().unwrap_or("unknown"));
    text.push_str(&format!("\n*model: {model}, cost: {}*\n", answer.price));
}

/// Quotes a YAML string. Every JSON string is also a YAML string.
pub fn yaml_string(text: &str) -> String {
    Value::from(text).to_string()
}

/// Renders the sources of a report under a heading; an empty string if there are none.
pub fn markdown_sources(sources: &[Source]) -> String {
    if sources.is_empty() {
        return String::new();
    }
    let lines = sources.iter().map(|source| {
        let title = source.title.as_deref().unwrap_or(&source.url);
        format!("{}. {} {}\n", source.number, markdown_text(title), markdown_address(&source.url))
    });
    format!("\n## Sources\n\n{}", lines.collect::<String>())
}

/// Puts external text on one line and escapes Markdown: a title cannot become a link, a heading or an entity.
pub(super) fn markdown_text(text: &str) -> String {
    let clean = without_hidden(&printable(text));
    let line = clean.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut escaped = String::with_capacity(line.len());
    // The marks of headings and lists count only at the start of a line.
    if line.starts_with(['#', '-', '+', '=']) {
        escaped.push('\\');
    }
    for character in line.chars() {
        if matches!(character, '\\' | '`' | '*' | '[' | ']' | '<' | '>' | '&' | '|' | '~') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// Renders an address as a link that the address cannot close; the path of a document is not a link.
fn markdown_address(address: &str) -> String {
    let line = address_line(address);
    let is_scheme =
        |scheme: &str| scheme.len() > 1 && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    match line.split_once("://") {
        Some((scheme, _)) if is_scheme(scheme) => format!("<{}>", line.replace(' ', "%20")),
        Some(_) | None => format!("<{}>", markdown_text(&line)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_cannot_leave_its_line_or_its_link() {
        let source = |url: &str, title: Option<&str>| {
            let title = title.map(ToOwned::to_owned);
            markdown_sources(&[Source {
                number: 1,
                url: url.to_owned(),
                title,
                ..Source::default()
            }])
        };
        let table = [
            (
                source("https://a.example/x_(y)", Some("A_b (c)")),
                "1. A_b (c) <https://a.example/x_(y)>",
            ),
            (
                source("https://a.example/\n\n# Not ours\n[x](y)", Some("t")),
                "1. t <https://a.example/%0A%0A#%20Not%20ours%0A[x](y)>",
            ),
            (
                source("https://a.example/> [x](https://b.example)", Some("t")),
                "1. t <https://a.example/%3E%20[x](https://b.example)>",
            ),
            (
                source("https://a.example", Some("a](https://b.example) <b>\n# c &#27;\u{202e}")),
                "1. a\\](https://b.example) \\<b\\> # c \\&#27; <https://a.example>",
            ),
            (source("notes/my file.md", Some("t")), "1. t <notes/my file.md>"),
            (
                source("notes/[x](https://b.example).md", Some("# t")),
                "1. \\# t <notes/\\[x\\](https://b.example).md>",
            ),
        ];
        for (text, expected) in table {
            assert_eq!(text, format!("\n## Sources\n\n{expected}\n"));
        }
    }
}
