//! One run and what it shows. It needs no task of its own: all follows from the time passed.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;

use crate::agent;
use crate::ask::{Api, Ask, Sonar, Via};
use crate::errors::Refusal;
use crate::frame::Frame;
use crate::scenario::{Call, Scenario};
use crate::script::Event;
use crate::sonar;
use crate::timeline::Timeline;

/// Which API's endpoints reach a run by its id.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Door {
    Agent,
    SonarJobs,
    /// A chat answer has an id that no endpoint takes.
    Nowhere,
}

/// One research run.
pub(crate) struct Run {
    pub(crate) id: String,
    pub(crate) message_id: String,
    pub(crate) ask: Ask,
    pub(crate) timeline: Timeline,
    /// The wall clock at the submit, in seconds since 1970.
    pub(crate) created_at: u64,
    pub(crate) scenario: Scenario,
    /// When it was submitted.
    pub(crate) born: Duration,
    pub(crate) counts: Counts,
    /// Wakes the streams when a release or a cancel changed what is due.
    pub(crate) changed: watch::Sender<()>,
}

/// The requests that concerned a run.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) polls: u64,
    pub(crate) attaches: u64,
    pub(crate) streams: u64,
    pub(crate) cancels: u64,
}

/// A stream that is about to start.
pub(crate) struct Opening {
    pub(crate) id: String,
    /// The number of its first event.
    pub(crate) next: usize,
    /// After so many events the connection breaks.
    pub(crate) cut_after: Option<usize>,
}

impl Run {
    pub(crate) fn door(&self) -> Door {
        match &self.ask.api {
            Api::Agent => Door::Agent,
            Api::Sonar(Sonar { via: Via::Async(_), .. }) => Door::SonarJobs,
            Api::Sonar(Sonar { via: Via::Chat, .. }) => Door::Nowhere,
        }
    }

    /// Number of events that have happened; at least one, for a run starts by being created.
    pub(crate) fn seen(&self, now: Duration) -> usize {
        self.timeline.seen(self.age(now)).max(1)
    }

    pub(crate) fn age(&self, now: Duration) -> Duration {
        now.saturating_sub(self.born)
    }

    /// The last of the first `seen` events.
    pub(crate) fn last(&self, seen: usize) -> &Event {
        seen.checked_sub(1).map_or(&Event::Created, |last| self.timeline.event(last))
    }

    /// What a GET shows after `seen` events; for a chat answer, what its client waited for.
    pub(crate) fn object(&self, seen: usize) -> Value {
        match &self.ask.api {
            Api::Agent => agent::wire::object(self, seen),
            Api::Sonar(sonar) if self.door() == Door::SonarJobs => {
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

    /// The `usage` of a finished Sonar answer.
    pub(crate) fn usage(&self, sonar: &Sonar) -> Value {
        sonar::prices::usage(sonar.model, sonar.context, &self.timeline.script.used)
    }

    /// What it costs once it has ended well.
    pub(crate) fn nanos(&self) -> u64 {
        let used = &self.timeline.script.used;
        match &self.ask.api {
            Api::Agent => used.nanos(),
            Api::Sonar(sonar) => sonar::prices::total(sonar.model, sonar.context, used),
        }
    }

    /// The wall clock `after` the submit.
    pub(crate) fn unix_seconds(&self, after: Duration) -> u64 {
        self.created_at + after.as_secs()
    }

    /// The scripted error for the `nth` request of this kind, counted from 1.
    pub(crate) fn meet(&self, call: Call, nth: u64) -> Result<(), Refusal> {
        let fault = self.scenario.fault(call, nth - 1);
        fault.map_or(Ok(()), |fault| Err(Refusal::scripted(fault)))
    }

    pub(crate) fn readable(&self) -> Result<(), Refusal> {
        let hidden = self.scenario.lost || !self.ask.store;
        if hidden { Err(Refusal::not_found()) } else { Ok(()) }
    }

    pub(crate) fn open(&mut self, next: usize) -> Opening {
        let nth = self.counts.streams;
        self.counts.streams += 1;
        let cut = self.scenario.cut.filter(|cut| nth < cut.times);
        Opening { id: self.id.clone(), next, cut_after: cut.map(|cut| cut.after_events) }
    }
}
