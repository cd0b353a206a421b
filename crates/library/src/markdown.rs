//! Markdown: finds paragraphs, items, tables and listings and the line on which each begins.
//!
//! `pulldown-cmark` finds the blocks. Their text is taken from the file as written and then cleaned like all
//! other text, because CommonMark's rules for emphasis and links would remove characters from names such as
//! `__init__`.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, OffsetIter, Options, Parser, Tag, TagEnd};

use super::breaks;
use super::clean::truncate;
use super::document::{Builder, Document, PassageKind};

/// Parses a Markdown file.
pub(super) fn parse(text: &str) -> Document {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS
        | Options::ENABLE_PLUSES_DELIMITED_METADATA_BLOCKS;
    let starts = text.match_indices('\n').map(|(at, _)| at + 1);
    let mut reader = MarkdownReader {
        text,
        line_starts: std::iter::once(0).chain(starts).collect(),
        builder: Builder::default(),
        lists: 0,
        quotes: 0,
        item: None,
    };
    let mut events = Parser::new_ext(text, options).into_offset_iter();
    while let Some((event, range)) = events.next() {
        match event {
            Event::Start(tag) => reader.start(tag, range, &mut events),
            Event::End(TagEnd::Item) => reader.end_item(range.end),
            Event::End(TagEnd::List(_)) => reader.end_list(),
            Event::End(TagEnd::BlockQuote(_)) => reader.quotes -= 1,
            Event::End(TagEnd::Table) | Event::Rule => reader.builder.end_block(),
            _ => {}
        }
    }
    reader.builder.finish()
}

struct MarkdownReader<'a> {
    text: &'a str,
    line_starts: Vec<usize>,
    builder: Builder,
    /// The number of open lists.
    lists: usize,
    /// The number of open quotes.
    quotes: usize,
    /// The offset of an item whose text has not been added yet.
    item: Option<usize>,
}

impl MarkdownReader<'_> {
    fn start(&mut self, tag: Tag<'_>, range: Range<usize>, events: &mut OffsetIter<'_>) {
        match tag {
            // The first paragraph of an item is its text.
            Tag::Paragraph if self.item.is_some() => return self.end_item(range.end),
            Tag::Item => {
                self.item = Some(range.start);
                return;
            }
            Tag::Paragraph
            | Tag::HtmlBlock
            | Tag::Heading { .. }
            | Tag::CodeBlock(_)
            | Tag::List(_)
            | Tag::Table(_)
            | Tag::BlockQuote(_) => self.end_item(range.start),
            _ => {}
        }
        let line = self.line(range.start);
        let raw = &self.text[range];
        match tag {
            Tag::Paragraph => self.paragraph(raw, line),
            Tag::HtmlBlock if !raw.trim_start().starts_with("<!--") => self.paragraph(raw, line),
            // Text below a quote does not belong to the headings inside the quote.
            Tag::Heading { .. } if self.quotes > 0 => self.paragraph(heading_text(raw), line),
            Tag::Heading { level, .. } => self.builder.heading(level as u8, heading_text(raw)),
            Tag::CodeBlock(kind) => {
                let code = text_until(events, TagEnd::CodeBlock);
                self.builder.code(&language(&kind), &code, line);
            }
            Tag::MetadataBlock(kind) => {
                let text = text_until(events, TagEnd::MetadataBlock(kind));
                self.builder.title(metadata_title(&text));
            }
            Tag::List(_) => self.lists += 1,
            Tag::BlockQuote(_) => self.quotes += 1,
            Tag::TableHead => self.builder.row(PassageKind::Head, &cells(raw), line),
            Tag::TableRow => self.builder.row(PassageKind::Row, &cells(raw), line),
            _ => {}
        }
    }

    /// The number of the line that contains an offset.
    fn line(&self, offset: usize) -> u32 {
        let lines = self.line_starts.partition_point(|start| *start <= offset);
        u32::try_from(lines).unwrap_or(u32::MAX)
    }

    /// Adds the text of an item, up to the first nested block.
    fn end_item(&mut self, end: usize) {
        let Some(start) = self.item.take() else { return };
        let line = self.line(start);
        let line_start = self.line_starts[line as usize - 1];
        let raw = &self.text[start..end.max(start)];
        if let Some((indent, marker, text)) = item(raw) {
            let before = &self.text[line_start..start];
            let indent = indent + before.len() - before.trim_end().len();
            let marker = format!("{}{marker}", " ".repeat(indent.min(8)));
            self.builder.item(&marker, text, line);
        }
    }

    fn end_list(&mut self) {
        self.lists = self.lists.saturating_sub(1);
        if self.lists == 0 {
            self.builder.end_block();
        }
    }

    fn paragraph(&mut self, raw: &str, first: u32) {
        if let Some((level, text)) = html_heading(raw) {
            return self.builder.heading(level, text);
        }
        let unquoted = |line| str::trim_start_matches(line, ['>', ' ', '\t']);
        let lines: Vec<_> = raw.lines().map(unquoted).collect();
        let mut from = 0;
        for to in breaks::ends(&lines) {
            let text = lines[from..to].join("\n");
            let line = first.saturating_add(u32::try_from(from).unwrap_or(u32::MAX));
            match to - from == lines.len() {
                true => self.builder.paragraph(&text, line),
                false => self.builder.line(text.trim_end().trim_end_matches('\\'), line),
            }
            from = to;
        }
        // A block after these lines belongs to another list.
        self.builder.end_lines();
    }
}

/// Collects the text up to the end of a block that contains only text.
fn text_until(events: &mut OffsetIter<'_>, end: TagEnd) -> String {
    let mut text = String::new();
    for (event, _) in events {
        match event {
            Event::Text(part) => text.push_str(&part),
            Event::End(ended) if ended == end => break,
            _ => {}
        }
    }
    text
}

/// Returns the language of a listing, if its fence names one.
fn language(kind: &CodeBlockKind<'_>) -> String {
    let CodeBlockKind::Fenced(info) = kind else { return String::new() };
    let name = info.split([' ', ',']).next().unwrap_or("");
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || "+#-_.".contains(c));
    if is_name { truncate(name, 20).to_owned() } else { String::new() }
}

/// Strips the marks before a heading or the line below it.
fn heading_text(raw: &str) -> &str {
    match raw.trim_end().rsplit_once('\n') {
        Some((text, _underline)) => text,
        None => raw.trim_start_matches('#'),
    }
}

/// Returns the title from the front matter of a file.
fn metadata_title(settings: &str) -> &str {
    let value = settings.lines().find_map(|line| {
        let (key, value) = line.split_once([':', '='])?;
        (key.trim_end() == "title").then(|| value.trim())
    });
    let value = value.unwrap_or("");
    let quote = value.chars().next().filter(|sign| matches!(sign, '"' | '\''));
    match quote {
        Some(quote) => value[1..].split(quote).next().unwrap_or(""),
        None => value,
    }
}

/// Parses `<h2 name="x">Title</h2>`, which some writers use instead of `##`.
fn html_heading(text: &str) -> Option<(u8, &str)> {
    let rest = text.trim().strip_prefix("<h")?;
    let level = rest.bytes().next().filter(|digit| (b'1'..=b'6').contains(digit))? - b'0';
    let (attributes, inner) = rest[1..].split_once('>')?;
    let inner = inner.strip_suffix(&format!("</h{level}>"))?;
    let is_tag = attributes.is_empty() || attributes.starts_with(char::is_whitespace);
    (is_tag && !inner.contains("<h")).then_some((level, inner))
}

/// Returns the cells of a row. A bar inside code is part of its cell, although `pulldown-cmark` ends the cell
/// there.
fn cells(row: &str) -> Vec<String> {
    let mut cells = Vec::new();
    let mut cell = String::new();
    let mut in_code = false;
    let mut signs = row.trim().trim_matches('|').chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            '\\' if signs.peek() == Some(&'|') => cell.extend(signs.next()),
            '|' if !in_code => cells.push(std::mem::take(&mut cell)),
            _ => {
                in_code ^= sign == '`';
                cell.push(sign);
            }
        }
    }
    cells.push(cell);
    cells
}

/// Returns the indent, the marker and the text of a list item.
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
            (6, 1, PassageKind::Paragraph, "", "Intro with a link over two lines."),
            (11, 2, PassageKind::Paragraph, "Tools", "There are two:"),
            (13, 2, PassageKind::Item, "Tools", "- `start`: begins a job"),
            (15, 2, PassageKind::Item, "Tools", "- `poll`: waits"),
            (17, 3, PassageKind::Paragraph, "Tools", "Afterwards."),
            (19, 4, PassageKind::Head, "Tools", "| key | value |"),
            (21, 4, PassageKind::Row, "Tools", "| a | `x\\|y` |"),
            (23, 5, PassageKind::Code, "Tools", "sh\n# no heading\nrun it"),
            (31, 6, PassageKind::Paragraph, "Setext", "Last."),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_definition_line_belongs_to_the_paragraph_next_to_it() {
        let cases = [
            (
                "### `bodyLimit`\n<a id=\"x\"></a>\n\n+ Default: `1048576` (1MiB)\n\nThe maximum payload.\n\nMore.\n",
                [1, 1, 2],
            ),
            ("## timeout\n\n**Default:** `30`\n\nKilled after this time.\n\nMore.\n", [1, 1, 2]),
            (
                "## Name\n\nThe name of the cookie.\n\nDefault: `session`\n\nAnother paragraph.\n",
                [1, 1, 2],
            ),
        ];
        for (text, expected) in cases {
            let blocks: Vec<_> = parse(text).passages.iter().map(|passage| passage.block).collect();
            assert_eq!(blocks, expected, "{text}");
        }
        let apart = parse("## A\n\nOne.\n\nTwo.\n\nThree: four. Five.\n");
        assert_eq!(
            apart.passages.iter().map(|passage| passage.block).collect::<Vec<_>>(),
            [1, 2, 3]
        );
    }

    #[test]
    fn a_heading_in_a_quote_is_a_paragraph_of_it() {
        let document = parse("# Guide\n\n> ## Note\n> Mind it.\n\nText.\n");
        let seen: Vec<_> =
            document.passages.iter().map(|p| (p.line, &*p.headings, p.text.as_str())).collect();
        assert_eq!(seen, [(3, "", "Note"), (4, "", "Mind it."), (6, "", "Text.")]);
    }

    #[test]
    fn no_text_breaks_the_parser() {
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
