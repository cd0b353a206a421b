//! What a run shows, in the words of the API it was submitted to.

use serde_json::Value;

use crate::ask::Api;
use crate::frame::Frame;
use crate::run::Run;
use crate::{agent, anthropic, sonar};

impl Run {
    /// What a GET shows after `seen` events; for a chat answer, what its client waited for.
    pub(crate) fn object(&self, seen: usize) -> Value {
        match &self.ask.sonar {
            None if self.ask.api == Api::Anthropic => anthropic::wire::sent(self),
            None => agent::wire::object(self, seen),
            Some(sonar) if self.ask.api == Api::SonarAsync => sonar::wire::job(self, sonar, seen),
            Some(sonar) => sonar::wire::completion(self, sonar, seen),
        }
    }

    /// What event number `index` sends over a stream.
    pub(crate) fn frames(&self, index: usize) -> Vec<Frame> {
        match &self.ask.sonar {
            None if self.ask.api == Api::Anthropic => {
                let events = anthropic::wire::events(self, index);
                let is_end = |event: &Value| {
                    ["session.status_idle", "session.status_terminated"]
                        .iter()
                        .any(|end| event["type"] == *end)
                };
                events
                    .into_iter()
                    .map(|event| Frame::event(event.clone(), is_end(&event)))
                    .collect()
            }
            None => vec![Frame::event(
                agent::wire::event(self, index),
                self.timeline.event(index).is_terminal(),
            )],
            Some(sonar) => sonar::wire::frames(self, sonar, index),
        }
    }

    /// The word for its state after `seen` events, as its own API says it.
    pub(crate) fn status(&self, seen: usize) -> &'static str {
        match &self.ask.sonar {
            None if self.ask.api == Api::Anthropic => anthropic::wire::status(self.last(seen)),
            None => agent::wire::status(self.last(seen)),
            Some(_) => sonar::wire::status(self.last(seen)),
        }
    }
}
