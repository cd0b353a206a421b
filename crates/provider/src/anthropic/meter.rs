//! The progress of a run, by its actual work: queries asked, sources read, words written (B6).

use std::collections::HashSet;

use outlast_core::Progress;

use super::wire::Event;
use crate::vendor::Milestones;

/// A message of fewer words is a remark on the way, not the report.
const FEWEST_WORDS: usize = 50;

/// Counts what happened and turns it into percent; never goes down. An event counts once, however often it is seen.
#[derive(Debug, Default)]
pub(super) struct Meter {
    pub(super) milestones: Milestones,
    seen: HashSet<String>,
    queries: usize,
    sources: usize,
    /// Words of the message that is being written.
    previewed: usize,
}

impl Meter {
    /// Counts an event; returns progress if it adds anything a person would notice.
    pub(super) fn event(&mut self, event: &Event) -> Option<Progress> {
        if let Some(piece) = event.preview() {
            self.previewed += piece.split_whitespace().count();
            return self.written(self.previewed);
        }
        if event.id.as_ref().is_some_and(|id| !self.seen.insert(id.clone())) {
            return None;
        }
        match event.kind.as_str() {
            "agent.tool_use" => {
                self.queries += usize::from(event.query().is_some());
                event.query().map(|_| self.milestones.searched(self.queries, self.sources))
            }
            "agent.tool_result" => {
                let read = event.blocks().filter(|block| block.is_page()).count();
                self.sources += read;
                (read > 0).then(|| self.milestones.searched(self.queries, self.sources))
            }
            "agent.message" => {
                self.previewed = 0;
                let texts = event.blocks().filter_map(|block| block.text.as_deref());
                let words = texts.map(|text| text.split_whitespace().count()).sum();
                self.written(words)
            }
            _ => None,
        }
    }

    fn written(&mut self, words: usize) -> Option<Progress> {
        (words >= FEWEST_WORDS).then(|| self.milestones.written(words))?
    }
}
