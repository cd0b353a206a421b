//! What a run shows, in the words of the API it was submitted to.

use serde_json::Value;

use crate::ask::Api;
use crate::frame::Frame;
use crate::run::{Run, RunApi};
use crate::{agent, sonar};

impl Run {
    /// What a GET shows after `seen` events; for a chat answer, what its client waited for.
    pub(crate) fn object(&self, seen: usize) -> Value {
        match &self.ask.api {
            Api::Agent => agent::wire::object(self, seen),
            Api::Sonar(sonar) if self.reached_by() == RunApi::SonarJobs => {
                sonar::wire::job(self, sonar, seen)
            }
            Api::Sonar(sonar) => sonar::wire::completion(self, sonar, seen),
        }
    }

    /// What event number `index` sends over a stream.
    pub(crate) fn frames(&self, index: usize) -> Vec<Frame> {
        match &self.ask.api {
            Api::Agent => vec![Frame::event(
                agent::wire::event(self, index),
                self.timeline.event(index).is_terminal(),
            )],
            Api::Sonar(sonar) => sonar::wire::frames(self, sonar, index),
        }
    }

    /// The word for its state after `seen` events, as its own API says it.
    pub(crate) fn status(&self, seen: usize) -> &'static str {
        match &self.ask.api {
            Api::Agent => agent::wire::status(self.last(seen)),
            Api::Sonar(_) => sonar::wire::status(self.last(seen)),
        }
    }
}
