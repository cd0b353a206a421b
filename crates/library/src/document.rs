//! What a file becomes: passages under their headings, each with the line or page it starts at.
//!
//! The parsers of the formats drive [`Builder`]; none of them knows what a passage is.

use std::sync::Arc;

use super::clean::{self, cut};
use super::sentences;

/// A paragraph longer than this is cut at sentence ends, so that a citation points at something one can find.
const MAX_PARAGRAPH_BYTES: usize = 1_200;
/// A sentence without an end, as of a file without line ends, is cut here; in characters.
const MAX_SENTENCE_CHARS: usize = 4_000;
/// A heading is stored with each passage below it, so it has an end too; in characters.
const MAX_HEADING_CHARS: usize = 200;

/// Between the headings of a path.
pub(super) const HEADING_SEPARATOR: &str = " › ";

/// A file's text, taken apart.
#[derive(Debug, Default)]
pub(super) struct Document {
    /// What its front matter or HTML head calls it, or its first heading of the highest level.
    pub(super) title: Option<String>,
    pub(super) unit: Unit,
    pub(super) passages: Vec<Passage>,
}

/// What the places in a file are counted in. The number is what the index stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Unit {
    #[default]
    Line = 0,
    /// A reader of a PDF cannot count lines.
    Page = 1,
}

impl Unit {
    /// From the index.
    pub(super) fn from_code(code: u8) -> Self {
        if code == Self::Page as u8 { Self::Page } else { Self::Line }
    }
}

/// The smallest thing that is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Passage {
    /// Which heading of the file it stands under, counted.
    pub(super) section: u32,
    /// What it is shown with: the list, the table, the sentence that leads up to it.
    pub(super) block: u32,
    /// Where it starts, from 1, in the unit of the file.
    pub(super) line: u32,
    pub(super) kind: PassageKind,
    /// The headings above it, without the file's title.
    pub(super) headings: Arc<str>,
    /// As a report shows it.
    pub(super) text: String,
}

/// What a passage is in its file. The number is what the index stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PassageKind {
    Paragraph = 0,
    Item = 1,
    /// The first row of a table.
    Head = 2,
    Row = 3,
    Code = 4,
    /// A line that its writer ended on purpose: of a phone list, of settings, of verse.
    Line = 5,
}

impl PassageKind {
    /// Whether it is one of many that stand together, each for itself.
    pub(super) fn is_listed(self) -> bool {
        matches!(self, Self::Line | Self::Item | Self::Row)
    }

    /// From the index; what it does not know is prose.
    pub(super) fn from_code(code: u8) -> Self {
        let all = [Self::Item, Self::Head, Self::Row, Self::Code, Self::Line];
        all.into_iter().find(|kind| *kind as u8 == code).unwrap_or(Self::Paragraph)
    }
}

/// Puts a document together in the order of its file.
#[derive(Default)]
pub(super) struct Builder {
    document: Document,
    path: Vec<(u8, String)>,
    /// The path as one text, which all passages below it share.
    headings: Arc<str>,
    section: u32,
    block: u32,
    last: Option<PassageKind>,
    /// The last paragraph leads up to what comes next ("It has three parts:").
    leads: bool,
}

impl Builder {
    /// For a file whose places are not lines.
    pub(super) fn counting(unit: Unit) -> Self {
        Self { document: Document { unit, ..Document::default() }, ..Self::default() }
    }

    pub(super) fn title(&mut self, text: &str) {
        let text = clean::inline(text);
        if !text.is_empty() {
            self.document.title.get_or_insert(cut(&text, MAX_HEADING_CHARS).to_owned());
        }
    }

    pub(super) fn heading(&mut self, level: u8, text: &str) {
        let text = clean::inline(text.trim().trim_end_matches('#'));
        if text.is_empty() {
            return;
        }
        let text = cut(&text, MAX_HEADING_CHARS).to_owned();
        self.end_block();
        self.section += 1;
        self.path.retain(|(above, _)| *above < level);
        let is_title = self.document.title.is_none() && self.document.passages.is_empty();
        if is_title && level == 1 {
            self.document.title = Some(text);
        } else if self.path.last().is_none_or(|(_, above)| *above != text)
            && self.document.title.as_ref() != Some(&text)
        {
            self.path.push((level, text));
        }
        let headings: Vec<_> = self.path.iter().map(|(_, text)| text.as_str()).collect();
        self.headings = headings.join(HEADING_SEPARATOR).into();
    }

    pub(super) fn paragraph(&mut self, raw: &str, line: u32) {
        let text = clean::inline(raw);
        if text.len() <= MAX_PARAGRAPH_BYTES {
            return self.add(PassageKind::Paragraph, text, line);
        }
        let mut part = String::new();
        for sentence in sentences::split(&text) {
            if !part.is_empty() && part.len() + sentence.len() > MAX_PARAGRAPH_BYTES * 3 / 4 {
                self.add(PassageKind::Paragraph, std::mem::take(&mut part), line);
            }
            if !part.is_empty() {
                part.push(' ');
            }
            part.push_str(cut(sentence, MAX_SENTENCE_CHARS));
        }
        self.add(PassageKind::Paragraph, part, line);
    }

    /// A line that stays one.
    pub(super) fn line(&mut self, raw: &str, line: u32) {
        let text = clean::inline(raw);
        self.add(PassageKind::Line, cut(&text, MAX_SENTENCE_CHARS).to_owned(), line);
    }

    /// An item of a list; `marker` with its indent.
    pub(super) fn item(&mut self, marker: &str, raw: &str, line: u32) {
        let text = clean::inline(raw);
        if !text.is_empty() {
            self.add(
                PassageKind::Item,
                format!("{marker} {}", cut(&text, MAX_SENTENCE_CHARS)),
                line,
            );
        }
    }

    pub(super) fn row(&mut self, kind: PassageKind, cells: &[String], line: u32) {
        let cells: Vec<_> =
            cells.iter().map(|cell| clean::inline(cell).replace('|', "\\|")).collect();
        if cells.iter().any(|cell| !cell.is_empty()) {
            self.add(kind, format!("| {} |", cells.join(" | ")), line);
        }
    }

    pub(super) fn code(&mut self, raw: &str, line: u32) {
        let text = raw.trim_matches('\n').trim_end();
        if !text.trim().is_empty() {
            self.add(PassageKind::Code, text.to_owned(), line);
        }
    }

    /// A list of lines is over; what comes next is another.
    pub(super) fn end_lines(&mut self) {
        if self.last == Some(PassageKind::Line) {
            self.end_block();
        }
    }

    /// What comes next stands for itself.
    pub(super) fn end_block(&mut self) {
        self.last = None;
        self.leads = false;
    }

    pub(super) fn finish(self) -> Document {
        self.document
    }

    fn add(&mut self, kind: PassageKind, text: String, line: u32) {
        if text.is_empty() {
            return;
        }
        let goes_on = match (self.last, kind) {
            (Some(PassageKind::Item), PassageKind::Item)
            | (Some(PassageKind::Line), PassageKind::Line)
            | (Some(PassageKind::Head | PassageKind::Row), PassageKind::Row)
            // A listing shows what was said just before it.
            | (Some(PassageKind::Paragraph | PassageKind::Item), PassageKind::Code) => true,
            (_, PassageKind::Paragraph) => false,
            (_, PassageKind::Line | PassageKind::Item | PassageKind::Head | PassageKind::Row | PassageKind::Code) => self.leads,
        };
        if !goes_on {
            self.block += 1;
        }
        self.leads = kind == PassageKind::Paragraph && text.ends_with(':');
        self.last = Some(kind);
        self.document.passages.push(Passage {
            section: self.section,
            block: self.block,
            line,
            kind,
            headings: Arc::clone(&self.headings),
            text,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_costs_no_more_for_having_many_passages_below_it() {
        let mut builder = Builder::default();
        builder.title(&"t".repeat(9_000));
        builder.heading(2, &"ü".repeat(9_000));
        builder.paragraph("One.", 1);
        builder.paragraph("Two.", 2);
        let document = builder.finish();
        let [one, two] = document.passages.as_slice() else { panic!("two") };
        assert!(Arc::ptr_eq(&one.headings, &two.headings));
        assert_eq!(
            (one.headings.chars().count(), document.title.map(|t| t.len())),
            (200, Some(200))
        );
    }
}
