//! Calls as jobs in the store. A job is created when a call is handed off or its caller has left. A worker of this
//! process runs it and settles it with the server's own answer. The first job opens the store.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::ResendPolicy;
use outlast_core::rules::job_of_key;
use outlast_core::{
    BeginError, Body, Cost, Job, JobId, JobQuery, JobState, NewJob, Output, OwnerId, Profile,
    Progress, Provider, ProviderError, ProviderErrorKind, RecoverySemantics, RemoteRun, Request,
    ResumePolicy, Run, Scope, StateKind, Step, StopOutcome, Timestamp, Usage, Visibility,
};
use outlast_engine::{Engine, LeaveTime, Providers, Shutdown, Worker, WorkerRole};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{OnceCell, mpsc, oneshot};
use tokio::time::Instant;

#[cfg(test)]
mod tests;

/// The name of our runs in the store, and the first part of every profile.
const PROVIDER: &str = Profile::WRAP;
/// The time limit of a call, which is practically unlimited.
const MAX_CALL: Duration = Duration::from_secs(30 * 24 * 3600);
/// The time within which a running host process has claimed a job that it created. It is listed as a worker from its
/// first claim on.
const TAKEN_BY_NOW: Duration = Duration::from_secs(3);
/// The interval of the checks that the host process of a job is running, while a caller waits for the job.
const HOST_LOOK: Duration = Duration::from_secs(1);
/// The maximum number of left jobs that one look ends.
const MAX_LEFT: u32 = 100;
/// The time that a server has to answer a call after it was asked to stop it. Most servers do not answer.
const STOP_WAIT: Duration = Duration::from_secs(2);
/// The time that the worker may take to settle the calls that have ended.
const LEAVING: Duration = Duration::from_secs(5);
/// Up to this size, the blocks of a result are stored a second time, for people who list jobs.
const SHOWN_BYTES: usize = 64 * 1024;

/// The key under which the server's answer is stored unchanged.
const RAW: &str = "outlast/raw";

/// The store of the jobs; opened by the program, which knows the configuration.
#[async_trait]
pub trait CallRows: Send + Sync {
    /// Returns an engine over the store for these providers; its follower ends when `stop` is asked.
    async fn engine(&self, providers: Providers, stop: Shutdown) -> Result<Engine, String>;
    /// Returns the owner of the jobs.
    fn owner(&self) -> OwnerId;
    /// Returns the retention of the jobs after their end.
    fn keep(&self) -> Duration;
    /// Closes the resources that were opened.
    async fn close(&self);
}

/// The server's answer: the name of the member, `result` or `error`, and its value as received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredAnswer {
    pub(crate) key: &'static str,
    pub(crate) value: Arc<str>,
}

impl StoredAnswer {
    /// Returns true if the call failed.
    pub(crate) fn is_error(&self) -> bool {
        #[derive(Default, Deserialize)]
        struct ToolResult {
            #[serde(default, rename = "isError")]
            is_error: bool,
        }
        let result: ToolResult = serde_json::from_str(&self.value).unwrap_or_default();
        self.key == "error" || result.is_error
    }
}

/// An event of a call for its row.
#[derive(Debug)]
pub(crate) enum RowEvent {
    Progress(Progress),
    Answered(StoredAnswer),
    /// The call may or may not have happened.
    Lost(String),
}

/// A row of a call that is under way.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) id: JobId,
    pub(crate) tell: mpsc::UnboundedSender<RowEvent>,
}

/// The state of a job that was asked for.
#[derive(Debug)]
pub(crate) enum WrappedJobState {
    Unknown,
    Running(Option<Progress>),
    /// The answer, and the time since the job ended.
    Answered(StoredAnswer, Duration),
    Failed(String),
}

/// The state of the host process of a job, as far as the caller of [`Rows::find`] knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KnownHost {
    /// The lock of its journal was free.
    IsGone,
    MayRun,
}

/// A job that its owner cancelled. The server is asked to stop its call.
#[derive(Debug)]
pub(crate) struct CancelledJob {
    pub(crate) id: JobId,
    /// Receives the outcome when it is known.
    pub(crate) stopped: Option<oneshot::Sender<StopOutcome>>,
}

/// The rows of this host process.
#[derive(Clone)]
pub(crate) struct Rows {
    shared: Arc<RowsShared>,
}

struct RowsShared {
    store: Arc<dyn CallRows>,
    profile: Profile,
    runs: Runs,
    cancelled: mpsc::UnboundedSender<CancelledJob>,
    opened: OnceCell<OpenedRows>,
    stop: Shutdown,
}

type Runs = Arc<Mutex<HashMap<JobId, mpsc::UnboundedReceiver<RowEvent>>>>;

struct OpenedRows {
    engine: Engine,
    worker: Mutex<Option<tokio::task::JoinHandle<()>>>,
}

impl Rows {
    /// Creates the rows. `cancelled` receives each job that was cancelled.
    pub(crate) fn new(
        store: Arc<dyn CallRows>,
        cancelled: mpsc::UnboundedSender<CancelledJob>,
    ) -> Self {
        // A profile of this process alone: no other worker takes the jobs of a host process that is running.
        let profile = Profile::new(format!("{PROVIDER}/{}", uuid::Uuid::new_v4().simple()));
        let (runs, opened) = (Runs::default(), OnceCell::new());
        let shared = RowsShared { store, profile, runs, cancelled, opened, stop: Shutdown::new() };
        Self { shared: Arc::new(shared) }
    }

    async fn opened(&self) -> Result<&OpenedRows, String> {
        let RowsShared { store, profile, runs, cancelled, opened, stop } = &*self.shared;
        opened
            .get_or_try_init(async || {
                let providers = providers(profile, runs.clone(), cancelled.clone());
                let engine = store.engine(providers, stop.clone()).await?;
                let worker = Worker::new(&engine, WorkerRole::HeldCallsOnly);
                let worker = outlast_engine::spawn(async move {
                    if let Err(error) = worker.run(LeaveTime::Asked).await {
                        tracing::error!(%error, "the worker of wrapped calls ended");
                    }
                });
                Ok(OpenedRows { engine, worker: Mutex::new(Some(worker)) })
            })
            .await
    }

    /// Creates the durable row of a call.
    pub(crate) async fn make(
        &self,
        server: &str,
        tool: &str,
        arguments: &str,
    ) -> Result<Row, String> {
        let opened = self.opened().await?;
        // Shown to people only: text that is not JSON is shown as a string.
        let arguments: Value =
            serde_json::from_str(arguments).unwrap_or_else(|_| arguments.to_owned().into());
        let job = NewJob {
            owner: self.shared.store.owner(),
            conversation: None,
            subject: None,
            profile: self.shared.profile.clone(),
            workflow: format!("{PROVIDER}/{server}"),
            title: tool.to_owned(),
            request: json!({ "tool": tool, "arguments": arguments }).into(),
            priority: 0,
            visibility: Visibility::Task,
            max_failures: 0,
            attempt_timeout: MAX_CALL,
            life: None,
            keep: Some(self.shared.store.keep()),
        };
        let started = opened.engine.start(job, None).await.map_err(|error| error.to_string())?;
        let (tell, told) = mpsc::unbounded_channel();
        locked(&self.shared.runs).insert(started.job.id, told);
        opened.engine.carry(&started.job.id);
        let (rows, engine) = (self.clone(), opened.engine.clone());
        outlast_engine::spawn(async move { rows.watch_until_taken(&engine, started.job.id).await });
        Ok(Row { id: started.job.id, tell })
    }

    /// Reports a job that is cancelled before the worker has begun it: it never becomes a run, whose drop would report
    /// it.
    async fn watch_until_taken(&self, engine: &Engine, id: JobId) {
        let scope = Scope::Owner(self.shared.store.owner());
        let Ok(Some((mut reading, mut watch))) = engine.watch(&scope, &id).await else { return };
        while locked(&self.shared.runs).contains_key(&id) {
            if matches!(reading.job.state, JobState::Cancelled { .. }) {
                if locked(&self.shared.runs).remove(&id).is_some() {
                    // Fails only when the host process exits.
                    let _ = self.shared.cancelled.send(CancelledJob { id, stopped: None });
                }
                return;
            }
            match watch.next_change().await {
                Ok(Some(changed)) => reading = changed,
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// Waits until the job has ended, at most for `wait`.
    pub(crate) async fn find(
        &self,
        id: JobId,
        wait: Duration,
        host: KnownHost,
    ) -> Result<WrappedJobState, String> {
        let opened = self.opened().await?;
        let (engine, store) = (&opened.engine, &*self.shared.store);
        let scope = Scope::Owner(store.owner());
        let until = Instant::now() + wait;
        loop {
            engine.find_dead_workers().await;
            let job = engine.job(&scope, &id).await.map_err(|error| error.to_string())?;
            let Some(mut job) = job.filter(is_wrapped) else { return Ok(WrappedJobState::Unknown) };
            if is_left_behind(&job, engine, host).await? {
                end_calls(&job.new.profile, store).await?;
            }
            let rest = until.saturating_duration_since(Instant::now());
            if job.ended_at().is_none() {
                let polled = engine.poll(&scope, &id, rest.min(HOST_LOOK)).await;
                let Some(reading) = polled.map_err(|error| error.to_string())? else {
                    return Ok(WrappedJobState::Unknown);
                };
                job = reading.job;
            }
            if job.ended_at().is_some() || rest.is_zero() {
                return Ok(found(job, engine.now()));
            }
        }
    }

    /// Ends the worker after it has settled the ended calls.
    pub(crate) async fn close(&self) {
        if let Some(opened) = self.shared.opened.get() {
            self.shared.stop.ask();
            let worker = locked(&opened.worker).take();
            if let Some(worker) = worker {
                drop(tokio::time::timeout(LEAVING, worker).await);
            }
        }
        self.shared.store.close().await;
    }
}

/// Returns the host processes that were killed and whose calls are unfinished jobs. No other process can run these
/// jobs, so without [`end_calls`] they stay unfinished until the same calls are repeated.
pub async fn killed_hosts(engine: &Engine, scope: &Scope) -> Result<Vec<Profile>, String> {
    let (states, provider) = (vec![StateKind::Queued], Some(PROVIDER.to_owned()));
    let query = JobQuery { states, provider, limit: MAX_LEFT, ..JobQuery::default() };
    let page = engine.list(scope, &query).await.map_err(|error| error.to_string())?;
    let mut hosts = BTreeSet::new();
    for queued in page.jobs {
        let job = engine.job(scope, &queued.id).await.map_err(|error| error.to_string())?;
        if let Some(job) = job
            && is_left_behind(&job, engine, KnownHost::MayRun).await?
        {
            hosts.insert(job.new.profile);
        }
    }
    Ok(hosts.into_iter().collect())
}

/// Returns true if no host process can run this job any more. A job that its host process has claimed is queued only
/// after that process was found dead.
async fn is_left_behind(job: &Job, engine: &Engine, host: KnownHost) -> Result<bool, String> {
    let is_queued = matches!(job.state, JobState::Queued { .. });
    let age = engine.now().since(job.updated_at.min(job.created_at));
    let is_late = host == KnownHost::IsGone || job.was_claimed() || age > TAKEN_BY_NOW;
    if !is_queued || !is_late {
        return Ok(false);
    }
    let has_host = engine.has_worker(&job.new.profile).await;
    has_host.map(|has_host| !has_host).map_err(|error| error.to_string())
}

/// Ends the unfinished calls of a host process that was killed: they may or may not have happened.
pub async fn end_calls(profile: &Profile, store: &dyn CallRows) -> Result<(), String> {
    // Fails only if no one listens, and no call here has a caller.
    let (cancelled, _) = mpsc::unbounded_channel();
    let stop = Shutdown::new();
    let engine = store.engine(providers(profile, Runs::default(), cancelled), stop.clone()).await?;
    // The queue has no jobs of this profile, but only a queue worker exits by itself.
    let worker = Worker::new(&engine, WorkerRole::TheQueue);
    let ended =
        worker.run(LeaveTime::IdleFor(Duration::ZERO)).await.map_err(|error| error.to_string());
    stop.ask();
    ended
}

fn providers(
    profile: &Profile,
    runs: Runs,
    cancelled: mpsc::UnboundedSender<CancelledJob>,
) -> Providers {
    let provider: Arc<dyn Provider> = Arc::new(CallProvider { runs, cancelled });
    [(profile.clone(), provider)].into()
}

fn is_wrapped(job: &Job) -> bool {
    job.new.profile.provider() == PROVIDER
}

fn found(job: Job, now: Timestamp) -> WrappedJobState {
    match &job.state {
        JobState::Queued { .. } | JobState::Running { .. } => {
            WrappedJobState::Running(job.progress)
        }
        JobState::Succeeded { output, .. } => match stored_answer(output) {
            Some(answer) => WrappedJobState::Answered(
                answer,
                job.ended_at().map(|at| now.since(at)).unwrap_or_default(),
            ),
            None => WrappedJobState::Failed("its result cannot be read".to_owned()),
        },
        JobState::Failed { .. } => {
            let why = job.failures.last().map(|failure| failure.message.clone());
            WrappedJobState::Failed(why.unwrap_or_default())
        }
        JobState::Cancelled { .. } => WrappedJobState::Failed("it was cancelled".to_owned()),
    }
}

/// Returns the answer as a job's output: the bytes as received and, if they are few, the content that lists of jobs
/// show.
fn output(answer: &StoredAnswer) -> Output {
    let parsed: Value = match answer.value.len() {
        0..=SHOWN_BYTES => serde_json::from_str(&answer.value).unwrap_or_default(),
        _ => Value::Null,
    };
    let content = match (&parsed["content"], answer.key) {
        (Value::Array(blocks), _) => blocks.clone(),
        (_, "error") => vec![json!({ "type": "text", "text": parsed["message"] })],
        _ => Vec::new(),
    };
    let structured = Some(json!({ RAW: { (answer.key): &*answer.value } }));
    Output {
        body: Body::Tool { content, structured, is_error: answer.is_error() },
        model: None,
        usage: Usage::default(),
        cost: Cost::Unknown,
    }
}

fn stored_answer(output: &Output) -> Option<StoredAnswer> {
    let Body::Tool { structured: Some(structured), .. } = &output.body else { return None };
    ["result", "error"].into_iter().find_map(|key| {
        let value = structured[RAW][key].as_str()?;
        Some(StoredAnswer { key, value: value.into() })
    })
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The calls of this host process as a provider: a run is a call that was already sent.
struct CallProvider {
    runs: Runs,
    cancelled: mpsc::UnboundedSender<CancelledJob>,
}

fn unknown(sentence: &str) -> ProviderError {
    let sentence = sentence.to_owned();
    ProviderError::new(ProviderErrorKind::StepUnknown, sentence)
}

#[async_trait]
impl Provider for CallProvider {
    fn name(&self) -> &'static str {
        PROVIDER
    }

    fn recovery_semantics(&self, _request: &Request) -> RecoverySemantics {
        RecoverySemantics {
            resend: ResendPolicy::Never,
            resume: ResumePolicy::Never,
            can_stop: false,
        }
    }

    async fn begin(&self, _request: &Request, key: &str) -> Result<Box<dyn Run>, BeginError> {
        let gone = || BeginError::Unknown(unknown("the process that made the call is gone"));
        let job = job_of_key(key).ok_or_else(gone)?;
        let told = locked(&self.runs).remove(&job).ok_or_else(gone)?;
        let cancelled = Some(self.cancelled.clone());
        Ok(Box::new(CallRun { job, key: key.to_owned(), told, cancelled }))
    }

    async fn resume(
        &self,
        _request: &Request,
        _run: &RemoteRun,
    ) -> Result<Box<dyn Run>, ProviderError> {
        Err(unknown("a call ends with the process that made it"))
    }

    async fn stop(&self, run: &RemoteRun) -> Result<StopOutcome, ProviderError> {
        let Some(id) = job_of_key(&run.id) else { return Ok(StopOutcome::Unknown) };
        let (stopped, outcome) = oneshot::channel();
        // Fails only when the host process exits.
        let _ = self.cancelled.send(CancelledJob { id, stopped: Some(stopped) });
        Ok(match tokio::time::timeout(STOP_WAIT, outcome).await {
            Ok(outcome) => outcome.unwrap_or(StopOutcome::Unknown),
            Err(_) => StopOutcome::CannotStop,
        })
    }
}

struct CallRun {
    job: JobId,
    key: String,
    told: mpsc::UnboundedReceiver<RowEvent>,
    /// Receives the job's id when the run is cancelled before its end.
    cancelled: Option<mpsc::UnboundedSender<CancelledJob>>,
}

#[async_trait]
impl Run for CallRun {
    fn remote(&self) -> RemoteRun {
        RemoteRun {
            provider: PROVIDER.to_owned(),
            id: self.key.clone(),
            cursor: None,
            begun_at: Timestamp::from_millis(0),
        }
    }

    async fn next(&mut self) -> Result<Step, ProviderError> {
        let event = self.told.recv().await;
        if !matches!(event, Some(RowEvent::Progress(_))) {
            self.cancelled = None;
        }
        match event {
            Some(RowEvent::Progress(progress)) => Ok(Step::Progress(progress)),
            Some(RowEvent::Answered(answer)) => {
                Ok(Step::Done { output: Box::new(output(&answer)), raw: None })
            }
            Some(RowEvent::Lost(sentence)) => Err(unknown(&sentence)),
            None => Err(unknown("the process that made the call is gone")),
        }
    }
}

impl Drop for CallRun {
    fn drop(&mut self) {
        if let Some(cancelled) = self.cancelled.take() {
            // Fails only when the host process exits.
            let _ = cancelled.send(CancelledJob { id: self.job, stopped: None });
        }
    }
}
