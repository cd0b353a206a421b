//! Plain text, reStructuredText and AsciiDoc. Headings are recognised by their lines, and the rest is read as
//! Markdown.
//!
//! Each line is rewritten to exactly one equivalent line of Markdown, so that line numbers stay correct.

use super::document::Document;
use super::markdown;

/// Parses plain text; underlined lines are headings.
pub(super) fn parse_text(text: &str) -> Document {
    let mut lines: Vec<String> = text.lines().map(plain_line).collect();
    // A short first line followed by a blank line is the title.
    if let Some(first) = lines.iter().position(|line| !line.is_empty())
        && lines.get(first + 1).is_some_and(String::is_empty)
        && lines[first].chars().count() <= 80
        && !lines[first].ends_with(['.', ':', ','])
    {
        lines[first].insert_str(0, "# ");
    }
    markdown::parse(&lines.join("\n"))
}

/// Parses reStructuredText.
pub(super) fn parse_rst(text: &str) -> Document {
    let lines: Vec<&str> = text.lines().collect();
    let mut levels: Vec<(char, bool)> = Vec::new();
    let mut level = 0;
    let mut rewritten: Vec<String> = Vec::with_capacity(lines.len());
    let mut literal = Literal::No;
    // Lines further to the right belong to the literal.
    let mut indent = 0;
    let mut table = Table::default();
    for (at, line) in lines.iter().enumerate() {
        let trimmed = line.trim();
        let this_indent = line.len() - line.trim_start().len();
        let indented = this_indent > 0;
        if !trimmed.is_empty() && this_indent <= indent {
            literal = Literal::No;
        }
        if let Literal::Drop | Literal::Code = literal {
            // Options of a directive (":name: value") are not text for readers.
            let keep = literal == Literal::Code && !is_field(trimmed);
            rewritten.push(if keep { format!("    {line}") } else { String::new() });
            continue;
        }
        let next = lines.get(at + 1).map_or("", |next| next.trim_end());
        if let Some(row) = table.row(line, &lines[at..]) {
            rewritten.push(rst_inline(&row));
        } else if adornment(trimmed).is_some() {
            // The line above or below a heading, which the text line already handled; otherwise a rule.
            rewritten.push(String::new());
        } else if let Some(sign) = adornment(next).filter(|_| !trimmed.is_empty() && !indented) {
            let over = at > 0 && adornment(lines[at - 1].trim_end()) == Some(sign);
            let known = levels.iter().position(|level| *level == (sign, over));
            level = known.unwrap_or_else(|| {
                levels.push((sign, over));
                levels.len() - 1
            });
            rewritten.push(format!("{} {}", "#".repeat((level + 1).min(6)), rst_inline(trimmed)));
        } else if let Some(directive) = trimmed.strip_prefix(".. ") {
            let (name, rest) = directive.split_once("::").unwrap_or((directive, ""));
            let rest = rest.trim();
            let said;
            (literal, said) = match Directive::of(name.trim(), directive.contains("::")) {
                Directive::Code => (Literal::Code, String::new()),
                Directive::Text => (Literal::No, rst_inline(rest)),
                Directive::Version(verb) => (Literal::No, format!("{verb}: {}", rst_inline(rest))),
                Directive::Object => (
                    Literal::No,
                    format!("{} {}", "#".repeat((level + 2).min(6)), rst_inline(rest)),
                ),
                Directive::Other => (Literal::Drop, String::new()),
            };
            indent = this_indent;
            rewritten.push(said);
        } else if is_field(trimmed) && at > 0 && is_directive(lines[at - 1].trim()) {
            rewritten.push(String::new());
        } else {
            let (text, opens) = match trimmed.strip_suffix("::") {
                Some("") => (String::new(), true),
                Some(text) => (format!("{text}:"), true),
                None => (trimmed.to_owned(), false),
            };
            if opens {
                literal = Literal::Code;
                indent = this_indent;
            }
            let text = rst_inline(&text);
            rewritten
                .push(text.strip_prefix("#. ").map_or(text.clone(), |item| format!("1. {item}")));
        }
    }
    markdown::parse(&rewritten.join("\n"))
}

/// The kinds of directives, by what they contain.
enum Directive {
    Code,
    Text,
    /// The version in which something changed.
    Version(&'static str),
    /// The documentation of a setting, a function or another thing with a name.
    Object,
    /// Pictures, comments, link targets and instructions to the renderer.
    Other,
}

impl Directive {
    fn of(name: &str, is_directive: bool) -> Self {
        const TEXT: &str = "note warning tip important hint caution attention danger error seealso admonition topic \
                            sidebar rubric container list-table glossary tab dropdown card details epigraph";
        const OBJECTS: &str = "data function class method attribute exception option program-option envvar confval \
                               setting describe object macro type member module-function decorator property cmdoption";
        let is_in = |list: &str| list.split_whitespace().any(|known| known == name);
        let object = name.rsplit(':').next().unwrap_or(name);
        match name {
            _ if !is_directive => Self::Other,
            "code-block" | "code" | "sourcecode" | "parsed-literal" | "prompt" | "console" => {
                Self::Code
            }
            "versionadded" => Self::Version("New in version"),
            "versionchanged" => Self::Version("Changed in version"),
            "deprecated" => Self::Version("Deprecated since version"),
            _ if is_in(TEXT) => Self::Text,
            _ if OBJECTS.split_whitespace().any(|known| known == object) => Self::Object,
            _ => Self::Other,
        }
    }
}

/// A simple table, whose columns are marked by lines such as "====  ====".
#[derive(Default)]
struct Table {
    /// The first column of each cell, in characters; empty outside tables.
    columns: Vec<usize>,
    borders: usize,
    indent: usize,
}

impl Table {
    /// Returns the line of Markdown for a line of a table with a header; `lines` are this line and those below it.
    fn row(&mut self, line: &str, lines: &[&str]) -> Option<String> {
        let is_border = |line: &str| {
            let line = line.trim();
            line.contains(' ')
                && line.starts_with("==")
                && line.chars().all(|c| matches!(c, '=' | ' '))
        };
        if is_border(line) {
            if self.columns.is_empty() {
                self.indent = line.len() - line.trim_start().len();
                let until =
                    lines.iter().position(|line| line.trim().is_empty()).unwrap_or(lines.len());
                if lines[..until].iter().filter(|line| is_border(line)).count() != 3 {
                    return None;
                }
                let signs: Vec<char> = line.trim().chars().collect();
                let starts = |at: &usize| signs[*at] == '=' && (*at == 0 || signs[*at - 1] == ' ');
                self.columns = (0..signs.len()).filter(starts).collect();
                self.borders = 1;
                return Some(String::new());
            }
            self.borders += 1;
            let columns = self.columns.len();
            if self.borders == 3 {
                *self = Self::default();
                return Some(String::new());
            }
            return Some(format!("|{}", "---|".repeat(columns)));
        }
        if self.columns.is_empty() {
            return None;
        }
        let signs: Vec<char> = line.chars().skip(self.indent).collect();
        let ends = self.columns.iter().skip(1).copied().chain([usize::MAX]);
        let cells = self.columns.iter().zip(ends).map(|(from, to)| {
            let cell = signs.get(*from..to.min(signs.len())).unwrap_or_default();
            cell.iter().collect::<String>().trim().replace('|', "\\|")
        });
        Some(format!("| {} |", cells.collect::<Vec<_>>().join(" | ")))
    }
}

/// Parses AsciiDoc.
pub(super) fn parse_asciidoc(text: &str) -> Document {
    let mut in_code = false;
    let mut rewritten = Vec::new();
    for line in text.lines() {
        let trimmed = line.trim_end();
        if matches!(trimmed, "----" | "....") {
            in_code = !in_code;
            rewritten.push("```".to_owned());
        } else if in_code {
            rewritten.push(line.to_owned());
        } else {
            rewritten.push(asciidoc_line(trimmed));
        }
    }
    markdown::parse(&rewritten.join("\n"))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Literal {
    No,
    Code,
    Drop,
}

/// Escapes text that Markdown would interpret.
fn plain_line(line: &str) -> String {
    let trimmed = line.trim_start();
    // Indents are layout here, not code, and a hash is only a hash.
    if trimmed.starts_with('#') || trimmed.starts_with("<!--") {
        return format!("\\{trimmed}");
    }
    if markdown::item(line).is_some() { line.to_owned() } else { trimmed.to_owned() }
}

fn asciidoc_line(line: &str) -> String {
    let text = line.trim_start_matches('=');
    let level = line.len() - text.len();
    if (1..=6).contains(&level) && text.starts_with(' ') {
        return format!("{}{text}", "#".repeat(level));
    }
    let is_attribute = line.starts_with(':') && is_field(line);
    let is_block_mark = line.starts_with('[') && line.ends_with(']');
    if is_attribute || is_block_mark || line.starts_with("//") || line == "====" {
        return String::new();
    }
    let stars = line.len() - line.trim_start_matches('*').len();
    if stars > 1 && line[stars..].starts_with(' ') {
        return format!("{}-{}", "  ".repeat(stars - 1), &line[stars..]);
    }
    line.strip_prefix(". ").map_or_else(|| line.to_owned(), |item| format!("1. {item}"))
}

/// Returns true for the first line of a directive and for its options.
fn is_directive(line: &str) -> bool {
    line.starts_with(".. ") || is_field(line)
}

/// Returns true for `:name: value`.
fn is_field(line: &str) -> bool {
    line.strip_prefix(':')
        .and_then(|rest| rest.find(':'))
        .is_some_and(|at| at > 0 && !line[1..=at].contains(' '))
}

/// Returns the character of a line that only underlines or overlines.
fn adornment(line: &str) -> Option<char> {
    let sign = line.chars().next().filter(|sign| "=-~^\"'`#*+.:_<>".contains(*sign))?;
    (line.len() >= 3 && line.chars().all(|c| c == sign)).then_some(sign)
}

/// Converts roles, links and literals to Markdown.
fn rst_inline(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut rest = line.replace("``", "\u{1}");
    while let Some(at) = rest.find('`') {
        let before = &rest[..at];
        // The role before the backtick, as in :doc:`name`.
        let role = before.strip_suffix(':').and_then(|before| before.rfind(':')).filter(|&colon| {
            before[colon + 1..].chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ':'))
        });
        text.push_str(&before[..role.unwrap_or(at)]);
        let Some(length) = rest[at + 1..].find('`') else {
            text.push_str(&rest[at + 1..]);
            return text.replace('\u{1}', "`");
        };
        let inner = &rest[at + 1..at + 1 + length];
        text.push_str(inner.split_once(" <").map_or(inner, |(name, _)| name));
        rest = rest[at + 2 + length..].trim_start_matches('_').to_owned();
    }
    text.push_str(&rest);
    text.replace('\u{1}', "`")
}

#[cfg(test)]
mod tests {
    use super::super::document::PassageKind;
    use super::*;

    #[test]
    fn restructured_text_keeps_headings_code_and_line_numbers() {
        let text = "=====\nTitle\n=====\n\nIntro to :doc:`things` and `a page <x.html>`_.\n\nPart\n----\n\nRun::\n\n   make ``it``\n\n.. image:: x.png\n   :alt: no\n\n.. note:: Mind the ``gap``.\n";
        let document = parse_rst(text);
        assert_eq!(document.title.as_deref(), Some("Title"));
        let seen: Vec<_> = document
            .passages
            .iter()
            .map(|p| (p.line, p.kind, &*p.headings, p.text.as_str()))
            .collect();
        let expected = [
            (5, PassageKind::Paragraph, "", "Intro to things and a page."),
            (10, PassageKind::Paragraph, "Part", "Run:"),
            (12, PassageKind::Code, "Part", "\n   make ``it``"),
            (17, PassageKind::Paragraph, "Part", "Mind the `gap`."),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn the_text_of_directives_is_read() {
        let text = "Settings\n========\n\n.. py:data:: TIMEOUT\n\n    How long to wait::\n\n        wait(5)\n\n    Default: ``30``\n\n    .. versionadded:: 3.1\n\n.. admonition:: Mind\n    :class: note\n\n    The gap.\n\n.. A comment\n   over two lines.\n\n.. toctree::\n   :maxdepth: 2\n\n   other\n";
        let seen: Vec<_> = parse_rst(text)
            .passages
            .iter()
            .map(|p| (p.line, p.block, p.kind, p.headings.to_string(), p.text.clone()))
            .collect();
        let timeout = || "TIMEOUT".to_owned();
        let expected = [
            (6, 1, PassageKind::Paragraph, timeout(), "How long to wait:".to_owned()),
            (8, 1, PassageKind::Code, timeout(), "\n        wait(5)".to_owned()),
            (10, 2, PassageKind::Paragraph, timeout(), "Default: `30`".to_owned()),
            (12, 2, PassageKind::Paragraph, timeout(), "New in version: 3.1".to_owned()),
            (14, 3, PassageKind::Paragraph, timeout(), "Mind".to_owned()),
            (17, 4, PassageKind::Paragraph, timeout(), "The gap.".to_owned()),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_simple_table_becomes_rows() {
        let text = "Format\n======\n\n=====  ===========\nSign   Meaning\n=====  ===========\nh      address\nT | s  time taken\n=====  ===========\n\nAfter.\n";
        let seen: Vec<_> =
            parse_rst(text).passages.iter().map(|p| (p.line, p.kind, p.text.clone())).collect();
        let expected = [
            (5, PassageKind::Head, "| Sign | Meaning |"),
            (7, PassageKind::Row, "| h | address |"),
            (8, PassageKind::Row, "| T \\| s | time taken |"),
            (11, PassageKind::Paragraph, "After."),
        ];
        assert_eq!(seen, expected.map(|(line, kind, text)| (line, kind, text.to_owned())));
    }

    #[test]
    fn asciidoc_headings_and_listings_are_recognised() {
        let document =
            parse_asciidoc("= Top\n:toc:\n\n== Part\n\nText.\n\n----\ncode\n----\n. one\n** two\n");
        assert_eq!(document.title.as_deref(), Some("Top"));
        let seen: Vec<_> = document.passages.iter().map(|p| (p.line, p.text.as_str())).collect();
        assert_eq!(seen, [(6, "Text."), (8, "\ncode"), (11, "1. one"), (12, "  - two")]);
    }

    #[test]
    fn plain_text_has_underlined_headings_and_no_others() {
        let document = parse_text("Notes\n=====\n\n# not a heading\n   indented prose\n");
        assert_eq!(document.title.as_deref(), Some("Notes"));
        assert_eq!(document.passages[0].text, "# not a heading indented prose");
        assert_eq!(parse_text("\nPUMP NOTES\n\nText.\n").title.as_deref(), Some("PUMP NOTES"));
    }
}
