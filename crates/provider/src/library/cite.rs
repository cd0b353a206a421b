//! Citations: every shown block gets its number when it is first cited, so numbers rise through a report and every
//! source has a place in it.

use outlast_core::Source;

use super::document::UNDER;
use super::select::Block;

/// The sources of a report, in the order of their first citation.
#[derive(Debug, Default)]
pub(super) struct Citations {
    keys: Vec<(i64, u32)>,
    pub(super) sources: Vec<Source>,
}

impl Citations {
    /// The number of a block, as a report writes it.
    pub(super) fn cite(&mut self, block: &Block) -> String {
        let key = (block.best.file, block.best.block);
        if let Some(at) = self.keys.iter().position(|known| *known == key) {
            return format!("[{}]", at + 1);
        }
        self.keys.push(key);
        let number = u32::try_from(self.keys.len()).unwrap_or(u32::MAX);
        let line = block.parts.first().map_or(block.best.line, |part| part.line);
        self.sources.push(Source {
            number,
            url: format!("{}:{line}", block.best.name),
            title: Some(title(block)),
            date: None,
            snippet: None,
        });
        format!("[{number}]")
    }

    /// Adds the words that matter to a source that was just cited.
    pub(super) fn snippet(&mut self, text: String) {
        if let Some(source) = self.sources.last_mut() {
            source.snippet = Some(text);
        }
    }
}

/// The file's title and the headings above the block.
pub(super) fn title(block: &Block) -> String {
    let file = block.best.title.as_deref().unwrap_or(&block.best.name);
    if block.best.headings.is_empty() {
        file.to_owned()
    } else {
        format!("{file}{UNDER}{}", block.best.headings)
    }
}
