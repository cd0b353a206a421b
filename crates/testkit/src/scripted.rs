//! A provider that does what a test tells it, step by step, and counts what it was asked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use async_trait::async_trait;
use outlast_core::{
    Again, BeginError, Body, Cost, Nature, Output, Profile, Progress, Provider, ProviderError,
    RemoteRun, RemoteStop, Run, Step, Timestamp, Trouble, Usage,
};
use serde_json::Value;
use tokio::sync::{Notify, mpsc};

/// What a begin does.
pub enum Begin {
    /// Becomes a run, which then waits for [`Scripted::act`].
    Run,
    /// Becomes a run once this is notified; lets a test act while the request is on its way.
    RunAfter(Arc<Notify>),
    /// Fails.
    Fail(BeginError),
    /// The adapter's own code fails.
    Panic,
}

/// What a run does next.
pub enum Act {
    /// Comes further.
    Progress(u8),
    /// Delivers this report.
    Done(&'static str),
    /// Ends in trouble.
    Fail(Trouble),
    /// The adapter's own code fails.
    Panic,
}

/// The provider.
pub struct Scripted {
    nature: Nature,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    begins: Vec<Begin>,
    keys: Vec<String>,
    runs: HashMap<String, Line>,
    resumes: u32,
    stops: Vec<String>,
}

struct Line {
    acts: mpsc::UnboundedSender<Act>,
    /// With whoever follows the run; comes back when they let go.
    heard: Option<mpsc::UnboundedReceiver<Act>>,
}

impl Scripted {
    /// One that costs money: never sent twice on a doubt, resumable, stoppable.
    pub fn paid() -> Arc<Self> {
        Self::natured(Nature { again: Again::Never, resumes: true, stops: true })
    }

    /// One of any nature.
    pub fn natured(nature: Nature) -> Arc<Self> {
        Arc::new(Self { nature, state: Mutex::default() })
    }

    /// The profile of its jobs.
    pub fn profile() -> Profile {
        Profile::new("scripted")
    }

    /// What the next begins do, in order; after these, each becomes a run.
    pub fn next_begins(&self, begins: impl IntoIterator<Item = Begin>) {
        self.state().begins.extend(begins);
    }

    /// Tells the n-th run, from 1, what to do.
    pub fn act(&self, run: usize, act: Act) {
        let state = self.state();
        let line = state.runs.get(&run_id(run)).expect("no such run has begun");
        line.acts.send(act).expect("the run keeps its receiver");
    }

    /// The keys of all begins so far.
    pub fn keys(&self) -> Vec<String> {
        self.state().keys.clone()
    }

    /// How often a run was taken up again.
    pub fn resumes(&self) -> u32 {
        self.state().resumes
    }

    /// Runs that were told to stop.
    pub fn stops(&self) -> Vec<String> {
        self.state().stops.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no test panics while it holds this")
    }

    fn follow(self: &Arc<Self>, remote: RemoteRun) -> ScriptedRun {
        let mut state = self.state();
        let line = state.runs.entry(remote.id.clone()).or_insert_with(|| {
            let (acts, heard) = mpsc::unbounded_channel();
            Line { acts, heard: Some(heard) }
        });
        let acts = line.heard.take();
        drop(state);
        ScriptedRun { provider: Arc::clone(self), remote, acts }
    }
}

fn run_id(number: usize) -> String {
    format!("run-{number}")
}

/// The port is implemented for the shared handle, because runs hand their lines back.
pub struct Handle(pub Arc<Scripted>);

#[async_trait]
impl Provider for Handle {
    fn name(&self) -> &'static str {
        "scripted"
    }

    fn nature(&self, _ask: &Value) -> Nature {
        self.0.nature
    }

    async fn begin(&self, _ask: &Value, key: &str) -> Result<Box<dyn Run>, BeginError> {
        let (begin, number) = {
            let mut state = self.0.state();
            state.keys.push(key.to_owned());
            let begin = if state.begins.is_empty() { Begin::Run } else { state.begins.remove(0) };
            (begin, state.keys.len())
        };
        match begin {
            Begin::Run => {}
            Begin::RunAfter(notify) => notify.notified().await,
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
        Ok(Box::new(self.0.follow(remote)))
    }

    async fn resume(&self, run: &RemoteRun) -> Result<Box<dyn Run>, ProviderError> {
        self.0.state().resumes += 1;
        Ok(Box::new(self.0.follow(run.clone())))
    }

    async fn stop(&self, run: &RemoteRun) -> Result<RemoteStop, ProviderError> {
        self.0.state().stops.push(run.id.clone());
        Ok(RemoteStop::Done)
    }
}

struct ScriptedRun {
    provider: Arc<Scripted>,
    remote: RemoteRun,
    acts: Option<mpsc::UnboundedReceiver<Act>>,
}

#[async_trait]
impl Run for ScriptedRun {
    fn remote(&self) -> RemoteRun {
        self.remote.clone()
    }

    async fn next(&mut self) -> Result<Step, ProviderError> {
        let Some(acts) = &mut self.acts else { return std::future::pending().await };
        match acts.recv().await {
            Some(Act::Progress(percent)) => Ok(Step::Progress(Progress {
                percent: Some(percent),
                message: format!("at {percent}"),
            })),
            Some(Act::Done(text)) => Ok(Step::Done { output: Box::new(report(text)), raw: None }),
            Some(Act::Fail(trouble)) => Err(error(trouble)),
            Some(Act::Panic) => panic!("scripted"),
            None => std::future::pending().await,
        }
    }
}

impl Drop for ScriptedRun {
    fn drop(&mut self) {
        // A panicking test needs no second panic from here.
        if let Ok(mut state) = self.provider.state.lock()
            && let Some(line) = state.runs.get_mut(&self.remote.id)
        {
            line.heard = self.acts.take();
        }
    }
}

/// A report of this text.
pub fn report(text: &str) -> Output {
    Output {
        body: Body::Report { text: text.to_owned(), sources: Vec::new() },
        model: None,
        usage: Usage::default(),
        cost: Cost::Unknown,
    }
}

/// Trouble of this kind.
pub fn error(trouble: Trouble) -> ProviderError {
    ProviderError { trouble, sentence: "scripted trouble".to_owned(), detail: None }
}
