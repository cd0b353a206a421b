//! One frame of server-sent events before it becomes bytes.

use serde_json::Value;

/// A JSON object and the event it is sent as.
#[derive(Debug)]
pub(crate) struct Frame {
    /// Whether the frame has an `event:` line; its name is the object's `type`.
    named: bool,
    pub(crate) data: Value,
    /// Nothing of interest follows it.
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

    /// Leaves out which run it belongs to.
    pub(crate) fn hide_id(&mut self) {
        let object = if self.named { &mut self.data["response"] } else { &mut self.data };
        if let Some(fields) = object.as_object_mut() {
            fields.remove("id");
        }
    }

    /// Whether `[DONE]` follows, as it does after the last chunk of a chat.
    pub(crate) fn closes(&self) -> bool {
        self.terminal && !self.named
    }

    /// The frame as it travels.
    pub(crate) fn text(&self) -> String {
        let data = &self.data;
        match data["type"].as_str().filter(|_| self.named) {
            Some(name) => format!("event: {name}\ndata: {data}\n\n"),
            None => format!("data: {data}\n\n"),
        }
    }
}
