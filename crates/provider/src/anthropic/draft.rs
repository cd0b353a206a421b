//! The text so far (G8): what the agent has written since it last used a tool, the message that it is writing included.

use outlast_core::Partial;

use super::wire::Event;

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
    pub(super) fn shown(&self) -> Option<String> {
        self.text.shown()
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
            assert_eq!(draft.shown().as_deref(), expected, "{events:?}");
        }
    }
}
