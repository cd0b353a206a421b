//! All runs and the counts. A run continues when the connections that watch it close.

mod follow;
mod search;
mod sessions;

pub(crate) use follow::Step;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;

use crate::ask::{Api, Ask};
use crate::clock::Clock;
use crate::errors::Refusal;
use crate::faults::{Call, CancelMode, Channel};
use crate::ids::{fnv1a64, is_agent_id, uuid};
use crate::run::{Counts, Opening, Run};
use crate::scenario::{Ending, Scenario, SubmitAnswer};
use crate::script::{Event, Script};
use crate::state::State;
use crate::stats::{RunStats, Stats};
use crate::timeline::Timeline;
use crate::transport_faults::TransportFault;
use crate::wall_clock;
use crate::{agent, gemini};

/// A cancelled run takes a moment to stop, as in real runs.
const CANCEL_MS: f64 = 100.0;
const SHOWN_CHARS: usize = 80;

/// The shared state; every method is one step under one lock.
pub(crate) struct Runs {
    seed: u64,
    pub(crate) clock: Arc<Clock>,
    state: Mutex<State>,
}

/// The way to respond to a submit.
pub(crate) struct SubmitReceipt {
    pub(crate) id: String,
    pub(crate) answer: SubmitAnswer,
    pub(crate) delivery: Delivery,
    pub(crate) transport: TransportFault,
}

pub(crate) enum Delivery {
    Stream(Box<Opening>),
    Queued(Value),
    /// Respond with the finished run.
    Wait,
}

impl Runs {
    pub(crate) fn new(seed: u64, clock: Arc<Clock>) -> Self {
        Self { seed, clock, state: Mutex::default() }
    }

    /// Creates a run, unless the scenario responds with an error or the idempotency key already has a run.
    pub(crate) fn submit(&self, ask: Ask, scenario: Scenario) -> Result<SubmitReceipt, Refusal> {
        let mut state = self.lock();
        let allowance = state.count_try(&ask.input, &scenario, &self.clock)?;
        let key = ask.key.clone();
        if let Some(key) = &key
            && let Some((place, request)) = state.keys.get(&key.key).cloned()
        {
            if request != key.request {
                return Err(Refusal::key_conflict());
            }
            state.stats.replayed_submits += 1;
            let run = &state.runs[place];
            let object = run.object(run.seen(self.clock.now()));
            return Ok(SubmitReceipt {
                id: run.id.clone(),
                answer: SubmitAnswer::Full,
                delivery: Delivery::Queued(object),
                transport: TransportFault { allowance, ..TransportFault::default() },
            });
        }
        let earlier = state.count_run(&ask.input);
        let mut run = self.create(ask, scenario, earlier, state.created);
        let (delivery, transport) = match (run.ask.stream, run.ask.background) {
            (true, _) => {
                let opening = Opening { ends_at: self.stream_end(&run), ..run.open(0) };
                let transport = opening.transport;
                (Delivery::Stream(Box::new(opening)), transport)
            }
            (false, true) => (Delivery::Queued(run.object(1)), run.transport(Channel::Submit)),
            (false, false) => (Delivery::Wait, run.transport(Channel::Whole)),
        };
        let receipt = SubmitReceipt {
            id: run.id.clone(),
            answer: run.scenario.answer.clone(),
            delivery,
            transport: TransportFault { allowance, ..transport },
        };
        let place = state.runs.len();
        state.places.insert(run.id.clone(), place);
        if let Some(key) = key {
            state.keys.insert(key.key, (place, key.request));
        }
        state.runs.push(run);
        Ok(receipt)
    }

    /// Writes the run's script. Its text depends on seed, effort and input; its id also depends on the number
    /// of earlier runs: `earlier` of the same input, `ordinal` of all.
    fn create(&self, ask: Ask, mut scenario: Scenario, earlier: u64, ordinal: u64) -> Run {
        let seed = fnv1a64(&[&self.seed.to_le_bytes(), ask.label.as_bytes(), ask.input.as_bytes()]);
        let mut ids =
            fastrand::Rng::with_seed(fnv1a64(&[&seed.to_le_bytes(), &ordinal.to_le_bytes()]));
        if matches!(scenario.ending, Ending::Fail { times: Some(times), .. } if earlier >= times) {
            scenario.ending = Ending::Completed;
        }
        let script = Script::write(&ask, &scenario, seed, self.clock.speed());
        let prefix = match ask.api {
            Api::Agent | Api::OpenAi => "resp_",
            Api::Gemini => "v1_",
            Api::SonarAsync | Api::SonarChat | Api::Anthropic => "",
        };
        let made = format!("{prefix}{}", uuid(&mut ids));
        Run {
            id: ask.session.clone().unwrap_or(made),
            message_id: format!("msg_{}", uuid(&mut ids)),
            ask,
            timeline: Timeline::new(script),
            created_at: wall_clock::unix_seconds(),
            scenario,
            submitted_at: self.clock.now(),
            counts: Counts::default(),
            changed: watch::Sender::default(),
        }
    }

    /// Queues scenarios for the submits without one; queues none of them if one is invalid.
    pub(crate) fn queue(&self, scenarios: &[impl AsRef<str>]) -> Result<(), String> {
        let scenarios = scenarios.iter().map(|text| Scenario::parse(text.as_ref()));
        let scenarios: Vec<_> = scenarios.collect::<Result<_, _>>()?;
        self.lock().queue.extend(scenarios);
        Ok(())
    }

    /// Takes the next queued scenario.
    pub(crate) fn queued(&self) -> Option<Scenario> {
        self.lock().queue.pop_front()
    }

    /// Counts a submit that was answered with an error.
    pub(crate) fn count_refusal(&self) {
        self.lock().stats.refused += 1;
    }

    /// Returns the current response to a GET of the run.
    pub(crate) fn poll(&self, api: Api, id: &str) -> Result<(Value, TransportFault), Refusal> {
        let mut state = self.lock();
        state.stats.polls += 1;
        let allowance = state.take_for(id, &self.clock)?;
        let run = state.find(api, id)?;
        let (seen, transport) = run.poll(&self.clock)?;
        Ok((run.object(seen), TransportFault { allowance, ..transport }))
    }

    /// Returns the result of a run for a client that waited for it; no scenario hides it.
    pub(crate) fn outcome(&self, id: &str) -> Result<Value, Refusal> {
        let state = self.lock();
        let run = state.run(id).ok_or_else(Refusal::not_found)?;
        let seen = run.seen(self.clock.now());
        match (run.ask.api, run.last(seen)) {
            (Api::SonarChat, Event::Failed { code }) => Err(Refusal::run_failed(code)),
            _ => Ok(run.object(seen)),
        }
    }

    /// Opens a stream that starts with event number `next`.
    pub(crate) fn attach(&self, api: Api, id: &str, next: usize) -> Result<Opening, Refusal> {
        let mut state = self.lock();
        state.stats.attaches += 1;
        let allowance = state.take_for(id, &self.clock)?;
        let run = state.find(api, id)?;
        run.counts.attaches += 1;
        run.scripted_error(Call::Attach, run.counts.attaches)?;
        run.readable(&self.clock)?;
        let has_stream = match api {
            Api::Agent => run.ask.background && run.ask.stream,
            Api::OpenAi | Api::Gemini => run.ask.background,
            Api::Anthropic | Api::SonarAsync | Api::SonarChat => true,
        };
        if run.scenario.no_stream || !has_stream {
            return Err(Refusal::invalid("stream is not available for this response"));
        }
        let mut opening = Opening { ends_at: self.stream_end(run), ..run.open(next) };
        opening.transport.allowance = allowance;
        Ok(opening)
    }

    /// Cancels a run after a short delay, and returns the response to a GET.
    pub(crate) fn cancel(&self, api: Api, id: &str) -> Result<Value, Refusal> {
        let now = self.clock.now();
        let mut state = self.lock();
        state.stats.cancels += 1;
        state.take_for(id, &self.clock)?;
        let run = match state.find(api, id) {
            Err(_) if api == Api::Agent && is_agent_id(id) => {
                return Err(Refusal::not_cancellable());
            }
            found => found?,
        };
        run.counts.cancels += 1;
        run.scripted_error(Call::Cancel, run.counts.cancels)?;
        let readable = run.readable(&self.clock);
        let last = run.last(run.seen(now));
        if api == Api::OpenAi {
            // Unlike the other API, this one distinguishes unknown from finished runs and accepts a repeated
            // cancel.
            readable?;
            if *last == Event::Cancelled {
                return Ok(run.object(run.seen(now)));
            }
        } else if readable.is_err() {
            return Err(Refusal::not_cancellable());
        }
        if last.is_terminal() {
            return Err(Refusal::not_cancellable());
        }
        let ms = match run.scenario.cancel.map(|cancel| (cancel.mode, cancel.ms)) {
            None | Some((CancelMode::Ok, _)) => CANCEL_MS,
            Some((CancelMode::Slow, ms)) => ms as f64,
            Some((CancelMode::Terminal400, _)) => return Err(Refusal::not_cancellable()),
            Some((CancelMode::Unknown400, _)) => {
                run.scenario.lost = Some(0);
                return Err(Refusal::not_cancellable());
            }
            Some((CancelMode::Ignored, _)) => return Ok(run.object(run.seen(now))),
        };
        run.timeline.cancel(run.age(now) + self.clock.scaled(ms));
        run.changed.send_replace(());
        Ok(run.object(run.seen(now)))
    }

    /// Makes a run unknown from now on.
    pub(crate) fn forget(&self, api: Api, id: &str) -> Result<(), Refusal> {
        let mut state = self.lock();
        let run = state.find(api, id)?;
        run.readable(&self.clock)?;
        run.scenario.lost = Some(0);
        Ok(())
    }

    /// Returns the time at which the API will end a stream that is opened now, if it does.
    fn stream_end(&self, run: &Run) -> Option<Duration> {
        let is_cut = run.ask.api == Api::Gemini;
        is_cut.then(|| self.clock.now() + self.clock.scaled(gemini::STREAM_MS))
    }

    /// Releases the runs that are held now.
    pub(crate) fn release(&self) {
        let now = self.clock.now();
        for run in &mut self.lock().runs {
            run.timeline.release(run.age(now));
            run.changed.send_replace(());
        }
    }

    /// Removes all runs and counts; their streams end.
    pub(crate) fn reset(&self) {
        let mut state = self.lock();
        let created = state.created;
        let mut objects = std::mem::take(&mut state.objects);
        objects.reset();
        *state = State { created, objects, ..State::default() };
    }

    pub(crate) fn stats(&self) -> Stats {
        let now = self.clock.now();
        let state = self.lock();
        let mut stats = state.stats.clone();
        for run in &state.runs {
            let seen = run.seen(now);
            let billed_nanos = agent::wire::is_billed(run, run.last(seen)).then(|| run.nanos());
            stats.spent_nanos += billed_nanos.unwrap_or(0);
            stats.runs.push(RunStats {
                id: run.id.clone(),
                api: run.api().to_owned(),
                status: run.status(seen).to_owned(),
                billed_nanos,
                submitted_input: run.ask.question.chars().take(SHOWN_CHARS).collect(),
                polls: run.counts.polls,
                streams: run.counts.streams,
                cancels: run.counts.cancels,
            });
        }
        stats
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
