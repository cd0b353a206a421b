//! One run and its visible state. It needs no task: everything follows from the elapsed time.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;

use crate::anthropic;
use crate::ask::{Api, Ask};
use crate::clock::Clock;
use crate::errors::Refusal;
use crate::faults::{Call, Channel, Cut, Sse};
use crate::scenario::Scenario;
use crate::script::Event;
use crate::timeline::Timeline;
use crate::transport_faults::TransportFault;
use crate::{gemini, openai, sonar};

/// One research run.
pub(crate) struct Run {
    pub(crate) id: String,
    pub(crate) message_id: String,
    pub(crate) ask: Ask,
    pub(crate) timeline: Timeline,
    /// The wall clock at the submit, in seconds since 1970.
    pub(crate) created_at: u64,
    pub(crate) scenario: Scenario,
    /// The time of the submit.
    pub(crate) submitted_at: Duration,
    pub(crate) counts: Counts,
    /// Notified when a release or a cancel changed the schedule.
    pub(crate) changed: watch::Sender<()>,
}

/// Counts of the requests for a run.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) polls: u64,
    pub(crate) attaches: u64,
    pub(crate) streams: u64,
    pub(crate) cancels: u64,
    /// Polls that found the run finished.
    pub(crate) last_polls: u64,
    /// Responses that could have been malformed.
    carried: u64,
    /// Responses that could have been cut after a number of bytes.
    cuttable: u64,
}

/// A stream that is about to start.
pub(crate) struct Opening {
    pub(crate) id: String,
    /// The number of its first event.
    pub(crate) next: usize,
    /// The number of events after which the connection breaks.
    pub(crate) cut_after: Option<Cut>,
    pub(crate) sse: Sse,
    pub(crate) transport: TransportFault,
    /// The time at which the API ends the stream, whatever the state of the run.
    pub(crate) ends_at: Option<Duration>,
}

impl Run {
    /// The name of the API through which it was submitted.
    pub(crate) fn api(&self) -> &'static str {
        match self.ask.api {
            Api::Agent => "agent",
            Api::OpenAi => "openai",
            Api::SonarAsync => "sonar-async",
            Api::SonarChat => "sonar-chat",
            Api::Gemini => "gemini",
            Api::Anthropic => "anthropic",
        }
    }

    /// The number of events that have happened; at least one, because a run starts with its creation.
    pub(crate) fn seen(&self, now: Duration) -> usize {
        self.timeline.seen(self.age(now)).max(1)
    }

    pub(crate) fn age(&self, now: Duration) -> Duration {
        now.saturating_sub(self.submitted_at)
    }

    /// The last of the first `seen` events.
    pub(crate) fn last(&self, seen: usize) -> &Event {
        seen.checked_sub(1).map_or(&Event::Created, |last| self.timeline.event(last))
    }

    /// The `usage` of a finished answer.
    pub(crate) fn usage(&self) -> Value {
        let used = &self.timeline.script.used;
        let mut usage = match &self.ask.sonar {
            None => used.json(),
            Some(sonar) => sonar::prices::usage(sonar.model, sonar.context, used),
        };
        if let Some(cost) = self.scenario.cost {
            match (cost.total, usage.as_object_mut()) {
                (Some(total), _) => usage["cost"]["total_cost"] = total.into(),
                (None, Some(fields)) => _ = fields.remove("cost"),
                (None, None) => {}
            }
        }
        usage
    }

    /// The cost if it ends well.
    pub(crate) fn nanos(&self) -> u64 {
        if self.ask.api == Api::Anthropic {
            return anthropic::wire::nanos(self);
        }
        let used = &self.timeline.script.used;
        if self.ask.api == Api::Gemini {
            // It reports no cost, so a scenario cannot change it.
            return gemini::usage::nanos(used);
        }
        match (&self.ask.sonar, self.scenario.cost.and_then(|cost| cost.nanos())) {
            // It reports no cost, so a scenario cannot change it.
            (None, _) if self.ask.api == Api::OpenAi => openai::prices::nanos(used),
            (_, Some(nanos)) => nanos,
            (None, _) => used.nanos(),
            (Some(sonar), _) => sonar::prices::total(sonar.model, sonar.context, used),
        }
    }

    /// The wall clock `after` the submit.
    pub(crate) fn unix_seconds(&self, after: Duration) -> u64 {
        self.created_at + after.as_secs()
    }

    /// Returns the scripted error for the `nth` request of this kind, counted from 1.
    pub(crate) fn scripted_error(&self, call: Call, nth: u64) -> Result<(), Refusal> {
        let fault = self.scenario.fault(call, nth - 1);
        fault.map_or(Ok(()), |fault| Err(Refusal::scripted(fault)))
    }

    /// Fails if a GET does not find it. The current request is already counted.
    pub(crate) fn readable(&self, clock: &Clock) -> Result<(), Refusal> {
        let looks = self.counts.polls + self.counts.attaches;
        let lost = self.scenario.lost.is_some_and(|after| looks > after || after == 0);
        let flaps = self.scenario.flap404.is_some_and(|flap| {
            let times = flap.times.unwrap_or(u64::from(flap.ms == 0));
            (1..=times).contains(&looks) || self.age(clock.now()) < clock.scaled(flap.ms as f64)
        });
        if lost || flaps || !self.ask.store || self.is_forgotten(clock) {
            return Err(Refusal::not_found());
        }
        Ok(())
    }

    /// Returns true if it ended longer ago than finished runs are kept.
    fn is_forgotten(&self, clock: &Clock) -> bool {
        let Some(ms) = self.scenario.retention else { return false };
        let now = clock.now();
        let seen = self.seen(now);
        let ended = self.timeline.happened(seen - 1).filter(|_| self.last(seen).is_terminal());
        ended.is_some_and(|ended| self.age(now) >= ended + clock.scaled(ms as f64))
    }

    /// Returns the transport fault of a response of this kind.
    pub(crate) fn transport(&mut self, channel: Channel) -> TransportFault {
        let struck = self.scenario.malformed.is_some_and(|fault| fault.affects(channel));
        let malformed = self.scenario.malformation(channel, self.counts.carried);
        self.counts.carried += u64::from(struck);
        // The receipt of a job is spared, because `drop_submit` is for losing it.
        let by_bytes = self.scenario.drop.filter(|cut| cut.after_bytes.is_some());
        let cuttable = by_bytes.filter(|_| channel != Channel::Submit);
        let cut = cuttable.filter(|cut| self.counts.cuttable < cut.times);
        self.counts.cuttable += u64::from(cuttable.is_some());
        TransportFault { malformed, slow: self.scenario.slow, cut, allowance: None }
    }

    /// Counts a poll; returns the number of visible events and the transport fault.
    pub(crate) fn poll(&mut self, clock: &Clock) -> Result<(usize, TransportFault), Refusal> {
        self.counts.polls += 1;
        self.scripted_error(Call::Poll, self.counts.polls)?;
        self.readable(clock)?;
        let mut seen = self.seen(clock.now());
        if self.last(seen).is_terminal() {
            self.counts.last_polls += 1;
            let nth = self.counts.last_polls;
            if self.scenario.stale.is_some_and(|stale| stale.hides(nth)) {
                seen -= 1;
            }
        }
        Ok((seen, self.transport(Channel::Poll)))
    }

    pub(crate) fn open(&mut self, next: usize) -> Opening {
        let nth = self.counts.streams;
        self.counts.streams += 1;
        let transport = self.transport(Channel::Stream);
        let by_events = self.scenario.drop.filter(|cut| cut.after_bytes.is_none());
        let cut_after = by_events.filter(|cut| nth < cut.times);
        let sse = self.scenario.sse;
        Opening { id: self.id.clone(), next, cut_after, sse, transport, ends_at: None }
    }
}
