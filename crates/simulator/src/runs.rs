//! All runs and the counts. A run needs no task of its own: what it shows follows from the time passed, so it goes on
//! whatever becomes of the connections that watch it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::errors::Refusal;
use crate::request::Ask;
use crate::scenario::{Answer, Call, Ending, Scenario};
use crate::script::{Brief, Script};
use crate::stats::{RunStats, Stats};
use crate::timeline::{Due, Timeline};
use crate::wire;

/// A cancelled run needs a moment to stop, as in live runs.
const CANCEL_MS: f64 = 100.0;
const PING_MS: f64 = 1_000.0;
const SHOWN_CHARS: usize = 80;

/// One research run.
pub(crate) struct Run {
    pub(crate) id: String,
    pub(crate) message_id: String,
    pub(crate) ask: Ask,
    pub(crate) timeline: Timeline,
    scenario: Scenario,
    born: Instant,
    polls: u64,
    attaches: u64,
    streams: u64,
    cancels: u64,
    /// Wakes the streams when a release or a cancel changed what is due.
    changed: watch::Sender<()>,
}

/// The shared state; every method is one step under one lock.
pub(crate) struct Runs {
    seed: u64,
    speed: f64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    runs: Vec<Run>,
    places: HashMap<String, usize>,
    inputs: HashMap<String, Input>,
    stats: Stats,
    /// Never reset: an id must not come back for another run.
    created: u64,
}

/// What happened with one input before.
#[derive(Default)]
struct Input {
    tries: u64,
    runs: u64,
}

/// How the submit is to be answered.
pub(crate) struct Receipt {
    pub(crate) id: String,
    pub(crate) answer: Answer,
    pub(crate) delivery: Delivery,
}

pub(crate) enum Delivery {
    Stream(Opening),
    Queued(Value),
    /// The answer is the finished run.
    Wait,
}

/// A stream that is about to start.
pub(crate) struct Opening {
    pub(crate) id: String,
    /// The number of its first event.
    pub(crate) next: usize,
    /// After so many events the connection breaks.
    pub(crate) cut_after: Option<usize>,
}

/// What a stream does next.
pub(crate) enum Step {
    Event(Value),
    Wait { until: Option<Instant>, ping: Option<Duration>, changed: watch::Receiver<()> },
    Over,
}

impl Runs {
    pub(crate) fn new(seed: u64, speed: f64) -> Self {
        Self { seed, speed, state: Mutex::default() }
    }

    /// Creates a run, unless the scenario answers with an error first.
    pub(crate) fn submit(&self, ask: Ask, scenario: Scenario) -> Result<Receipt, Refusal> {
        let mut state = self.lock();
        if let Some(previous) = &ask.previous
            && !state.places.contains_key(previous)
        {
            return Err(Refusal::invalid("invalid request"));
        }
        let input = state.inputs.entry(ask.input.clone()).or_default();
        let tries = input.tries;
        input.tries += 1;
        if let Some(fault) = scenario.fault(Call::Submit, tries) {
            return Err(Refusal::scripted(fault));
        }
        let earlier = input.runs;
        input.runs += 1;
        state.created += 1;
        state.stats.submits += 1;
        state.stats.duplicate_submits += u64::from(earlier > 0);
        let mut run = self.write(ask, scenario, earlier, state.created);
        let receipt = Receipt {
            id: run.id.clone(),
            answer: run.scenario.answer,
            delivery: match (run.ask.stream, run.ask.background) {
                (true, _) => Delivery::Stream(run.open(0)),
                (false, true) => Delivery::Queued(wire::object(&run, 1)),
                (false, false) => Delivery::Wait,
            },
        };
        let place = state.runs.len();
        state.places.insert(run.id.clone(), place);
        state.runs.push(run);
        Ok(receipt)
    }

    /// Counts a submit that was answered with an error.
    pub(crate) fn refused(&self) {
        self.lock().stats.refused += 1;
    }

    /// The response object as of now.
    pub(crate) fn poll(&self, id: &str) -> Result<Value, Refusal> {
        let mut state = self.lock();
        state.stats.polls += 1;
        let run = state.find(id)?;
        run.polls += 1;
        run.meet(Call::Poll, run.polls)?;
        run.readable()?;
        Ok(wire::object(run, run.seen()))
    }

    /// The response object for whoever submitted, which no scenario hides.
    pub(crate) fn object(&self, id: &str) -> Result<Value, Refusal> {
        let mut state = self.lock();
        let run = state.find(id)?;
        Ok(wire::object(run, run.seen()))
    }

    /// Opens a stream with the event after number `after`.
    pub(crate) fn attach(&self, id: &str, after: i64) -> Result<Opening, Refusal> {
        let mut state = self.lock();
        state.stats.attaches += 1;
        let run = state.find(id)?;
        run.attaches += 1;
        run.meet(Call::Attach, run.attaches)?;
        run.readable()?;
        if run.scenario.refuses_attach || !run.ask.stream || !run.ask.background {
            return Err(Refusal::invalid("stream is not available for this response"));
        }
        let Ok(next) = usize::try_from(after.saturating_add(1)) else {
            return Err(Refusal::invalid("invalid request"));
        };
        Ok(run.open(next))
    }

    /// Stops a run a moment from now.
    pub(crate) fn cancel(&self, id: &str) -> Result<(), Refusal> {
        let mut state = self.lock();
        state.stats.cancels += 1;
        let run = match state.find(id) {
            Err(_) if is_run_id(id) => return Err(Refusal::not_cancellable()),
            found => found?,
        };
        run.cancels += 1;
        run.meet(Call::Cancel, run.cancels)?;
        if run.readable().is_err() || run.timeline.event(run.seen() - 1).is_terminal() {
            return Err(Refusal::not_cancellable());
        }
        if !run.scenario.ignores_cancel {
            let moment = run.born.elapsed() + self.scaled(CANCEL_MS);
            run.timeline.cancel(moment);
            run.changed.send_replace(());
        }
        Ok(())
    }

    /// What a stream at event number `next` does now.
    pub(crate) fn step(&self, id: &str, next: usize) -> Step {
        let mut state = self.lock();
        let Ok(run) = state.find(id) else { return Step::Over };
        let due = run.timeline.due(next);
        if let Due::At(at) = due
            && at <= run.born.elapsed()
        {
            let hidden = run.scenario.hides_terminal && run.timeline.event(next).is_terminal();
            return if hidden { Step::Over } else { Step::Event(wire::event(run, next)) };
        }
        let until = match due {
            Due::At(at) => Some(run.born + at),
            Due::Open => None,
            Due::Never => return Step::Over,
        };
        let pings = run.scenario.ending == Ending::Stuck { pings: true };
        let ping = pings.then(|| self.scaled(PING_MS).max(Duration::from_millis(1)));
        Step::Wait { until, ping, changed: run.changed.subscribe() }
    }

    /// Lets the runs that are held now go on.
    pub(crate) fn release(&self) {
        for run in &mut self.lock().runs {
            run.timeline.release(run.born.elapsed());
            run.changed.send_replace(());
        }
    }

    /// Forgets all runs and counts; their streams end.
    pub(crate) fn reset(&self) {
        let mut state = self.lock();
        let created = state.created;
        *state = State { created, ..State::default() };
    }

    pub(crate) fn stats(&self) -> Stats {
        let state = self.lock();
        let mut stats = state.stats.clone();
        for run in &state.runs {
            let last = run.timeline.event(run.seen() - 1);
            if wire::is_billed(last) {
                stats.spent_nanos += run.timeline.script.used.nanos();
            }
            stats.runs.push(RunStats {
                id: run.id.clone(),
                status: wire::status(last).to_owned(),
                submitted_input: run.ask.question.chars().take(SHOWN_CHARS).collect(),
                polls: run.polls,
                streams: run.streams,
                cancels: run.cancels,
            });
        }
        stats
    }

    /// Writes the run's script; its text depends on seed, effort and input, its id also on how many runs came before.
    fn write(&self, ask: Ask, scenario: Scenario, earlier: u64, ordinal: u64) -> Run {
        let seed = fnv1a64(&[&self.seed.to_le_bytes(), ask.label.as_bytes(), ask.input.as_bytes()]);
        let mut ids =
            fastrand::Rng::with_seed(fnv1a64(&[&seed.to_le_bytes(), &ordinal.to_le_bytes()]));
        let ending = match &scenario.ending {
            Ending::Failed { times, .. } if !times.covers(earlier) => &Ending::Completed,
            ending => ending,
        };
        let script = Script::write(&Brief {
            question: &ask.question,
            effort: ask.effort,
            model: ask.model,
            shape: &scenario.shape,
            ending,
            seed,
            speed: self.speed,
        });
        Run {
            id: format!("resp_{}", uuid(&mut ids)),
            message_id: format!("msg_{}", uuid(&mut ids)),
            ask,
            timeline: Timeline::new(script),
            scenario,
            born: Instant::now(),
            polls: 0,
            attaches: 0,
            streams: 0,
            cancels: 0,
            changed: watch::Sender::default(),
        }
    }

    fn scaled(&self, ms: f64) -> Duration {
        Duration::from_secs_f64((ms / 1_000.0 / self.speed).min(3e9))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn find(&mut self, id: &str) -> Result<&mut Run, Refusal> {
        if !is_run_id(id) {
            return Err(Refusal::invalid("invalid response id"));
        }
        let place = self.places.get(id).copied();
        place.and_then(|place| self.runs.get_mut(place)).ok_or_else(Refusal::not_found)
    }
}

impl Run {
    /// Number of events that have happened; at least one, for a run starts by being created.
    fn seen(&self) -> usize {
        self.timeline.seen(self.born.elapsed()).max(1)
    }

    /// The scripted error for the `nth` request of this kind, counted from 1.
    fn meet(&self, call: Call, nth: u64) -> Result<(), Refusal> {
        let fault = self.scenario.fault(call, nth - 1);
        fault.map_or(Ok(()), |fault| Err(Refusal::scripted(fault)))
    }

    fn readable(&self) -> Result<(), Refusal> {
        let hidden = self.scenario.lost || !self.ask.store;
        if hidden { Err(Refusal::not_found()) } else { Ok(()) }
    }

    fn open(&mut self, next: usize) -> Opening {
        let nth = self.streams;
        self.streams += 1;
        let cut = self.scenario.cut.filter(|cut| nth < cut.times);
        Opening { id: self.id.clone(), next, cut_after: cut.map(|cut| cut.after_events) }
    }
}

fn is_run_id(id: &str) -> bool {
    id.strip_prefix("resp_").is_some_and(|uuid| uuid::Uuid::try_parse(uuid).is_ok())
}

/// A random-looking UUID from the given source.
pub(crate) fn uuid(rng: &mut fastrand::Rng) -> uuid::Uuid {
    uuid::Builder::from_random_bytes(rng.u128(..).to_le_bytes()).into_uuid()
}

fn fnv1a64(parts: &[&[u8]]) -> u64 {
    // A byte that UTF-8 never contains keeps the parts apart.
    let bytes = parts.iter().flat_map(|part| part.iter().chain(&[0xff]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
