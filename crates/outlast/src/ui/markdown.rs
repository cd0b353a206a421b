//! Markdown on a terminal: headings are highlighted, prose is wrapped, code stays unchanged. Every word of the report
//! is kept.

use anstyle::Style;
use outlast_core::{address_line, visible};
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::wrap::{width, wrap, wrap_behind};
use super::{BOLD, CYAN, DIM};

/// Formats the report for this number of columns. Output without colour loses the colour sequences.
pub(super) fn render(markdown: &str, columns: usize) -> String {
    let mut page = RenderedReport { columns: columns.max(20), ..RenderedReport::default() };
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        page.take(event);
    }
    page.close_block();
    page.out
}

#[derive(Default)]
struct RenderedReport {
    out: String,
    columns: usize,
    /// The open block or table cell: its words, each with its style.
    block: String,
    styles: Vec<Style>,
    /// The number of the next entry of each open list; `None` for bullets.
    lists: Vec<Option<u64>>,
    /// The start of the next block's first line, instead of its indent.
    marker: Option<String>,
    quotes: usize,
    is_code: bool,
    /// The address of each open link, and the position in the block at which its text begins.
    links: Vec<(String, usize)>,
    /// The rows of the open table.
    rows: Vec<Vec<String>>,
    /// True if a blank line follows the block before.
    gap: bool,
}

impl RenderedReport {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            // A page might treat it as markup; here it is text.
            Event::Text(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text) => self.text(&text),
            Event::Code(code) => {
                self.styles.push(CYAN);
                self.text(&code);
                self.styles.pop();
            }
            Event::SoftBreak => self.text(" "),
            Event::HardBreak => self.block.push('\n'),
            Event::Rule => {
                self.open_gap();
                let rule = "\u{2500}".repeat(self.columns);
                self.out.push_str(&format!("{DIM}{rule}{DIM:#}\n"));
                self.gap = true;
            }
            Event::FootnoteReference(name) => self.text(&format!("[^{name}]")),
            Event::TaskListMarker(done) => self.text(if done { "[x] " } else { "[ ] " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Emphasis => self.styles.push(Style::new().italic()),
            Tag::Strong => self.styles.push(BOLD),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push((address_line(&dest_url).into_owned(), self.block.len()));
                self.styles.push(Style::new().underline());
            }
            Tag::TableHead | Tag::TableRow => self.rows.push(Vec::new()),
            Tag::TableCell => {}
            block => {
                self.close_block();
                self.start_block(block);
            }
        }
    }

    fn start_block(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.gap = true;
                let is_first = level == HeadingLevel::H1;
                self.styles.push(if is_first { BOLD.underline() } else { BOLD });
            }
            Tag::BlockQuote(_) => self.quotes += 1,
            Tag::CodeBlock(_) => self.is_code = true,
            Tag::List(first) => self.lists.push(first),
            Tag::Item => {
                let outer = "  ".repeat(self.lists.len().saturating_sub(1));
                self.marker = Some(match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{outer}{}. ", *number - 1)
                    }
                    _ => format!("{outer}\u{2022} "),
                });
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Emphasis | TagEnd::Strong => drop(self.styles.pop()),
            TagEnd::Link | TagEnd::Image => self.close_link(),
            TagEnd::TableHead | TagEnd::TableRow => {}
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.block);
                self.rows.last_mut().into_iter().for_each(|row| row.push(cell.trim().to_owned()));
            }
            TagEnd::Table => self.close_table(),
            TagEnd::CodeBlock => self.close_code(),
            block => {
                self.close_block();
                self.gap = true;
                self.end_block(block);
            }
        }
    }

    fn end_block(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => drop(self.styles.pop()),
            TagEnd::BlockQuote(_) => self.quotes -= 1,
            TagEnd::List(_) => {
                self.lists.pop();
                self.gap = self.lists.is_empty();
            }
            TagEnd::Item => {
                self.marker = None;
                self.gap = false;
            }
            _ => {}
        }
    }

    /// Adds text to the block; lines may break at white space in it. Code stays unchanged. The text is cleaned here,
    /// after the parser has decoded entities, so that an escape character in the output always comes from this file.
    fn text(&mut self, text: &str) {
        let text = &*visible(text);
        if self.is_code {
            return self.block.push_str(text);
        }
        let style = self.styles.iter().fold(Style::new(), |all, style| {
            let color = style.get_fg_color().or(all.get_fg_color());
            all.fg_color(color) | style.get_effects()
        });
        for (number, word) in text.split(char::is_whitespace).enumerate() {
            if number > 0 && !self.block.is_empty() && !self.block.ends_with([' ', '\n']) {
                self.block.push(' ');
            }
            if !word.is_empty() {
                self.block.push_str(&format!("{style}{word}{style:#}"));
            }
        }
    }

    fn close_link(&mut self) {
        self.styles.pop();
        let Some((address, start)) = self.links.pop() else { return };
        let is_shown = self.block.get(start..).is_some_and(|text| text.contains(&address));
        // A link to a place in the report itself leads nowhere on a terminal.
        if !is_shown && !address.starts_with('#') {
            self.block.push_str(&format!(" {DIM}<{address}>{DIM:#}"));
        }
    }

    fn close_block(&mut self) {
        let block = std::mem::take(&mut self.block);
        if block.is_empty() {
            return;
        }
        self.open_gap();
        let quote = "\u{2502} ".repeat(self.quotes);
        let rest = format!("{quote}{}", "  ".repeat(self.lists.len()));
        let first = match self.marker.take() {
            Some(marker) => format!("{quote}{marker}"),
            None => rest.clone(),
        };
        let lines = block.trim_end().replace('\n', &format!("\n{rest}"));
        self.out.push_str(&wrap_behind(&rest, &format!("{first}{lines}"), self.columns));
        self.out.push('\n');
    }

    fn close_code(&mut self) {
        self.is_code = false;
        self.open_gap();
        let indent = " ".repeat(4 + 2 * self.lists.len());
        for line in std::mem::take(&mut self.block).lines() {
            self.out.push_str(&format!("{indent}{CYAN}{line}{CYAN:#}\n"));
        }
        self.gap = true;
    }

    /// Prints columns if they fit, otherwise each row as a list of names and values: nothing is cut.
    fn close_table(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        self.open_gap();
        self.gap = true;
        let Some((heads, values)) = rows.split_first() else { return };
        let widest = |column: usize| {
            rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max()
        };
        let widths: Vec<usize> = (0..heads.len()).filter_map(widest).collect();
        if widths.iter().map(|width| width + 2).sum::<usize>() <= self.columns + 2 {
            for (at, row) in rows.iter().enumerate() {
                let cells = row.iter().zip(&widths).map(|(cell, widest)| {
                    format!("{cell}{}", " ".repeat(widest.saturating_sub(width(cell))))
                });
                let line = cells.collect::<Vec<_>>().join("  ");
                let style = if at == 0 { BOLD } else { Style::new() };
                self.out.push_str(&format!("{style}{}{style:#}\n", line.trim_end()));
            }
            return;
        }
        for (at, row) in values.iter().enumerate() {
            if at > 0 {
                self.out.push('\n');
            }
            for (head, cell) in heads.iter().zip(row) {
                let line = format!("{BOLD}{head}:{BOLD:#} {cell}");
                self.out.push_str(&wrap(&line, self.columns, 2));
                self.out.push('\n');
            }
        }
    }

    fn open_gap(&mut self) {
        if self.gap && !self.out.is_empty() {
            self.out.push('\n');
        }
        self.gap = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(markdown: &str, columns: usize) -> String {
        anstream::adapter::strip_str(&render(markdown, columns)).to_string()
    }

    #[test]
    fn prose_is_wrapped_and_lists_hang() {
        let markdown = "# One\n\nSome *words* that go **on** and on.\n\n- first entry that is long\n- second\n  1. inner\n\nEnd";
        let expected = "One\n\nSome words that go on\nand on.\n\n\u{2022} first entry that is\n  long\n\u{2022} second\n  1. inner\n\nEnd\n";
        assert_eq!(plain(markdown, 22), expected);
    }

    #[test]
    fn quotes_and_asked_for_breaks_keep_their_indent() {
        let quote = "> Some *quoted words* that go on\n\n- one  \n  two";
        assert_eq!(
            plain(quote, 20),
            "\u{2502} Some quoted words\n\u{2502} that go on\n\n\u{2022} one\n  two\n"
        );
        assert_eq!(plain("<https://example.org> [x](#y)", 40), "https://example.org x\n");
    }

    #[test]
    fn code_and_addresses_are_kept_whole() {
        let markdown = "See [the page](https://example.org/a/very/long/address/indeed).\n\n```\nlet x = 1;  // as it is\n```\n";
        let expected = "See the page\n<https://example.org/a/very/long/address/indeed>.\n\n    let x = 1;  // as it is\n";
        assert_eq!(plain(markdown, 24), expected);
    }

    #[test]
    fn a_table_is_columns_where_they_fit_and_a_list_where_not() {
        let markdown = "| name | value |\n|---|---|\n| a | one two three |\n";
        assert_eq!(plain(markdown, 40), "name  value\na     one two three\n");
        assert_eq!(plain(markdown, 20), "name  value\na     one two three\n");
        let wide = "| name | value |\n|---|---|\n| a | one two three four five |\n";
        assert_eq!(plain(wide, 20), "name: a\nvalue: one two three\n  four five\n");
    }

    #[test]
    fn html_in_a_report_is_text() {
        assert_eq!(
            plain("<script>alert(1)</script>\n\na <b>c</b>", 80),
            "<script>alert(1)</script>\n\na <b>c</b>\n"
        );
    }

    /// Entities for control characters, with different numbers of repeated encodings.
    #[test]
    fn an_entity_never_becomes_a_control_character() {
        let entities = [
            "&#27;",
            "&#x1b;",
            "&#x1B;",
            "&#0027;",
            "&#155;",
            "&#x9b;",
            "&#x9d;",
            "&#157;",
            "&#7;",
            "&#8;",
            "&#13;",
            "&#0;",
            "&#x7f;",
            "&#8238;",
            "&#x202e;",
            "&#x2066;",
            "&#xe0041;",
            "&#8203;",
            "&#xfeff;",
            "&NewLine;",
            "&Tab;",
            "&ZeroWidthSpace;",
            "&NoBreak;",
            "&shy;",
            "&lrm;",
            "&#10;",
        ];
        let twice = entities.map(|entity| entity.replace('&', "&amp;"));
        let raw = ["\x1b", "\u{9b}", "\u{9d}", "\u{202e}", "\r", "\x07", "\u{e0041}"];
        let all = entities.iter().map(|it| (*it).to_owned()).chain(twice);
        let all = all.chain(raw.map(ToOwned::to_owned));
        for bad in all.collect::<Vec<_>>() {
            let places = [
                format!("{bad}]52;c;aGk={bad}[2J"),
                format!("# {bad}]0;x"),
                format!("[{bad}](https://a.example/{bad}x \"{bad}\")"),
                format!("[t](<https://a.example/{bad}x>) ![{bad}]({bad})"),
                format!("<https://a.example/{bad}>"),
                format!("`{bad}` <b title=\"{bad}\">x</b> <!-- {bad} -->"),
                format!("```{bad}\n{bad}\n```"),
                format!("| {bad} |\n|---|\n| {bad} |"),
                format!(
                    "> - {bad}\n> - [x] {bad}\n\n[^{bad}]\n\n[r]: https://a.example/{bad}\n\n[r]"
                ),
            ];
            for markdown in places {
                let text = render(&markdown, 60);
                let mut parts = text.split("\x1b[");
                let mut text = parts.next().unwrap().to_owned();
                // Only this file's own colours may begin with an escape character.
                for part in parts {
                    let (code, rest) = part.split_once('m').unwrap();
                    let is_color = code.bytes().all(|byte| byte.is_ascii_digit() || byte == b';');
                    assert!(is_color, "{markdown:?}: {code:?}");
                    text.push_str(rest);
                }
                let steers = |character: char| {
                    character != '\n'
                        && character != '\t'
                        && outlast_core::is_terminal_control(character)
                };
                assert!(!text.contains(steers), "{markdown:?}: {text:?}");
                assert!(!text.contains(outlast_core::is_hidden), "{markdown:?}: {text:?}");
            }
        }
        assert_eq!(plain("a&#8238;b &#xe0041;", 80), "a<U+202E>b <U+E0041>\n");
        assert_eq!(plain("&#27;]52;c;aGk=&#7;", 80), "]52;c;aGk=\n");
        assert_eq!(
            plain("[t](<https://a.example/&NewLine;$ rm>)", 80),
            "t <https://a.example/%0A$ rm>\n"
        );
    }
}
