//! The text of an HTML page. The tokenizer follows the HTML standard and accepts any input.

use std::sync::Arc;

use html5gum::{DefaultEmitter, Token, Tokenizer};

use super::{Block, BlockKind, MAX_BLOCKS, MAX_TEXT, Obstacle, Page};
use crate::language::Language;
use crate::text::{count_words, normalize, squeeze};

/// Elements whose content is not shown to readers, or is the same on every page of a site.
const HIDDEN: &[&str] = &[
    "script", "style", "template", "noscript", "svg", "nav", "iframe", "select", "button",
    "object", "dialog", "form",
];
/// Elements inside running text.
const INLINE: &[&str] = &[
    "a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "del", "dfn", "em", "font", "i", "img",
    "ins", "kbd", "label", "mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub",
    "time", "tt", "u", "var", "wbr",
];
/// Fewer words on a page with scripts are not its text.
const SHELL: usize = 60;

/// The maximum number of spaces in a tag, outside of quotation marks.
const MAX_ATTRIBUTES: u32 = 5_000;
/// The maximum number of cells of a row.
const MAX_CELLS: usize = 1_000;

/// Reads a page.
pub(super) fn read(page: &str) -> Page {
    let mut reader = PageReader::default();
    let whole = page;
    let page = before_endless_tag(page);
    reader.page.truncated = page.len() < whole.len();
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    for token in Tokenizer::new_with_emitter(page, emitter) {
        let Ok(token) = token;
        match token {
            Token::StartTag(tag) => {
                let name = String::from_utf8_lossy(&tag.name).into_owned();
                let attribute = |name: &str| {
                    let value =
                        tag.attributes.iter().find(|(key, _)| key.as_slice() == name.as_bytes());
                    value.map(|(_, value)| String::from_utf8_lossy(&value.value).into_owned())
                };
                reader.open(&name, tag.self_closing, &attribute);
            }
            Token::EndTag(tag) => reader.close(&String::from_utf8_lossy(&tag.name)),
            Token::String(text) => reader.text(&String::from_utf8_lossy(&text)),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
    }
    reader.finish()
}

/// Returns the page before the first tag with more attributes than any page needs: the tokenizer keeps them all.
fn before_endless_tag(page: &str) -> &str {
    let (mut tag, mut pieces, mut quote) = (None, 0, None);
    for (at, byte) in page.bytes().enumerate() {
        match (tag, byte) {
            (None, b'<') => (tag, pieces, quote) = (Some(at), 0, None),
            (None, _) => {}
            (Some(_), b'"' | b'\'') if quote.is_none() => quote = Some(byte),
            (Some(_), _) if quote == Some(byte) => quote = None,
            (Some(_), _) if quote.is_some() => {}
            (Some(_), b'>') => tag = None,
            (Some(start), b' ' | b'\n' | b'\t' | b'\r' | b'/') => {
                pieces += 1;
                if pieces > MAX_ATTRIBUTES {
                    return &page[..start];
                }
            }
            (Some(_), _) => {}
        }
    }
    page
}

#[derive(Default)]
struct PageReader {
    page: Page,
    main: Part,
    other: Part,
    edge: Part,
    text: String,
    /// The hidden element in which the reader is, and the depth of elements of that name.
    hidden: Option<(String, u32)>,
    hidden_text: String,
    main_depth: u32,
    edge_depth: u32,
    in_title: bool,
    heading: Option<u8>,
    path: Vec<(u8, String)>,
    headings: Arc<str>,
    in_item: bool,
    table: Option<Table>,
    has_term: bool,
    scripts: u32,
    is_paid: bool,
}

/// A part of a page, and the length of its text.
#[derive(Default)]
struct Part {
    blocks: Vec<Block>,
    length: usize,
}

impl Part {
    /// Adds a block. What follows the maximum length or number is left out here: a list of all blocks takes more memory than the
    /// page.
    fn push(&mut self, block: Block) {
        if self.length <= MAX_TEXT && self.blocks.len() <= MAX_BLOCKS {
            self.length += block.text.len();
            self.blocks.push(block);
        }
    }
}

#[derive(Default)]
struct Table {
    header: Option<Arc<[String]>>,
    cells: Vec<String>,
    has_data: bool,
    in_cell: bool,
}

type Attribute<'a> = &'a dyn Fn(&str) -> Option<String>;

impl PageReader {
    fn open(&mut self, name: &str, self_closing: bool, attribute: Attribute<'_>) {
        if let Some((hidden, depth)) = &mut self.hidden {
            if hidden == name && !self_closing {
                *depth += 1;
            }
            return;
        }
        self.scripts += u32::from(name == "script");
        let is_reference =
            name == "sup" && attribute("class").is_some_and(|class| class.contains("reference"));
        let is_unseen = attribute("hidden").is_some() && !INLINE.contains(&name);
        if (HIDDEN.contains(&name) || is_reference || is_unseen) && !self_closing {
            // A form around a whole page is not hidden.
            if name != "form" {
                self.hidden = Some((name.to_owned(), 1));
                self.hidden_text.clear();
            }
            return;
        }
        match name {
            "html" => {
                self.page.language = attribute("lang").and_then(|code| Language::from_code(&code))
            }
            "meta" => self.meta(attribute),
            "title" => self.in_title = self.page.title.is_none(),
            "main" | "article" => {
                self.flush();
                self.main_depth += 1;
            }
            "header" | "footer" | "aside" => {
                self.flush();
                self.edge_depth += 1;
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.flush();
                self.heading = name[1..].parse().ok();
            }
            "li" => {
                self.flush();
                self.in_item = true;
            }
            "table" => {
                self.flush();
                self.table = Some(Table::default());
            }
            "tr" => self.end_row(),
            "td" | "th" => {
                self.end_cell();
                if let Some(table) = &mut self.table {
                    table.in_cell = true;
                    table.has_data |= name == "td";
                }
            }
            "dt" => {
                self.flush();
                self.has_term = true;
            }
            "dd" if self.has_term => self.text.push_str(" | "),
            "sup" => {
                if self.text.ends_with(|c: char| c.is_ascii_digit()) {
                    self.text.push('^');
                }
            }
            "br" => self.text.push(' '),
            _ if INLINE.contains(&name) => {}
            _ => self.block(),
        }
    }

    fn close(&mut self, name: &str) {
        if let Some((hidden, depth)) = &mut self.hidden {
            if hidden == name {
                *depth -= 1;
                if *depth == 0 {
                    let paid =
                        ["\"isAccessibleForFree\":false", "\"isAccessibleForFree\":\"False\""];
                    let bare: String =
                        self.hidden_text.chars().filter(|c| !c.is_whitespace()).collect();
                    self.is_paid |= paid.iter().any(|paid| bare.contains(paid));
                    self.hidden = None;
                }
            }
            return;
        }
        match name {
            "title" => {
                if std::mem::take(&mut self.in_title) {
                    let title = squeeze(&normalize(&std::mem::take(&mut self.text)));
                    self.page.title = Some(title).filter(|title| !title.is_empty());
                }
            }
            "main" | "article" => {
                self.flush();
                self.main_depth = self.main_depth.saturating_sub(1);
            }
            "header" | "footer" | "aside" => {
                self.flush();
                self.edge_depth = self.edge_depth.saturating_sub(1);
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.end_heading(),
            "li" => {
                self.flush();
                self.in_item = false;
            }
            "ul" | "ol" => {
                self.flush();
                self.in_item = false;
            }
            "tr" => self.end_row(),
            "table" => {
                self.end_row();
                self.table = None;
            }
            "td" | "th" => self.end_cell(),
            "dd" => self.flush(),
            "dt" => {}
            "sup" => {}
            _ if INLINE.contains(&name) => {}
            _ => self.block(),
        }
    }

    fn text(&mut self, text: &str) {
        if self.hidden.is_some() {
            if self.hidden_text.len() < 64 << 10 {
                self.hidden_text.push_str(text);
            }
            return;
        }
        let room = (MAX_TEXT + 1).saturating_sub(self.text.len());
        let fits = text.floor_char_boundary(room);
        self.page.truncated |= fits < text.len();
        self.text.push_str(&text[..fits]);
    }

    fn meta(&mut self, attribute: Attribute<'_>) {
        let name = attribute("name").or_else(|| attribute("property")).unwrap_or_default();
        if matches!(name.as_str(), "description" | "og:description")
            && self.page.description.is_none()
        {
            self.page.description = attribute("content").map(|text| squeeze(&normalize(&text)));
        }
    }

    /// Ends a block, unless it is part of a cell, an item or a term.
    fn block(&mut self) {
        let in_cell = self.table.as_ref().is_some_and(|table| table.in_cell);
        if in_cell || self.has_term || self.heading.is_some() {
            self.text.push(' ');
        } else if !self.in_title {
            self.flush();
        }
    }

    fn end_heading(&mut self) {
        let Some(level) = self.heading.take() else { return };
        let text = squeeze(&normalize(&std::mem::take(&mut self.text)));
        if text.is_empty() {
            return;
        }
        self.path.retain(|(above, _)| *above < level);
        self.path.push((level, crate::text::shorten(&text, 200)));
        let path: Vec<_> = self.path.iter().map(|(_, text)| text.as_str()).collect();
        self.headings = path.join(" > ").into();
    }

    fn end_cell(&mut self) {
        if let Some(table) = &mut self.table
            && std::mem::take(&mut table.in_cell)
        {
            let text = std::mem::take(&mut self.text);
            if table.cells.len() < MAX_CELLS {
                table.cells.push(squeeze(&normalize(&text)));
            } else {
                self.page.truncated = true;
            }
        }
    }

    fn end_row(&mut self) {
        self.end_cell();
        let Some(table) = &mut self.table else { return };
        let cells = std::mem::take(&mut table.cells);
        if cells.iter().all(String::is_empty) {
            return;
        }
        if !std::mem::take(&mut table.has_data) && table.header.is_none() && cells.len() > 1 {
            table.header = Some(cells.into());
            return;
        }
        let header = table.header.clone();
        let cells: Vec<_> = cells.iter().map(|cell| cell.replace(" | ", " / ")).collect();
        self.push(cells.join(" | "), BlockKind::Row, header);
    }

    fn flush(&mut self) {
        if self.in_title || self.table.as_ref().is_some_and(|table| table.in_cell) {
            return;
        }
        if self.heading.is_some() {
            return self.end_heading();
        }
        let text = squeeze(&normalize(&std::mem::take(&mut self.text)));
        let kind = match (std::mem::take(&mut self.has_term), self.in_item) {
            (true, _) if text.contains(" | ") => BlockKind::Row,
            (_, true) => BlockKind::Item,
            (_, false) => BlockKind::Paragraph,
        };
        if !text.is_empty() {
            self.push(text, kind, None);
        }
    }

    fn push(&mut self, text: String, kind: BlockKind, header: Option<Arc<[String]>>) {
        let block = Block { headings: Arc::clone(&self.headings), text, kind, header };
        let part = match (self.main_depth, self.edge_depth) {
            (1.., _) => &mut self.main,
            (0, 0) => &mut self.other,
            (0, _) => &mut self.edge,
        };
        part.push(block);
    }

    fn finish(mut self) -> Page {
        self.end_row();
        self.table = None;
        self.in_title = false;
        self.flush();
        let Self { mut page, main, other, edge, is_paid, scripts, .. } = self;
        page.blocks = main.blocks;
        page.blocks.extend(other.blocks);
        // The edge of a page is the same on every page of a site, unless the page has nothing else.
        if page.words() < SHELL {
            page.blocks.extend(edge.blocks);
        }
        let words: usize = page.blocks.iter().map(|block| count_words(&block.text)).sum();
        if is_paid {
            page.obstacle = Some(Obstacle::Paywall);
        } else if scripts > 0 && words < 12 {
            page.obstacle = Some(Obstacle::ScriptShell);
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J2
    #[test]
    fn main_content_comes_first_and_tables_are_rows() {
        let page = read(
            "<html lang=de-AT><title>Shop &amp; Care</title><meta name=description content='A shop'>\
             <nav>Menu</nav><header>Top</header><p>Before</p><main><h1>Shop</h1><p>Open <b>daily</b>, but see \
             <a href=x>hours</a>.<sup class=reference>[3]</sup> 10<sup>6</sup> km<sup>2</sup></p><h2>Prices</h2><ul><li>One<li>Two</ul>\
             <table><tr><th>Name<th>Price<tr><td>Saw<td>5 &euro;</table><dl><dt>Size<dd>5 cm</dl></main><footer>End</footer>",
        );
        assert_eq!(page.title.as_deref(), Some("Shop & Care"));
        assert_eq!(page.description.as_deref(), Some("A shop"));
        assert_eq!(page.language, Some(Language::German));
        let seen: Vec<_> =
            page.blocks.iter().map(|b| (&*b.headings, b.kind, b.text.as_str())).collect();
        let expected = [
            ("Shop", BlockKind::Paragraph, "Open daily, but see hours. 10^6 km2"),
            ("Shop > Prices", BlockKind::Item, "One"),
            ("Shop > Prices", BlockKind::Item, "Two"),
            ("Shop > Prices", BlockKind::Row, "Saw | 5 €"),
            ("Shop > Prices", BlockKind::Row, "Size | 5 cm"),
            ("", BlockKind::Paragraph, "Before"),
            ("", BlockKind::Paragraph, "Top"),
            ("Shop > Prices", BlockKind::Paragraph, "End"),
        ];
        assert_eq!(seen, expected);
        assert_eq!(
            page.blocks[3].header.as_deref(),
            Some(["Name".to_owned(), "Price".to_owned()].as_slice())
        );
    }

    /// J7
    #[test]
    fn broken_pages_do_not_break_the_reader() {
        for odd in [
            "<",
            "<p",
            "<p a='",
            "</",
            "<!--",
            "<script>",
            "&",
            "&#x;",
            "&#99999999;",
            "<td>",
            "</tr>",
            "<h1>",
            "<dd>",
            "<table><td>",
        ] {
            read(odd);
            read(&format!("x{odd}y\n{odd}<p>z"));
        }
        let deep = "<div><table><tr><td>".repeat(20_000);
        read(&deep);
    }
}
