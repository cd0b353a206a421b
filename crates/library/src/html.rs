//! The text of an HTML page, read by a tolerant tag reader that never fails on any input.

use super::document::{Builder, Document, PassageKind};
use super::entities;
use super::tags::{is_inline, name_of};

/// Parses a page.
pub(super) fn parse(page: &str) -> Document {
    let mut reader = HtmlReader::default();
    let mut rest = page;
    while !rest.is_empty() {
        let at = rest.find('<').unwrap_or(rest.len());
        reader.text(&rest[..at]);
        rest = &rest[at..];
        if rest.is_empty() {
            break;
        }
        let length = reader.markup(rest);
        rest = &rest[length..];
    }
    reader.flush();
    reader.builder.finish()
}

/// Elements whose content is not shown to readers.
const HIDDEN: &[&str] =
    &["script", "style", "template", "noscript", "svg", "nav", "iframe", "select", "button"];

#[derive(Default)]
struct HtmlReader {
    builder: Builder,
    text: String,
    /// The line on which the text began.
    start: u32,
    /// The number of line ends read so far.
    lines: u32,
    open: Open,
    cells: Vec<String>,
    cell_kind: Option<PassageKind>,
    rows: u32,
    numbered: Vec<Option<u32>>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Open {
    #[default]
    Paragraph,
    Title,
    Heading(u8),
    Item,
    Pre,
    Cell,
}

impl HtmlReader {
    fn text(&mut self, raw: &str) {
        if self.text.trim().is_empty() {
            let blank = raw.len() - raw.trim_start().len();
            self.start = self.lines + ends(&raw[..blank]) + 1;
        }
        let text = entities::decode(raw);
        // Text that looks like our own markup is still text of the page.
        self.text.push_str(&if self.open == Open::Pre {
            text
        } else {
            text.replace(['*', '`'], "")
        });
        self.lines += ends(raw);
    }

    /// Handles markup that begins with `<`; returns its length.
    fn markup(&mut self, rest: &str) -> usize {
        let length = if rest.starts_with("<!--") {
            rest.find("-->").map_or(rest.len(), |at| at + 3)
        } else if rest.starts_with("<!") || rest.starts_with("<?") {
            rest.find('>').map_or(rest.len(), |at| at + 1)
        } else if let Some((name, closing, length)) = name_of(rest) {
            if HIDDEN.contains(&name.as_str()) && !closing {
                let end = find_ignoring_case(&rest[length..], &format!("</{name}"));
                end.map_or(rest.len(), |at| length + at)
            } else {
                self.tag(&name, closing);
                length
            }
        } else {
            self.text("<");
            1
        };
        self.lines += ends(&rest[..length]);
        length
    }

    fn tag(&mut self, name: &str, closing: bool) {
        let level = name.strip_prefix('h').and_then(|level| level.parse().ok());
        let opened = |open| if closing { Open::Paragraph } else { open };
        if let Some(level @ 1..=6) = level {
            return self.switch(opened(Open::Heading(level)));
        }
        match name {
            "title" => self.switch(opened(Open::Title)),
            "pre" => self.switch(opened(Open::Pre)),
            "li" => self.switch(opened(Open::Item)),
            "ul" | "ol" => {
                self.switch(Open::Paragraph);
                if closing {
                    self.numbered.pop();
                    if self.numbered.is_empty() {
                        self.builder.end_block();
                    }
                } else if self.numbered.len() < 8 {
                    self.numbered.push((name == "ol").then_some(0));
                }
            }
            "td" | "th" => {
                self.switch(opened(Open::Cell));
                let is_head = name == "th" && self.rows == 0;
                self.cell_kind = Some(if is_head { PassageKind::Head } else { PassageKind::Row });
            }
            "tr" => self.end_row(),
            "table" => {
                self.end_row();
                self.rows = 0;
                self.builder.end_block();
            }
            "code" | "kbd" | "samp" if self.open != Open::Pre => self.text.push('`'),
            "br" => self.text.push('\n'),
            _ if is_inline(name) => {}
            // Blocks inside an item or a cell are part of it.
            _ if self.open != Open::Paragraph => self.text.push(' '),
            _ => self.flush(),
        }
    }

    fn switch(&mut self, open: Open) {
        self.flush();
        self.open = open;
    }

    fn end_row(&mut self) {
        self.switch(Open::Paragraph);
        let cells = std::mem::take(&mut self.cells);
        if !cells.is_empty() {
            self.builder.row(self.cell_kind.unwrap_or(PassageKind::Row), &cells, self.start);
            self.rows += 1;
        }
    }

    fn flush(&mut self) {
        let text = std::mem::take(&mut self.text).replace("``", "");
        if text.trim().is_empty() && self.open != Open::Cell {
            return;
        }
        match self.open {
            Open::Paragraph => self.builder.paragraph(&text, self.start),
            Open::Title => self.builder.title(&text),
            Open::Heading(level) => self.builder.heading(level, &text),
            Open::Item => {
                let depth = self.numbered.len().saturating_sub(1);
                let marker = match self.numbered.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{number}.")
                    }
                    Some(None) | None => "-".to_owned(),
                };
                self.builder.item(&format!("{}{marker}", "  ".repeat(depth)), &text, self.start);
            }
            Open::Pre => self.builder.code("", &text, self.start),
            Open::Cell => self.cells.push(text),
        }
    }
}

fn ends(text: &str) -> u32 {
    u32::try_from(text.bytes().filter(|byte| *byte == b'\n').count()).unwrap_or(u32::MAX)
}

fn find_ignoring_case(text: &str, what: &str) -> Option<usize> {
    let what = what.as_bytes();
    text.as_bytes().windows(what.len()).position(|window| window.eq_ignore_ascii_case(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_becomes_its_text_with_lines_and_without_scripts() {
        let page = "<html><head><title>Shop &amp; Care</title>\n<script>var a = '<p>no</p>';</script></head>\n<body><h1>Shop &amp; Care</h1>\n<p>Open <b>daily</b>,\nbut see <a href='x'>hours</a>.</p>\n<ul>\n<li>One\n<li>Two</li></ul>\n<pre>a  &lt;b&gt;\n c</pre><table><tr><th>k<th>v</tr>\n<tr><td>x<td><code>y</code></tr></table></body>";
        let document = parse(page);
        assert_eq!(document.title.as_deref(), Some("Shop & Care"));
        let seen: Vec<_> = document.passages.iter().map(|p| (p.line, p.text.as_str())).collect();
        let expected = [
            (4, "Open daily, but see hours."),
            (7, "- One"),
            (8, "- Two"),
            (9, "\na  <b>\n c"),
            (10, "| k | v |"),
            (11, "| x | `y` |"),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn broken_pages_do_not_break_the_reader() {
        let odd = [
            "<",
            "<p",
            "<p a='",
            "</",
            "<!--",
            "<script>",
            "&",
            "&#x;",
            "&#99999999;",
            "<é>",
            "a < b",
            "<!",
            "<td>",
            "</tr>",
        ];
        for page in odd {
            parse(page);
            parse(&format!("x{page}y\n{page}"));
        }
        assert_eq!(parse("a < b &amp; c").passages[0].text, "a < b & c");
    }
}
