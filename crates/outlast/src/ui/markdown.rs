//! Markdown on a terminal: headings stand out, prose is wrapped, code stays as it is. Every word of the report is kept.

mod paragraph;

use anstyle::Style;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use unicode_width::UnicodeWidthStr;

use super::{BOLD, CYAN, DIM};
use paragraph::Paragraph;

const UNDERLINE: Style = Style::new().underline();

/// The report, set for so many columns. Colour goes away on output that has none.
pub(super) fn rendered(markdown: &str, columns: usize) -> String {
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
    block: Paragraph,
    styles: Vec<Style>,
    /// The number of the next entry of each list that is open; `None` for bullets.
    lists: Vec<Option<u64>>,
    /// What the first line of the next block begins with, instead of its indent.
    marker: Option<String>,
    quotes: usize,
    code: Option<String>,
    links: Vec<Link>,
    table: Option<Table>,
    /// Whether a blank line follows the block before.
    gap: bool,
}

struct Link {
    address: String,
    text: String,
}

#[derive(Default)]
struct Table {
    rows: Vec<Vec<String>>,
    cell: String,
}

impl RenderedReport {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            // Whatever a page would do with it, here it is text.
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::Code(code) => {
                self.styles.push(CYAN);
                self.text(&code);
                self.styles.pop();
            }
            Event::SoftBreak => self.text(" "),
            Event::HardBreak => self.block.break_line(),
            Event::Rule => {
                self.open_gap();
                let rule = "\u{2500}".repeat(self.columns);
                self.out.push_str(&format!("{DIM}{rule}{DIM:#}\n"));
                self.gap = true;
            }
            Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text),
            Event::FootnoteReference(name) => self.text(&format!("[^{name}]")),
            Event::TaskListMarker(done) => self.text(if done { "[x] " } else { "[ ] " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.close_block();
                self.gap = true;
                self.styles.push(match level as usize {
                    1 => BOLD.underline(),
                    _ => BOLD,
                });
            }
            Tag::BlockQuote(_) => {
                self.close_block();
                self.quotes += 1;
            }
            Tag::CodeBlock(_) => {
                self.close_block();
                self.code = Some(String::new());
            }
            Tag::List(first) => {
                self.close_block();
                self.lists.push(first);
            }
            Tag::Item => {
                self.close_block();
                let indent = "  ".repeat(self.lists.len());
                let sign = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let sign = format!("{number}. ");
                        *number += 1;
                        sign
                    }
                    _ => "\u{2022} ".to_owned(),
                };
                self.marker = Some(format!("{}{sign}", &indent[2..]));
            }
            Tag::Emphasis => self.styles.push(Style::new().italic()),
            Tag::Strong => self.styles.push(BOLD),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push(Link { address: dest_url.to_string(), text: String::new() });
                self.styles.push(UNDERLINE);
            }
            Tag::Table(_) => {
                self.close_block();
                self.table = Some(Table::default());
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            Tag::Paragraph | Tag::HtmlBlock => self.close_block(),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                self.close_block();
                self.styles.pop();
                self.gap = true;
            }
            TagEnd::BlockQuote(_) => {
                self.close_block();
                self.quotes -= 1;
                self.gap = true;
            }
            TagEnd::CodeBlock => self.close_code(),
            TagEnd::List(_) => {
                self.close_block();
                self.lists.pop();
                self.gap = self.lists.is_empty();
            }
            TagEnd::Item => {
                self.close_block();
                self.marker = None;
                self.gap = false;
            }
            TagEnd::Emphasis | TagEnd::Strong => drop(self.styles.pop()),
            TagEnd::Link | TagEnd::Image => self.close_link(),
            TagEnd::TableCell => {
                if let Some(table) = &mut self.table {
                    let cell = std::mem::take(&mut table.cell);
                    if let Some(row) = table.rows.last_mut() {
                        row.push(cell.trim().to_owned());
                    }
                }
            }
            TagEnd::Table => self.close_table(),
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.close_block();
                self.gap = true;
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(code) = &mut self.code {
            code.push_str(text);
        } else if let Some(table) = &mut self.table {
            table.cell.push_str(text);
        } else {
            let style = self.style();
            self.block.push(text, style);
        }
        if let Some(link) = self.links.last_mut() {
            link.text.push_str(text);
        }
    }

    fn style(&self) -> Style {
        self.styles.iter().fold(Style::new(), |all, style| {
            let all = match style.get_fg_color() {
                Some(color) => all.fg_color(Some(color)),
                None => all,
            };
            all | style.get_effects()
        })
    }

    fn close_link(&mut self) {
        self.styles.pop();
        let Some(link) = self.links.pop() else { return };
        // A link to a place in the report itself leads nowhere on a terminal.
        if link.address != link.text && !link.address.starts_with('#') {
            let address = format!(" <{}>", link.address);
            match &mut self.table {
                Some(table) => table.cell.push_str(&address),
                None => self.block.push(&address, DIM),
            }
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
        block.wrap_into(&mut self.out, self.columns, &first, &rest);
    }

    fn close_code(&mut self) {
        let Some(code) = self.code.take() else { return };
        self.open_gap();
        let indent = " ".repeat(4 + 2 * self.lists.len());
        for line in code.lines() {
            self.out.push_str(&format!("{indent}{CYAN}{line}{CYAN:#}\n"));
        }
        self.gap = true;
    }

    /// As columns where they fit, else each row as a list of names and values: nothing is cut.
    fn close_table(&mut self) {
        let Some(Table { rows, .. }) = self.table.take() else { return };
        self.open_gap();
        self.gap = true;
        let count = rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max()
        };
        let widths: Vec<usize> = (0..count).map(|column| width(column).unwrap_or(0)).collect();
        let total: usize = widths.iter().map(|width| width + 2).sum();
        if total <= self.columns + 2 {
            for (at, row) in rows.iter().enumerate() {
                let cells = row.iter().zip(&widths).map(|(cell, width)| {
                    format!("{cell}{}", " ".repeat(width.saturating_sub(cell.width())))
                });
                let line = cells.collect::<Vec<_>>().join("  ");
                let style = if at == 0 { BOLD } else { Style::new() };
                self.out.push_str(&format!("{style}{}{style:#}\n", line.trim_end()));
            }
            return;
        }
        let Some((heads, rows)) = rows.split_first() else { return };
        for (at, row) in rows.iter().enumerate() {
            if at > 0 {
                self.out.push('\n');
            }
            for (head, cell) in heads.iter().zip(row) {
                let mut block = Paragraph::default();
                block.push(&format!("{head}: "), BOLD);
                block.push(cell, Style::new());
                block.wrap_into(&mut self.out, self.columns, "", "  ");
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
        anstream::adapter::strip_str(&rendered(markdown, columns)).to_string()
    }

    #[test]
    fn prose_is_wrapped_and_lists_hang() {
        let markdown = "# One\n\nSome *words* that go **on** and on.\n\n- first entry that is long\n- second\n  1. inner\n\nEnd";
        let expected = "One\n\nSome words that go on\nand on.\n\n\u{2022} first entry that is\n  long\n\u{2022} second\n  1. inner\n\nEnd\n";
        assert_eq!(plain(markdown, 22), expected);
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
}
