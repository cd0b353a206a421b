//! A scripted provider that counts its requests.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{
    BeginError, Body, Cost, NewQuestion, Output, Profile, Progress, Provider, ProviderError,
    ProviderErrorKind, QuestionState, RecoverySemantics, RemoteRun, Request, ResendPolicy,
    ResumePolicy, Run, RunJournal, Step, StopOutcome, StoreError, Timestamp, Usage,
};
use serde_json::Value;
use tokio::sync::{Notify, watch};

/// The behaviour of a begin.
pub enum Begin {
    /// Starts a run, which then waits for [`Scripted::act`].
    Run,
    /// Starts a run once this is notified, so that a test can act while the request is in flight.
    RunAfter(Arc<Notify>),
    /// Fails.
    Fail(BeginError),
    /// Panics in the adapter.
    Panic,
}

/// The behaviour of a resume or a stop.
pub enum Answer {
    /// A stop returns this outcome.
    Stopped(StopOutcome),
    /// Succeeds.
    Yes,
    /// Never answers.
    Never,
    /// Fails.
    Fail(ProviderErrorKind),
    /// Panics in the adapter.
    Panic,
}

/// The next step of a run.
#[derive(Clone)]
pub enum Act {
    /// Makes progress.
    Progress(u8),
    /// Makes progress, with this text written so far.
    Writes(u8, &'static str),
    /// Continues at another position of its stream, which is worth recording.
    Moved(&'static str),
    /// Returns this report, to every caller from now on.
    Done(&'static str),
    /// Returns this report with a cost.
    DoneFor(&'static str, Cost),
    /// Asks for an approval and stops until it is answered; a no cancels the job.
    Ask(NewQuestion),
    /// Fails.
    Fail(ProviderErrorKind),
    /// Panics in the adapter.
    Panic,
}

/// A scripted provider.
pub struct Scripted {
    semantics: RecoverySemantics,
    state: Mutex<State>,
    /// Notified of every act.
    acted: watch::Sender<()>,
}

#[derive(Default)]
struct State {
    begins: VecDeque<Begin>,
    resumes: VecDeque<Answer>,
    stops: VecDeque<Answer>,
    panics_in_semantics: u32,
    asks: Vec<Value>,
    keys: Vec<String>,
    begins_dropped: u32,
    runs: HashMap<String, VecDeque<Act>>,
    resumed: u32,
    followers: u32,
    wind_downs: u32,
    last_answer: Option<Arc<Notify>>,
    stopped: Vec<String>,
}

impl Scripted {
    /// Creates a provider that costs money: never resent in doubt, resumable, stoppable.
    pub fn paid() -> Arc<Self> {
        Self::with_semantics(RecoverySemantics {
            resend: ResendPolicy::Never,
            resume: ResumePolicy::Always,
            can_stop: true,
        })
    }

    /// Creates a provider with any recovery semantics.
    pub fn with_semantics(semantics: RecoverySemantics) -> Arc<Self> {
        Arc::new(Self { semantics, state: Mutex::default(), acted: watch::Sender::new(()) })
    }

    /// The profile of its jobs.
    pub fn profile() -> Profile {
        Profile::new("scripted")
    }

    /// Scripts the next begins in order; later ones each start a run.
    pub fn next_begins(&self, begins: impl IntoIterator<Item = Begin>) {
        self.state().begins.extend(begins);
    }

    /// Scripts the next resumes in order; later ones succeed.
    pub fn next_resumes(&self, answers: impl IntoIterator<Item = Answer>) {
        self.state().resumes.extend(answers);
    }

    /// Scripts the next stops in order; later ones succeed.
    pub fn next_stops(&self, answers: impl IntoIterator<Item = Answer>) {
        self.state().stops.extend(answers);
    }

    /// Makes the adapter panic the next `times` times it is asked for its recovery semantics.
    pub fn panic_in_semantics(&self, times: u32) {
        self.state().panics_in_semantics = times;
    }

    /// Sets the next step of the run of the n-th begin, counted from 1.
    pub fn act(&self, run: usize, act: Act) {
        let mut state = self.state();
        state.runs.get_mut(&run_id(run)).expect("no such run has begun").push_back(act);
        self.acted.send_replace(());
    }

    /// The requests of all begins.
    pub fn asks(&self) -> Vec<Value> {
        self.state().asks.clone()
    }

    /// The keys of all begins.
    pub fn keys(&self) -> Vec<String> {
        self.state().keys.clone()
    }

    /// The number of begins whose caller went away before the answer.
    pub fn begins_dropped(&self) -> u32 {
        self.state().begins_dropped
    }

    /// The number of resumes.
    pub fn resumes(&self) -> u32 {
        self.state().resumed
    }

    /// Makes runs that wind down wait for an answer until this is notified.
    pub fn answer_last_steps(&self, notify: Arc<Notify>) {
        self.state().last_answer = Some(notify);
    }

    /// The number of runs that were asked to wind down.
    pub fn wind_downs(&self) -> u32 {
        self.state().wind_downs
    }

    /// The number of callers that follow a run now.
    pub fn followers(&self) -> u32 {
        self.state().followers
    }

    /// The runs that were stopped.
    pub fn stops(&self) -> Vec<String> {
        self.state().stopped.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no test panics while it holds this")
    }

    fn follow(self: &Arc<Self>, remote: RemoteRun) -> Box<dyn Run> {
        let mut state = self.state();
        state.runs.entry(remote.id.clone()).or_default();
        state.followers += 1;
        drop(state);
        Box::new(ScriptedRun { provider: Arc::clone(self), remote, text: None, journal: None })
    }

    /// Removes a run's next act.
    fn drop_act(&self, run: &str) {
        if let Some(acts) = self.state().runs.get_mut(run) {
            acts.pop_front();
        }
    }

    /// Takes a run's next act; a report is kept for the next caller.
    fn next_act(&self, run: &str) -> Option<Act> {
        let mut state = self.state();
        let acts = state.runs.get_mut(run)?;
        match acts.front()? {
            Act::Done(text) => Some(Act::Done(text)),
            Act::DoneFor(text, cost) => Some(Act::DoneFor(text, *cost)),
            // Asked again by the next attempt, until it is answered.
            Act::Ask(question) => Some(Act::Ask(question.clone())),
            Act::Progress(_) | Act::Writes(..) | Act::Moved(_) | Act::Fail(_) | Act::Panic => {
                acts.pop_front()
            }
        }
    }
}

fn run_id(number: usize) -> String {
    format!("run-{number}")
}

async fn answer(answer: Option<Answer>) -> Result<(), ProviderError> {
    match answer {
        None | Some(Answer::Yes | Answer::Stopped(_)) => Ok(()),
        Some(Answer::Never) => std::future::pending().await,
        Some(Answer::Fail(kind)) => Err(error(kind)),
        Some(Answer::Panic) => panic!("scripted"),
    }
}

/// Implements the port for the shared value, because runs refer to their provider.
pub struct Handle(pub Arc<Scripted>);

#[async_trait]
impl Provider for Handle {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn recovery_semantics(&self, _request: &Request) -> RecoverySemantics {
        let left = self.0.state().panics_in_semantics;
        if left > 0 {
            self.0.state().panics_in_semantics = left - 1;
            panic!("scripted");
        }
        self.0.semantics
    }

    async fn begin(&self, request: &Request, key: &str) -> Result<Box<dyn Run>, BeginError> {
        let (begin, number) = {
            let mut state = self.0.state();
            state.asks.push(request.json().clone());
            state.keys.push(key.to_owned());
            (state.begins.pop_front().unwrap_or(Begin::Run), state.keys.len())
        };
        match begin {
            Begin::Run => {}
            Begin::RunAfter(notify) => {
                let on_its_way = InFlightRequest(&self.0);
                notify.notified().await;
                std::mem::forget(on_its_way);
            }
            Begin::Fail(error) => return Err(error),
            Begin::Panic => panic!("scripted"),
        }
        let begun_at = Timestamp::from_millis(0);
        let remote = RemoteRun {
            provider: self.name().to_owned(),
            id: run_id(number),
            cursor: None,
            begun_at,
        };
        Ok(self.0.follow(remote))
    }

    async fn resume(
        &self,
        _request: &Request,
        run: &RemoteRun,
    ) -> Result<Box<dyn Run>, ProviderError> {
        let scripted = {
            let mut state = self.0.state();
            state.resumed += 1;
            state.resumes.pop_front()
        };
        answer(scripted).await?;
        Ok(self.0.follow(run.clone()))
    }

    async fn stop(&self, run: &RemoteRun) -> Result<StopOutcome, ProviderError> {
        let scripted = {
            let mut state = self.0.state();
            state.stopped.push(run.id.clone());
            state.stops.pop_front()
        };
        if let Some(Answer::Stopped(outcome)) = scripted {
            return Ok(outcome);
        }
        answer(scripted).await?;
        Ok(match self.0.semantics.can_stop {
            true => StopOutcome::Ended { cost: Cost::Unknown },
            false => StopOutcome::CannotStop,
        })
    }
}

/// A request in flight; counted when its caller drops it.
struct InFlightRequest<'a>(&'a Scripted);

impl Drop for InFlightRequest<'_> {
    fn drop(&mut self) {
        if let Ok(mut state) = self.0.state.lock() {
            state.begins_dropped += 1;
        }
    }
}

struct ScriptedRun {
    provider: Arc<Scripted>,
    remote: RemoteRun,
    text: Option<&'static str>,
    journal: Option<RunJournal>,
}

fn lost(_: StoreError) -> ProviderError {
    error(ProviderErrorKind::Unreachable)
}

#[async_trait]
impl Run for ScriptedRun {
    fn remote(&self) -> RemoteRun {
        self.remote.clone()
    }

    fn set_journal(&mut self, journal: RunJournal) {
        self.journal = Some(journal);
    }

    fn text(&self) -> Option<String> {
        self.text.map(str::to_owned)
    }

    async fn next(&mut self) -> Result<Step, ProviderError> {
        let mut acted = self.provider.acted.subscribe();
        loop {
            acted.mark_unchanged();
            match self.provider.next_act(&self.remote.id) {
                Some(Act::Writes(percent, text)) => {
                    self.text = Some(text);
                    return Ok(Step::Progress(at(percent)));
                }
                Some(Act::Progress(percent)) => return Ok(Step::Progress(at(percent))),
                Some(Act::Moved(cursor)) => {
                    self.remote.cursor = Some(cursor.to_owned());
                    return Ok(Step::Moved);
                }
                Some(Act::Done(text)) => {
                    return Ok(Step::Done { output: Box::new(report(text)), raw: None });
                }
                Some(Act::DoneFor(text, cost)) => {
                    let output = Output { cost, ..report(text) };
                    return Ok(Step::Done { output: Box::new(output), raw: None });
                }
                Some(Act::Ask(question)) => {
                    let journal = self.journal.as_ref().expect("the engine has set it");
                    let asked = journal.ask(&question).await.map_err(lost)?;
                    match asked.state {
                        QuestionState::Open => return Ok(Step::Wait),
                        QuestionState::Answered(answer) if answer.text == NewQuestion::YES => {
                            journal.close_question(&question.key).await.map_err(lost)?;
                            self.provider.drop_act(&self.remote.id);
                        }
                        QuestionState::Answered(_) | QuestionState::NotAnswered => {
                            return Ok(Step::Cancel);
                        }
                    }
                }
                Some(Act::Fail(kind)) => return Err(error(kind)),
                Some(Act::Panic) => panic!("scripted"),
                // The sender belongs to the provider, which this run holds.
                None => drop(acted.changed().await),
            }
        }
    }

    async fn wind_down(&mut self, _at_most: Duration) {
        let answer = {
            let mut state = self.provider.state();
            state.wind_downs += 1;
            state.last_answer.clone()
        };
        if let Some(answer) = answer {
            answer.notified().await;
        }
    }
}

impl Drop for ScriptedRun {
    fn drop(&mut self) {
        // A panicking test needs no second panic from here.
        if let Ok(mut state) = self.provider.state.lock() {
            state.followers -= 1;
        }
    }
}

fn at(percent: u8) -> Progress {
    Progress { percent: Some(percent), message: format!("at {percent}") }
}

/// A report with this text.
pub fn report(text: &str) -> Output {
    Output {
        body: Body::report(text, Vec::new()),
        model: None,
        usage: Usage::default(),
        cost: Cost::Unknown,
    }
}

/// An error of this kind.
pub fn error(kind: ProviderErrorKind) -> ProviderError {
    ProviderError::new(kind, "scripted error")
}
