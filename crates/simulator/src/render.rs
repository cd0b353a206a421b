//! Renders a run in the format of its API.

use serde_json::Value;

use crate::ask::Api;
use crate::frame::Frame;
use crate::run::Run;
use crate::{agent, anthropic, gemini, openai, sonar};

impl Run {
    /// The body of a GET after `seen` events; for a chat answer, the response its client waited for.
    pub(crate) fn object(&self, seen: usize) -> Value {
        match &self.ask.sonar {
            None if self.ask.api == Api::OpenAi => openai::wire::object(self, seen),
            None if self.ask.api == Api::Gemini => gemini::wire::object(self, seen),
            None if self.ask.api == Api::Anthropic => anthropic::wire::sent(self),
            None => agent::wire::object(self, seen),
            Some(sonar) if self.ask.api == Api::SonarAsync => sonar::wire::job(self, sonar, seen),
            Some(sonar) => sonar::wire::completion(self, sonar, seen),
        }
    }

    /// The frames that event number `index` sends over a stream.
    pub(crate) fn frames(&self, index: usize) -> Vec<Frame> {
        let is_terminal = self.timeline.event(index).is_terminal();
        match &self.ask.sonar {
            None if self.ask.api == Api::OpenAi => {
                let event = openai::wire::event(self, index);
                event.map(|event| Frame::event(event, is_terminal)).into_iter().collect()
            }
            None if self.ask.api == Api::Gemini => gemini::events::frames(self, index),
            None if self.ask.api == Api::Anthropic => anthropic::wire::frames(self, index),
            None => vec![Frame::event(agent::wire::event(self, index), is_terminal)],
            Some(sonar) => sonar::wire::frames(self, sonar, index),
        }
    }

    /// The status after `seen` events, in the terms of its API.
    pub(crate) fn status(&self, seen: usize) -> &'static str {
        match &self.ask.sonar {
            None if self.ask.api == Api::Gemini => gemini::wire::status(self, seen),
            None if self.ask.api == Api::Anthropic => anthropic::wire::status(self.last(seen)),
            None => agent::wire::status(self.last(seen)),
            Some(_) => sonar::wire::status(self.last(seen)),
        }
    }
}
