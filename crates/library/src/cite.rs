//! Citations. A block gets its number when it is first cited, so numbers rise through a report and every source
//! is cited. Blocks on one page of a PDF share a number, because a citation cannot point more precisely than a
//! page.

use outlast_core::Source;

use super::document::{HEADING_SEPARATOR, Unit};
use super::select::CitedPassages;

/// The sources of a report, in the order of their first citation.
#[derive(Debug, Default)]
pub(super) struct Citations {
    /// The file, and the block or page in it.
    keys: Vec<(i64, u32)>,
    pub(super) sources: Vec<Source>,
}

impl Citations {
    /// Returns the number of a block in the form that a report uses.
    pub(super) fn cite(&mut self, block: &CitedPassages) -> String {
        format!("[{}]", self.source(block).number)
    }

    /// Returns the source under which a block is cited.
    pub(super) fn source(&mut self, block: &CitedPassages) -> &mut Source {
        let line = block.line;
        let (within, place) = match block.best.unit {
            Unit::Line => (block.best.block, format!("{}:{line}", block.best.name)),
            Unit::Page => (line, format!("{}:p{line}", block.best.name)),
        };
        let key = (block.best.file, within);
        let at = self.keys.iter().position(|known| *known == key).unwrap_or(self.keys.len());
        if at == self.keys.len() {
            self.keys.push(key);
            self.sources.push(Source {
                number: u32::try_from(self.keys.len()).unwrap_or(u32::MAX),
                url: place,
                title: Some(title(block)),
                date: None,
                ..Source::default()
            });
        }
        &mut self.sources[at]
    }
}

/// The file's title and the headings above the block.
pub(super) fn title(block: &CitedPassages) -> String {
    let file = block.best.title.as_deref().unwrap_or(&block.best.name);
    if block.best.headings.is_empty() {
        file.to_owned()
    } else {
        format!("{file}{HEADING_SEPARATOR}{}", block.best.headings)
    }
}
