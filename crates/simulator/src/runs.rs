//! All runs and the counts. A run goes on whatever becomes of the connections that watch it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;

use crate::agent;
use crate::ask::{Api, Ask, Sonar, StreamMode, Via};
use crate::clock::Clock;
use crate::errors::Refusal;
use crate::frame::Frame;
use crate::ids::{fnv1a64, is_agent_id, uuid};
use crate::run::{Counts, Door, Opening, Run};
use crate::scenario::{Answer, Call, Ending, Scenario};
use crate::script::{Brief, Event, Script, Style};
use crate::sonar;
use crate::sources::{Site, Source};
use crate::stats::{RunStats, Stats};
use crate::timeline::{Due, Timeline};
use crate::wall;

/// A cancelled run needs a moment to stop, as in live runs.
const CANCEL_MS: f64 = 100.0;
const PING_MS: f64 = 1_000.0;
const SHOWN_CHARS: usize = 80;

/// The shared state; every method is one step under one lock.
pub(crate) struct Runs {
    seed: u64,
    pub(crate) clock: Arc<Clock>,
    /// The base URL of pages served here; `None` invents addresses elsewhere.
    pages: Option<String>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    runs: Vec<Run>,
    places: HashMap<String, usize>,
    inputs: HashMap<String, Input>,
    /// The run and the request that each idempotency key stands for.
    keys: HashMap<String, (usize, String)>,
    pages: HashMap<String, String>,
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

/// What a stream does next.
pub(crate) enum Step {
    Frames(Vec<Frame>),
    Wait { until: Option<Duration>, ping: Option<Duration>, changed: watch::Receiver<()> },
    Over,
}

impl Runs {
    pub(crate) fn new(seed: u64, clock: Arc<Clock>, pages: Option<String>) -> Self {
        Self { seed, clock, pages, state: Mutex::default() }
    }

    /// Creates a run, unless the scenario answers with an error first or its key has one already.
    pub(crate) fn submit(&self, ask: Ask, scenario: Scenario) -> Result<Receipt, Refusal> {
        let mut state = self.lock();
        if let Some(previous) = &ask.previous
            && !state.places.contains_key(previous)
        {
            return Err(Refusal::invalid("invalid request"));
        }
        state.knock(&ask.input, &scenario)?;
        let key = match &ask.api {
            Api::Sonar(Sonar { via: Via::Async(Some(key)), .. }) => Some(key.clone()),
            _ => None,
        };
        if let Some(key) = &key
            && let Some((place, request)) = state.keys.get(&key.key).cloned()
        {
            if request != key.request {
                return Err(Refusal::key_conflict());
            }
            state.stats.replayed_submits += 1;
            let run = &state.runs[place];
            let object = run.object(run.seen(self.clock.now()));
            let delivery = Delivery::Queued(object);
            return Ok(Receipt { id: run.id.clone(), answer: Answer::Full, delivery });
        }
        let earlier = state.count_run(&ask.input);
        let mut run = self.write(ask, scenario, earlier, state.created);
        let receipt = Receipt {
            id: run.id.clone(),
            answer: run.scenario.answer,
            delivery: match (run.ask.stream, run.ask.background) {
                (true, _) => Delivery::Stream(run.open(0)),
                (false, true) => Delivery::Queued(run.object(1)),
                (false, false) => Delivery::Wait,
            },
        };
        let place = state.runs.len();
        state.places.insert(run.id.clone(), place);
        if let Some(key) = key {
            state.keys.insert(key.key, (place, key.request));
        }
        state.keep_pages(self.pages.as_deref(), run.timeline.script.sources());
        state.runs.push(run);
        Ok(receipt)
    }

    /// Counts and bills a search, unless the scenario answers with an error first.
    pub(crate) fn searched(
        &self,
        input: &str,
        scenario: &Scenario,
        nanos: u64,
    ) -> Result<(), Refusal> {
        let mut state = self.lock();
        state.knock(input, scenario)?;
        state.stats.searches += 1;
        state.stats.spent_nanos += nanos;
        Ok(())
    }

    /// What a search for this text draws from, and where its results are.
    pub(crate) fn site(&self, text: &str) -> (fastrand::Rng, Site) {
        let seed = fnv1a64(&[&self.seed.to_le_bytes(), b"search", text.as_bytes()]);
        (fastrand::Rng::with_seed(seed), Site::of(self.pages.as_deref(), seed))
    }

    /// Remembers what the local pages of these sources say.
    pub(crate) fn keep_pages<'a>(&self, sources: impl Iterator<Item = &'a Source>) {
        self.lock().keep_pages(self.pages.as_deref(), sources);
    }

    /// The page that a local source points at.
    pub(crate) fn page(&self, name: &str) -> Option<String> {
        self.lock().pages.get(name).cloned()
    }

    /// Counts a submit that was answered with an error.
    pub(crate) fn refused(&self) {
        self.lock().stats.refused += 1;
    }

    /// What a GET of the run shows now.
    pub(crate) fn poll(&self, door: Door, id: &str) -> Result<Value, Refusal> {
        let mut state = self.lock();
        state.stats.polls += 1;
        let run = state.find(door, id)?;
        run.counts.polls += 1;
        run.meet(Call::Poll, run.counts.polls)?;
        run.readable()?;
        Ok(run.object(run.seen(self.clock.now())))
    }

    /// What the run came to, for whoever waited for it; no scenario hides it.
    pub(crate) fn outcome(&self, id: &str) -> Result<Value, Refusal> {
        let state = self.lock();
        let run = state.run(id).ok_or_else(Refusal::not_found)?;
        let seen = run.seen(self.clock.now());
        match (run.door(), run.last(seen)) {
            (Door::Nowhere, Event::Failed { code }) => Err(Refusal::run_failed(code)),
            _ => Ok(run.object(seen)),
        }
    }

    /// Opens a stream with the event after number `after`.
    pub(crate) fn attach(&self, id: &str, after: i64) -> Result<Opening, Refusal> {
        let mut state = self.lock();
        state.stats.attaches += 1;
        let run = state.find(Door::Agent, id)?;
        run.counts.attaches += 1;
        run.meet(Call::Attach, run.counts.attaches)?;
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
        let now = self.clock.now();
        let mut state = self.lock();
        state.stats.cancels += 1;
        let run = match state.find(Door::Agent, id) {
            Err(_) if is_agent_id(id) => return Err(Refusal::not_cancellable()),
            found => found?,
        };
        run.counts.cancels += 1;
        run.meet(Call::Cancel, run.counts.cancels)?;
        if run.readable().is_err() || run.last(run.seen(now)).is_terminal() {
            return Err(Refusal::not_cancellable());
        }
        if !run.scenario.ignores_cancel {
            run.timeline.cancel(run.age(now) + self.clock.scaled(CANCEL_MS));
            run.changed.send_replace(());
        }
        Ok(())
    }

    /// The Sonar jobs, newest first.
    pub(crate) fn list(&self, skip: usize, most: usize) -> Value {
        let now = self.clock.now();
        let state = self.lock();
        let jobs = state.runs.iter().rev().filter(|run| run.door() == Door::SonarJobs);
        let mut rest = jobs.skip(skip);
        let requests: Vec<Value> =
            rest.by_ref().take(most).map(|run| sonar::wire::listed(run, run.seen(now))).collect();
        let next = rest.next().map(|_| (skip + most).to_string());
        json!({"requests": requests, "next_token": next})
    }

    /// What a stream at event number `next` does now.
    pub(crate) fn step(&self, id: &str, next: usize) -> Step {
        let state = self.lock();
        let Some(run) = state.run(id) else { return Step::Over };
        let due = run.timeline.due(next);
        if let Due::At(at) = due
            && at <= run.age(self.clock.now())
        {
            let hidden = run.scenario.hides_terminal && run.timeline.event(next).is_terminal();
            return if hidden { Step::Over } else { Step::Frames(run.frames(next)) };
        }
        self.wait(run, due)
    }

    /// Whether the run has ended, as `Step::Over`, or what to wait for.
    pub(crate) fn end(&self, id: &str) -> Step {
        let state = self.lock();
        let Some(run) = state.run(id) else { return Step::Over };
        let seen = run.seen(self.clock.now());
        if run.last(seen).is_terminal() {
            Step::Over
        } else {
            self.wait(run, run.timeline.due(seen))
        }
    }

    fn wait(&self, run: &Run, due: Due) -> Step {
        let until = match due {
            Due::At(at) => Some(run.born + at),
            Due::Open => None,
            Due::Never => return Step::Over,
        };
        let pings = run.scenario.ending == Ending::Stuck { pings: true };
        let ping = pings.then(|| self.clock.scaled(PING_MS).max(Duration::from_millis(1)));
        Step::Wait { until, ping, changed: run.changed.subscribe() }
    }

    /// Lets the runs that are held now go on.
    pub(crate) fn release(&self) {
        let now = self.clock.now();
        for run in &mut self.lock().runs {
            run.timeline.release(run.age(now));
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
        let now = self.clock.now();
        let state = self.lock();
        let mut stats = state.stats.clone();
        for run in &state.runs {
            let seen = run.seen(now);
            if agent::wire::is_billed(run.last(seen)) {
                stats.spent_nanos += run.nanos();
            }
            stats.runs.push(RunStats {
                id: run.id.clone(),
                status: run.status(seen).to_owned(),
                submitted_input: run.ask.question.chars().take(SHOWN_CHARS).collect(),
                polls: run.counts.polls,
                streams: run.counts.streams,
                cancels: run.counts.cancels,
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
        let site = Site::of(self.pages.as_deref(), seed);
        let style = match &ask.api {
            Api::Agent => Style::Agent,
            Api::Sonar(sonar) => Style::Sonar {
                thinks: sonar.model.thinks && sonar.mode == StreamMode::Full,
                searches: sonar.searches,
            },
        };
        let script = Script::write(&Brief {
            question: &ask.question,
            effort: ask.effort,
            model: ask.model,
            shape: &scenario.shape,
            ending,
            style,
            site: &site,
            seed,
            speed: self.clock.speed(),
        });
        let prefix = if matches!(ask.api, Api::Agent) { "resp_" } else { "" };
        Run {
            id: format!("{prefix}{}", uuid(&mut ids)),
            message_id: format!("msg_{}", uuid(&mut ids)),
            ask,
            timeline: Timeline::new(script),
            created_at: wall::unix_seconds(),
            scenario,
            born: self.clock.now(),
            counts: Counts::default(),
            changed: watch::Sender::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn run(&self, id: &str) -> Option<&Run> {
        self.runs.get(*self.places.get(id)?)
    }

    fn find(&mut self, door: Door, id: &str) -> Result<&mut Run, Refusal> {
        if door == Door::Agent && !is_agent_id(id) {
            return Err(Refusal::invalid("invalid response id"));
        }
        let place = self.places.get(id).copied();
        let run = place.and_then(|place| self.runs.get_mut(place));
        run.filter(|run| run.door() == door).ok_or_else(Refusal::not_found)
    }

    /// Counts a try of this input; the scenario may refuse it.
    fn knock(&mut self, input: &str, scenario: &Scenario) -> Result<(), Refusal> {
        let input = self.inputs.entry(input.to_owned()).or_default();
        input.tries += 1;
        match scenario.fault(Call::Submit, input.tries - 1) {
            Some(fault) => Err(Refusal::scripted(fault)),
            None => Ok(()),
        }
    }

    /// Counts a new run and returns how many this input had before.
    fn count_run(&mut self, input: &str) -> u64 {
        let input = self.inputs.entry(input.to_owned()).or_default();
        let earlier = input.runs;
        input.runs += 1;
        self.created += 1;
        self.stats.submits += 1;
        self.stats.duplicate_submits += u64::from(earlier > 0);
        earlier
    }

    fn keep_pages<'a>(&mut self, base: Option<&str>, sources: impl Iterator<Item = &'a Source>) {
        let Some(base) = base else { return };
        for source in sources {
            if let Some(name) = source.url.strip_prefix(base) {
                let name = name.trim_start_matches("/page/").to_owned();
                self.pages.insert(name, source.page());
            }
        }
    }
}
