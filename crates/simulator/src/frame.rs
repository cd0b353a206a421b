//! One frame of server-sent events before it is encoded.

use serde_json::Value;

use crate::faults::{Malformation, Malformed};
use crate::malformed;

/// A JSON object and the event as which it is sent.
#[derive(Debug)]
pub(crate) struct Frame {
    /// True if the frame has an `event:` line, which contains the object's `type`.
    named: bool,
    pub(crate) data: Value,
    /// True for the last frame of interest.
    pub(crate) terminal: bool,
}

impl Frame {
    pub(crate) fn event(data: Value, terminal: bool) -> Self {
        Self { named: true, data, terminal }
    }

    pub(crate) fn data(data: Value) -> Self {
        Self { named: false, data, terminal: false }
    }

    pub(crate) fn terminal(data: Value) -> Self {
        Self { named: false, data, terminal: true }
    }

    /// Removes the id of the run.
    pub(crate) fn hide_id(&mut self) {
        let place = if self.data["event_type"].is_string() { "interaction" } else { "response" };
        let object = if self.named { &mut self.data[place] } else { &mut self.data };
        if let Some(fields) = object.as_object_mut() {
            fields.remove("id");
        }
    }

    /// Returns true if `[DONE]` follows, as it does after the last chunk of a chat.
    pub(crate) fn closes(&self) -> bool {
        self.terminal && !self.named
    }

    /// Encodes the frame.
    pub(crate) fn bytes(self) -> Vec<u8> {
        let data = self.data.to_string();
        self.encode(data.as_bytes())
    }

    /// Encodes the frame with corrupted data; a truncated one has no end.
    pub(crate) fn corrupted_bytes(self, malformed: &Malformed) -> Vec<u8> {
        let data = malformed::corrupt(self.data.clone(), malformed);
        let mut bytes = self.encode(&data);
        if malformed.kind == Malformation::Truncated {
            bytes.truncate(bytes.len() - 2);
        }
        bytes
    }

    fn encode(&self, data: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(data.len() + 64);
        let name = self.data["type"].as_str().or(self.data["event_type"].as_str());
        if let Some(name) = name.filter(|_| self.named) {
            bytes.extend_from_slice(format!("event: {name}\n").as_bytes());
        }
        bytes.extend_from_slice(b"data: ");
        bytes.extend_from_slice(data);
        bytes.extend_from_slice(b"\n\n");
        bytes
    }
}
