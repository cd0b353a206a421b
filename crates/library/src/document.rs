//! A parsed file: passages under their headings, each with its first line or page.
//!
//! The parsers of the formats drive [`Builder`] and know nothing about passages.

use std::sync::Arc;

use super::clean::{self, truncate};
use super::sentences;

/// Longer paragraphs are split at sentence ends, so that a citation points at a place that is easy to find.
const MAX_PARAGRAPH_BYTES: usize = 1_200;
/// Longer sentences, as in a file without line ends, are cut here; in characters.
const MAX_SENTENCE_CHARS: usize = 4_000;
/// A heading is stored with each passage below it, so its length is limited too; in characters.
const MAX_HEADING_CHARS: usize = 200;
/// The maximum length of a line such as "Default: 5".
const MAX_DEFINITION_BYTES: usize = 120;

/// Separates the headings of a path.
pub(super) const HEADING_SEPARATOR: &str = " › ";

/// The parsed text of a file.
#[derive(Debug, Default)]
pub(super) struct Document {
    /// The title from the front matter or the HTML head, or the first heading of the highest level.
    pub(super) title: Option<String>,
    pub(super) unit: Unit,
    pub(super) passages: Vec<Passage>,
}

/// The unit in which places in a file are counted. The index stores the number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Unit {
    #[default]
    Line = 0,
    /// For PDF files, because their readers cannot count lines.
    Page = 1,
}

impl Unit {
    /// Converts the number that the index stores.
    pub(super) fn from_code(code: u8) -> Self {
        if code == Self::Page as u8 { Self::Page } else { Self::Line }
    }
}

/// The smallest unit that a search finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Passage {
    /// The number of the heading it belongs to.
    pub(super) section: u32,
    /// The number of the block it is shown with: a list, a table, a lead-in sentence.
    pub(super) block: u32,
    /// Its first line or page, counted from 1, in the unit of the file.
    pub(super) line: u32,
    pub(super) kind: PassageKind,
    /// The headings above it, without the file's title.
    pub(super) headings: Arc<str>,
    /// The text as a report shows it.
    pub(super) text: String,
    /// True if it only leads to other places, and is not searched.
    pub(super) is_navigation: bool,
}

/// The role of a passage in its file. The index stores the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PassageKind {
    Paragraph = 0,
    Item = 1,
    /// The first row of a table.
    Head = 2,
    Row = 3,
    Code = 4,
    /// A line that ends on purpose: in a phone list, in settings, in verse.
    Line = 5,
}

impl PassageKind {
    /// Returns true for a passage that is one of many independent entries.
    pub(super) fn is_listed(self) -> bool {
        matches!(self, Self::Line | Self::Item | Self::Row)
    }

    /// Converts the number that the index stores; unknown numbers are prose.
    pub(super) fn from_code(code: u8) -> Self {
        let all = [Self::Item, Self::Head, Self::Row, Self::Code, Self::Line];
        all.into_iter().find(|kind| *kind as u8 == code).unwrap_or(Self::Paragraph)
    }
}

/// Builds a document in the order of its file.
#[derive(Default)]
pub(super) struct Builder {
    document: Document,
    path: Vec<(u8, String)>,
    /// The path as one string that all passages below it share.
    headings: Arc<str>,
    section: u32,
    block: u32,
    last: Option<PassageKind>,
    /// True if the last paragraph introduces the next block ("It has three parts:").
    leads: bool,
    /// True if the text that is being added only leads to other places.
    is_navigation: bool,
    /// True after a heading, as long as only definition lines follow it.
    defines: bool,
}

impl Builder {
    /// Creates a builder for a file whose places are counted in this unit.
    pub(super) fn counting(unit: Unit) -> Self {
        Self { document: Document { unit, ..Document::default() }, ..Self::default() }
    }

    pub(super) fn title(&mut self, text: &str) {
        let text = clean::inline(text);
        if !text.is_empty() {
            self.document.title.get_or_insert(truncate(&text, MAX_HEADING_CHARS).to_owned());
        }
    }

    pub(super) fn heading(&mut self, level: u8, text: &str) {
        let text = clean::inline(text.trim().trim_end_matches('#'));
        if text.is_empty() {
            return;
        }
        let text = truncate(&text, MAX_HEADING_CHARS).to_owned();
        self.end_block();
        self.defines = true;
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
        self.is_navigation = clean::is_navigation(raw);
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
            part.push_str(truncate(sentence, MAX_SENTENCE_CHARS));
        }
        self.add(PassageKind::Paragraph, part, line);
    }

    /// Adds a line that stays separate.
    pub(super) fn line(&mut self, raw: &str, line: u32) {
        let text = clean::inline(raw);
        self.add(PassageKind::Line, truncate(&text, MAX_SENTENCE_CHARS).to_owned(), line);
    }

    /// Adds a list item; `marker` includes its indent.
    pub(super) fn item(&mut self, marker: &str, raw: &str, line: u32) {
        let text = clean::inline(raw);
        if !text.is_empty() {
            self.is_navigation = clean::is_navigation(raw);
            self.add(
                PassageKind::Item,
                format!("{marker} {}", truncate(&text, MAX_SENTENCE_CHARS)),
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

    /// Adds a listing; its text begins with a line for the language, which may be empty.
    pub(super) fn code(&mut self, language: &str, raw: &str, line: u32) {
        let text = raw.trim_matches('\n').trim_end();
        if !text.trim().is_empty() {
            self.add(PassageKind::Code, format!("{language}\n{text}"), line);
        }
    }

    /// Ends a list of lines.
    pub(super) fn end_lines(&mut self) {
        if self.last == Some(PassageKind::Line) {
            self.end_block();
        }
    }

    /// Ends the block; the next passage is independent.
    pub(super) fn end_block(&mut self) {
        self.last = None;
        self.leads = false;
    }

    pub(super) fn finish(self) -> Document {
        self.document
    }

    /// Returns true if a definition line is the last passage of this section.
    fn has_definitions(&self) -> bool {
        self.document.passages.last().is_some_and(|last| last.section == self.section)
    }

    fn add(&mut self, kind: PassageKind, text: String, line: u32) {
        if text.is_empty() {
            return;
        }
        let defines = is_definition(kind, &text);
        let goes_on = match (self.last, kind) {
            // "Default: 5" belongs to the paragraph next to it.
            (Some(PassageKind::Paragraph), PassageKind::Paragraph | PassageKind::Line | PassageKind::Item)
                if defines => true,
            (_, PassageKind::Paragraph) if self.defines && self.has_definitions() => true,
            (Some(PassageKind::Item), PassageKind::Item)
            | (Some(PassageKind::Line), PassageKind::Line)
            | (Some(PassageKind::Head | PassageKind::Row), PassageKind::Row)
            // A listing is shown with the text just before it.
            | (Some(PassageKind::Paragraph | PassageKind::Item), PassageKind::Code) => true,
            (_, PassageKind::Paragraph) => false,
            (_, PassageKind::Line | PassageKind::Item | PassageKind::Head | PassageKind::Row | PassageKind::Code) => self.leads,
        };
        if !goes_on {
            self.block += 1;
        }
        self.defines &= defines;
        self.leads = kind == PassageKind::Paragraph && text.ends_with(':');
        self.last = Some(kind);
        self.document.passages.push(Passage {
            section: self.section,
            block: self.block,
            line,
            kind,
            headings: Arc::clone(&self.headings),
            text,
            is_navigation: std::mem::take(&mut self.is_navigation),
        });
    }
}

/// Returns true for a line that states a property of the thing in the heading: "Default: `1048576`".
fn is_definition(kind: PassageKind, text: &str) -> bool {
    let text = match kind {
        PassageKind::Paragraph | PassageKind::Line => text,
        PassageKind::Item => text.trim_start().split_once(' ').map_or("", |(_, text)| text),
        PassageKind::Head | PassageKind::Row | PassageKind::Code => return false,
    };
    text.len() <= MAX_DEFINITION_BYTES
        && text.starts_with(|c: char| c.is_uppercase() || c == '`')
        && text.split_once(": ").is_some_and(|(name, value)| {
            name.split_whitespace().count() <= 3 && !name.contains('.') && !value.contains(". ")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heading_is_stored_once_for_all_passages_below_it() {
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
