//! Markdown, line by line: enough of it for finding and quoting, and nothing that can fail.

use super::breaks;
use super::document::{Builder, Document, Kind};

/// Takes a Markdown file apart.
pub(super) fn parse(text: &str) -> Document {
    let lines: Vec<&str> = text.lines().collect();
    let (title, at) = front_matter(&lines);
    let mut builder = Builder::default();
    builder.title(title);
    let mut parser = Parser { lines: &lines, at, builder };
    while parser.at < lines.len() {
        parser.step();
    }
    parser.builder.finish()
}

struct Parser<'a> {
    lines: &'a [&'a str],
    at: usize,
    builder: Builder,
}

impl<'a> Parser<'a> {
    fn step(&mut self) {
        let line = self.lines[self.at];
        let trimmed = line.trim();
        if trimmed.is_empty() {
            self.at += 1;
        } else if trimmed.starts_with("<!--") {
            self.comment();
        } else if let Some(fence) = fence(trimmed) {
            self.fenced(fence);
        } else if let Some((level, text)) = heading(trimmed) {
            self.builder.heading(level, text);
            self.at += 1;
        } else if is_rule(trimmed) || is_definition(trimmed) {
            self.builder.end_block();
            self.at += 1;
        } else if trimmed.starts_with('|') && self.is_table() {
            self.table();
        } else if let Some(item) = item(line) {
            self.item(item);
        } else if line.starts_with("    ") || line.starts_with('\t') {
            self.indented();
        } else {
            self.paragraph();
        }
    }

    fn number(&self, at: usize) -> u32 {
        u32::try_from(at + 1).unwrap_or(u32::MAX)
    }

    fn comment(&mut self) {
        while self.at < self.lines.len() && !self.lines[self.at].contains("-->") {
            self.at += 1;
        }
        self.at += 1;
    }

    fn fenced(&mut self, fence: &str) {
        let start = self.at + 1;
        let end = (start..self.lines.len()).find(|&at| {
            let line = self.lines[at].trim();
            line.starts_with(fence) && line.trim_start_matches(&fence[..1]).is_empty()
        });
        let end = end.unwrap_or(self.lines.len());
        self.builder.code(&self.lines[start..end].join("\n"), self.number(self.at));
        self.at = end + 1;
    }

    fn indented(&mut self) {
        let start = self.at;
        let mut code = Vec::new();
        while let Some(line) = self.lines.get(self.at) {
            let unindented = line.strip_prefix("    ").or_else(|| line.strip_prefix('\t'));
            match unindented {
                Some(line) => code.push(line),
                None if line.trim().is_empty() => code.push(""),
                None => break,
            }
            self.at += 1;
        }
        self.builder.code(&code.join("\n"), self.number(start));
    }

    fn is_table(&self) -> bool {
        self.lines.get(self.at + 1).is_some_and(|line| is_divider(line.trim()))
    }

    fn table(&mut self) {
        let mut kind = Kind::Head;
        while let Some(line) = self.lines.get(self.at).map(|line| line.trim()) {
            if !line.starts_with('|') {
                break;
            }
            if !is_divider(line) {
                self.builder.row(kind, &cells(line), self.number(self.at));
                kind = Kind::Row;
            }
            self.at += 1;
        }
        self.builder.end_block();
    }

    /// An item with the lines that belong to it.
    fn item(&mut self, (indent, marker, first): (usize, &'a str, &'a str)) {
        let start = self.at;
        let mut text = first.to_owned();
        self.at += 1;
        while let Some(line) = self.lines.get(self.at) {
            if line.trim().is_empty() || item(line).is_some() || starts_something(line.trim()) {
                break;
            }
            text.push('\n');
            text.push_str(line.trim());
            self.at += 1;
        }
        let marker = format!("{}{marker}", " ".repeat(indent.min(8)));
        self.builder.item(&marker, &text, self.number(start));
        // A blank line and then no item and no indent: the list is over.
        let next =
            self.lines[self.at.min(self.lines.len())..].iter().find(|line| !line.trim().is_empty());
        if next.is_some_and(|line| item(line).is_none() && !line.starts_with(' ')) {
            self.builder.end_block();
        }
    }

    fn paragraph(&mut self) {
        let start = self.at;
        let mut lines = Vec::new();
        while let Some(line) = self.lines.get(self.at) {
            let trimmed = line.trim();
            if self.at > start {
                if let Some(level) = underline(trimmed) {
                    self.builder.heading(level, &lines.join("\n"));
                    self.at += 1;
                    return;
                }
                if trimmed.is_empty() || starts_something(trimmed) || starts_list(line) {
                    break;
                }
            }
            lines.push(line.trim_start_matches(['>', ' ', '\t']));
            self.at += 1;
        }
        if let Some((level, text)) = html_heading(&lines.join("\n")) {
            return self.builder.heading(level, text);
        }
        let mut from = 0;
        for to in breaks::ends(&lines) {
            let (text, line) = (lines[from..to].join("\n"), self.number(start + from));
            match to - from == lines.len() {
                true => self.builder.paragraph(&text, line),
                false => self.builder.line(text.trim_end().trim_end_matches('\\'), line),
            }
            from = to;
        }
        // What comes after lines that belong together is another list.
        if from > 0 && self.lines.get(self.at).is_none_or(|line| line.trim().is_empty()) {
            self.builder.end_lines();
        }
    }
}

/// The title in the block of settings some files open with, and the line after that block.
fn front_matter<'a>(lines: &[&'a str]) -> (&'a str, usize) {
    let Some(&fence @ ("---" | "+++")) = lines.first() else { return ("", 0) };
    let Some(end) = lines.iter().skip(1).take(200).position(|line| *line == fence) else {
        return ("", 0);
    };
    let sign = if fence == "---" { ':' } else { '=' };
    let value = lines[1..=end].iter().find_map(|line| {
        let (key, value) = line.split_once(sign)?;
        (key.trim_end() == "title").then(|| value.trim())
    });
    let value = value.unwrap_or("");
    let quote = value.chars().next().filter(|sign| matches!(sign, '"' | '\''));
    let title = match quote {
        Some(quote) => value[1..].split(quote).next().unwrap_or(""),
        None => value,
    };
    (title, end + 2)
}

/// `<h2 name="x">Title</h2>`, which some write instead of `##`.
fn html_heading(text: &str) -> Option<(u8, &str)> {
    let rest = text.trim().strip_prefix("<h")?;
    let level = rest.bytes().next().filter(|digit| (b'1'..=b'6').contains(digit))? - b'0';
    let (attributes, inner) = rest[1..].split_once('>')?;
    let inner = inner.strip_suffix(&format!("</h{level}>"))?;
    let is_tag = attributes.is_empty() || attributes.starts_with(char::is_whitespace);
    (is_tag && !inner.contains("<h")).then_some((level, inner))
}

fn fence(line: &str) -> Option<&str> {
    let sign = line.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
    let length = line.len() - line.trim_start_matches(sign).len();
    let closes_itself = sign == '`' && line[length..].contains('`');
    (length >= 3 && !closes_itself).then(|| &line[..length])
}

pub(super) fn heading(line: &str) -> Option<(u8, &str)> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    ((1..=6).contains(&level) && text.starts_with([' ', '\t']))
        .then(|| (u8::try_from(level).unwrap_or(6), text))
}

/// The level of a heading that is underlined.
fn underline(line: &str) -> Option<u8> {
    match line.chars().next()? {
        '=' if line.len() >= 2 && line.chars().all(|c| c == '=') => Some(1),
        '-' if line.len() >= 2 && line.chars().all(|c| c == '-') => Some(2),
        _ => None,
    }
}

fn is_rule(line: &str) -> bool {
    let signs: Vec<char> = line.chars().filter(|c| !c.is_whitespace()).collect();
    signs.len() >= 3
        && matches!(signs[0], '-' | '*' | '_' | '=')
        && signs.iter().all(|sign| *sign == signs[0])
}

/// `[name]: where`, which is for links and not for readers.
fn is_definition(line: &str) -> bool {
    line.starts_with('[') && line.find("]: ").is_some_and(|at| !line[..at].contains(' '))
}

fn is_divider(line: &str) -> bool {
    line.contains('-') && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '))
}

fn starts_something(line: &str) -> bool {
    fence(line).is_some() || heading(line).is_some() || line.starts_with("<!--")
}

/// Within a paragraph only what cannot be a wrapped line begins a list.
fn starts_list(line: &str) -> bool {
    item(line).is_some_and(|(_, marker, _)| matches!(marker, "-" | "*" | "+" | "1."))
}

/// The indent, the marker and the text of a list's item.
pub(super) fn item(line: &str) -> Option<(usize, &str, &str)> {
    let rest = line.trim_start();
    let indent = line.len() - rest.len();
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let length = if digits == 0 {
        rest.chars().next().filter(|sign| matches!(sign, '-' | '*' | '+'))?.len_utf8()
    } else if digits <= 4 && rest[digits..].starts_with(['.', ')']) {
        digits + 1
    } else {
        return None;
    };
    let text = &rest[length..];
    text.starts_with([' ', '\t']).then(|| (indent, &rest[..length], text.trim()))
}

fn cells(line: &str) -> Vec<String> {
    let inner = line.trim_matches('|');
    let mut cells = vec![String::new()];
    let mut in_code = false;
    let mut signs = inner.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            '\\' if signs.peek() == Some(&'|') => {
                signs.next();
                cells.extend_last('|');
            }
            '|' if !in_code => cells.push(String::new()),
            _ => {
                in_code ^= sign == '`';
                cells.extend_last(sign);
            }
        }
    }
    cells
}

trait ExtendLast {
    fn extend_last(&mut self, sign: char);
}

impl ExtendLast for Vec<String> {
    fn extend_last(&mut self, sign: char) {
        if let Some(last) = self.last_mut() {
            last.push(sign);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "---\nlayout: page\n---\n# Guide\n\nIntro with a [link](x.md)\nover two lines.\n\n## Tools\n\nThere are two:\n\n- `start`: begins\n  a job\n- `poll`: waits\n\nAfterwards.\n\n| key | value |\n|---|---|\n| a | `x|y` |\n\n```sh\n# no heading\nrun it\n```\n\nSetext\n------\n\nLast.\n";

    #[test]
    fn a_file_becomes_passages_under_their_headings_with_their_lines() {
        let document = parse(SAMPLE);
        assert_eq!(document.title.as_deref(), Some("Guide"));
        let seen: Vec<_> = document
            .passages
            .iter()
            .map(|p| (p.line, p.block, p.kind, &*p.headings, p.text.as_str()))
            .collect();
        let expected = [
            (6, 1, Kind::Paragraph, "", "Intro with a link over two lines."),
            (11, 2, Kind::Paragraph, "Tools", "There are two:"),
            (13, 2, Kind::Item, "Tools", "- `start`: begins a job"),
            (15, 2, Kind::Item, "Tools", "- `poll`: waits"),
            (17, 3, Kind::Paragraph, "Tools", "Afterwards."),
            (19, 4, Kind::Head, "Tools", "| key | value |"),
            (21, 4, Kind::Row, "Tools", "| a | `x\\|y` |"),
            (23, 5, Kind::Code, "Tools", "# no heading\nrun it"),
            (31, 6, Kind::Paragraph, "Setext", "Last."),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn no_text_whatsoever_breaks_the_parser() {
        let odd = [
            "",
            "#",
            "|",
            "|\n|-|",
            "```",
            "~~~\n",
            "- ",
            "1)",
            "<!--",
            ">",
            "[",
            "---",
            "\u{301}\n===",
            "* * *",
        ];
        for text in odd {
            parse(text);
            parse(&format!("{text}\n{text}"));
            parse(&format!("a\n{text}\nb"));
        }
    }
}
