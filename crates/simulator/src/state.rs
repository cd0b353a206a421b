//! The state of the simulator; `Runs` holds it behind a lock.

use std::collections::{HashMap, VecDeque};

use crate::anthropic::sessions::Objects;
use crate::ask::Api;
use crate::bucket::{Allowance, Bucket};
use crate::clock::Clock;
use crate::errors::Refusal;
use crate::faults::{Call, Rate, RateScope};
use crate::ids::is_agent_id;
use crate::run::Run;
use crate::scenario::Scenario;
use crate::stats::Stats;

/// The runs, the counts, and the earlier inputs.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) runs: Vec<Run>,
    pub(crate) places: HashMap<String, usize>,
    pub(crate) inputs: HashMap<String, Input>,
    /// The run and the request of each idempotency key.
    pub(crate) keys: HashMap<String, (usize, String)>,
    /// Scenarios for the submits without one.
    pub(crate) queue: VecDeque<Scenario>,
    pub(crate) buckets: HashMap<u64, Bucket>,
    pub(crate) stats: Stats,
    /// Created objects that are not runs.
    pub(crate) objects: Objects,
    /// Never reset: an id must not be reused for another run.
    pub(crate) created: u64,
}

/// The history of one input.
#[derive(Default)]
pub(crate) struct Input {
    pub(crate) tries: u64,
    pub(crate) runs: u64,
}

impl State {
    pub(crate) fn run(&self, id: &str) -> Option<&Run> {
        self.runs.get(*self.places.get(id)?)
    }

    pub(crate) fn find(&mut self, api: Api, id: &str) -> Result<&mut Run, Refusal> {
        if api.has_responses() && !is_agent_id(id) {
            return Err(Refusal::invalid("invalid response id"));
        }
        let place = self.places.get(id).copied();
        let run = place.and_then(|place| self.runs.get_mut(place));
        run.filter(|run| run.ask.api == api).ok_or_else(Refusal::not_found)
    }

    /// Counts an attempt with this input; the scenario may refuse it.
    pub(crate) fn count_try(
        &mut self,
        input: &str,
        scenario: &Scenario,
        clock: &Clock,
    ) -> Result<Option<Allowance>, Refusal> {
        let allowance = self.take(scenario.ratelimit.as_ref(), clock)?;
        let input = self.inputs.entry(input.to_owned()).or_default();
        input.tries += 1;
        match scenario.fault(Call::Submit, input.tries - 1) {
            Some(fault) => Err(Refusal::scripted(fault)),
            None => Ok(allowance),
        }
    }

    /// Takes a token from the bucket of this rate; all runs with the same rate share a bucket.
    pub(crate) fn take(
        &mut self,
        rate: Option<&Rate>,
        clock: &Clock,
    ) -> Result<Option<Allowance>, Refusal> {
        let Some(rate) = rate else { return Ok(None) };
        let now = clock.now();
        let bucket = self.buckets.entry(rate.rpm.get()).or_insert_with(|| Bucket::full(rate, now));
        bucket.take(rate, now, clock.speed()).map(Some).map_err(Refusal::limited)
    }

    /// Takes a token for a request about a run, if its rate limit counts those.
    pub(crate) fn take_for(
        &mut self,
        id: &str,
        clock: &Clock,
    ) -> Result<Option<Allowance>, Refusal> {
        let rate = self.run(id).and_then(|run| run.scenario.ratelimit);
        let rate = rate.filter(|rate| rate.on == RateScope::Any);
        self.take(rate.as_ref(), clock)
    }

    /// Counts a new run and returns the number of earlier runs with this input.
    pub(crate) fn count_run(&mut self, input: &str) -> u64 {
        let input = self.inputs.entry(input.to_owned()).or_default();
        let earlier = input.runs;
        input.runs += 1;
        self.created += 1;
        self.stats.submits += 1;
        self.stats.duplicate_submits += u64::from(earlier > 0);
        earlier
    }
}
