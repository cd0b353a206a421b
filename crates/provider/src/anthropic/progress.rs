//! The progress of a session: its text so far (G8), and its percentage by the actual work: queries asked, sources read,
//! words written (B6).

use std::collections::HashSet;

use outlast_core::{Partial, Progress};

use super::wire::Event;
use crate::vendor::Milestones;

/// The beginning of the report, as far as it is known.
#[derive(Debug, Default)]
pub(super) struct Draft {
    text: Partial,
    /// True if the message that is being written was received from its first word on.
    hears: bool,
}

impl Draft {
    /// Puts in its place what a look at all events shows.
    pub(super) fn replace(&mut self, text: &str) {
        self.text.replace(text);
        self.hears = false;
    }

    /// Adds an event of the stream.
    pub(super) fn event(&mut self, event: &Event) {
        if let Some(piece) = event.preview() {
            if self.hears {
                self.text.push(piece);
            }
            return;
        }
        match event.kind.as_str() {
            "agent.tool_use" => self.replace(""),
            "event_start" => {
                self.begin_message();
                self.hears = true;
            }
            "agent.message" => {
                if !self.hears {
                    self.begin_message();
                    for text in event.blocks().filter_map(|block| block.text.as_deref()) {
                        self.text.push(text);
                    }
                }
                self.hears = false;
            }
            _ => {}
        }
    }

    fn begin_message(&mut self) {
        if !self.text.is_empty() {
            self.text.push("\n\n");
        }
    }

    /// The part of it that may be shown.
    pub(super) fn visible_text(&self) -> Option<String> {
        self.text.visible_text()
    }
}

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
            return self.report_written(self.previewed);
        }
        if event.id.as_ref().is_some_and(|id| !self.seen.insert(id.clone())) {
            return None;
        }
        match event.kind.as_str() {
            "agent.tool_use" => {
                self.queries += usize::from(event.query().is_some());
                self.milestones.report_search(self.queries, self.sources)
            }
            "agent.tool_result" => {
                self.sources += event.blocks().filter(|block| block.is_page()).count();
                self.milestones.report_search(self.queries, self.sources)
            }
            "agent.message" => {
                self.previewed = 0;
                let texts = event.blocks().filter_map(|block| block.text.as_deref());
                let words = texts.map(|text| text.split_whitespace().count()).sum();
                self.report_written(words)
            }
            _ => None,
        }
    }

    fn report_written(&mut self, words: usize) -> Option<Progress> {
        (words >= FEWEST_WORDS).then(|| self.milestones.report_words(words))?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::object;

    /// G8: a message is shown while it is written, once, and what was said before a search is not.
    #[test]
    fn g8_the_text_since_the_last_search_is_shown_once() {
        let start = r#"{"type":"event_start","event":{"type":"agent.message","id":"m"}}"#;
        let piece = r#"{"type":"event_delta","delta":{"type":"content_delta","content":{"type":"text","text":"One"}}}"#;
        let whole = r#"{"type":"agent.message","content":[{"type":"text","text":"One two"}]}"#;
        let search = r#"{"type":"agent.tool_use","name":"web_search","input":{"query":"q"}}"#;
        let cases: [(&[&str], Option<&str>); 6] = [
            (&[start, piece], Some("One")),
            // It was not received from its beginning on.
            (&[piece], None),
            (&[piece, whole], Some("One two")),
            (&[start, piece, whole], Some("One")),
            (&[whole, start, piece], Some("One two\n\nOne")),
            (&[whole, search, start, piece], Some("One")),
        ];
        for (events, expected) in cases {
            let mut draft = Draft::default();
            for event in events {
                draft.event(&object::<Event>(event.as_bytes()).unwrap());
            }
            assert_eq!(draft.visible_text().as_deref(), expected, "{events:?}");
        }
    }
}
