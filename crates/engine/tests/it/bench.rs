//! A store, a scripted provider, and any number of engines over them. Time is tokio's, paused: it advances only when
//! every task waits, so [`Bench::quiet`] means "until no task has anything left to do".

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{
    Body, CancelOutcome, Checkpoint, Job, JobId, JobState, NewJob, OwnerId, Profile, Provider,
    RecoverySemantics, RemoteRun, RemoteStop, ResendPolicy, ResumePolicy, Scope, StateKind, Store,
    StoreError, Visibility,
};
use outlast_engine::{
    Engine, JobSnapshot, LeaveTime, Options, Providers, Shutdown, Worker, WorkerRole,
};
use outlast_testkit::scripted::{Act, Handle, Scripted};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::moody::Moody;

pub(crate) const LEASE: Duration = Duration::from_secs(30);
pub(crate) const LONG: Duration = Duration::from_secs(3_600);

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The recovery semantics of a provider whose runs can be stopped.
pub(crate) const fn semantics_of(again: ResendPolicy, resumes: ResumePolicy) -> RecoverySemantics {
    RecoverySemantics { resend: again, resume: resumes, can_stop: true }
}

pub(crate) struct Bench {
    pub(crate) store: Arc<Moody>,
    pub(crate) provider: Arc<Scripted>,
}

/// One process, as far as a test needs it.
pub(crate) struct Process {
    pub(crate) engine: Engine,
    pub(crate) stop: Shutdown,
    pub(crate) worker: Option<JoinHandle<Result<(), StoreError>>>,
    follower: JoinHandle<()>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::over(Scripted::paid())
    }

    pub(crate) fn over(provider: Arc<Scripted>) -> Self {
        Self { store: Moody::new(), provider }
    }

    /// Starts a process with a worker.
    pub(crate) async fn process(&self) -> Process {
        self.process_with(Options::default()).await
    }

    pub(crate) async fn process_with(&self, options: Options) -> Process {
        self.process_that_takes(WorkerRole::TheQueue, options).await
    }

    pub(crate) async fn process_that_takes(&self, takes: WorkerRole, options: Options) -> Process {
        let mut process = self.face(options).await;
        let worker = Worker::new(&process.engine, takes);
        process.worker = Some(tokio::spawn(worker.run(LeaveTime::Asked)));
        process
    }

    /// Starts a process without a worker.
    pub(crate) async fn process_without_worker(&self) -> Process {
        self.process_without_worker_with(Options::default()).await
    }

    pub(crate) async fn process_without_worker_with(&self, options: Options) -> Process {
        self.face(options).await
    }

    async fn face(&self, options: Options) -> Process {
        let store: Arc<dyn Store> = self.store.clone();
        let provider: Arc<dyn Provider> = Arc::new(Handle(self.provider.clone()));
        let checks = Profile::new(Profile::CITATIONS);
        let providers =
            Providers::from([(Scripted::profile(), Arc::clone(&provider)), (checks, provider)]);
        let stop = Shutdown::new();
        let (engine, follower) =
            Engine::new(store, providers, options, stop.clone()).await.unwrap();
        Process { engine, stop, worker: None, follower }
    }

    /// Waits until every task only waits.
    pub(crate) async fn quiet(&self) {
        tokio::time::sleep(millis(1)).await;
    }

    /// Waits until `done`, while no time passes.
    pub(crate) async fn at_once(&self, done: impl Fn() -> bool) {
        let since = Instant::now();
        for _ in 0..1_000 {
            if done() {
                return assert_eq!(since.elapsed(), Duration::ZERO);
            }
            tokio::task::yield_now().await;
        }
        panic!("not at once");
    }

    /// Waits until `done`, to the millisecond.
    pub(crate) async fn until(&self, done: impl Fn() -> bool) {
        let waiting = async {
            while !done() {
                self.quiet().await;
            }
        };
        tokio::time::timeout(seconds(100), waiting).await.expect("it never comes");
    }

    /// Notifies the store that the worker with the first claim is dead, as from a lock that the kernel has freed.
    pub(crate) async fn first_claimant_ends(&self) {
        self.store.deregister_worker(&self.store.claimants()[0]).await.unwrap();
    }

    /// Returns the job.
    pub(crate) async fn job(&self, id: &JobId) -> Job {
        self.store.job(&Scope::Operator, id).await.unwrap().unwrap()
    }

    pub(crate) async fn kind(&self, id: &JobId) -> StateKind {
        self.job(id).await.state.kind()
    }
}

impl Process {
    pub(crate) async fn start(&self, new: NewJob) -> JobId {
        self.engine.start(new, None).await.unwrap().job.id
    }

    /// Starts a plain job and waits until it is under way as `run`.
    pub(crate) async fn under_way(&self, bench: &Bench, run: usize) -> JobId {
        let id = self.start(research()).await;
        bench.quiet().await;
        assert_eq!(bench.provider.keys().len(), run, "one begin for this job");
        assert!(matches!(bench.job(&id).await.checkpoint, Checkpoint::Running(_)));
        id
    }

    /// Waits for the end of the job, at most an hour.
    pub(crate) async fn end(&self, id: &JobId) -> JobSnapshot {
        let reading = self.engine.poll(&owner(), id, LONG).await.unwrap().unwrap();
        assert!(reading.job.state.kind().is_terminal(), "{:?}", reading.job.state);
        reading
    }

    /// Returns a poll that is already waiting.
    pub(crate) async fn parked_poll(
        &self,
        bench: &Bench,
        id: JobId,
        budget: Duration,
    ) -> JoinHandle<(Option<JobSnapshot>, Instant)> {
        let engine = self.engine.clone();
        let poll = tokio::spawn(async move {
            let answer = engine.poll(&owner(), &id, budget).await.unwrap();
            (answer, Instant::now())
        });
        bench.quiet().await;
        assert!(!poll.is_finished(), "the poll waits");
        poll
    }

    pub(crate) async fn cancel(&self, id: &JobId) -> CancelOutcome {
        self.engine.cancel(&owner(), id).await.unwrap().unwrap()
    }

    /// Shuts down cleanly and returns how long that took.
    pub(crate) async fn leave(self) -> Duration {
        let asked = Instant::now();
        self.stop.ask();
        if let Some(worker) = self.worker {
            worker.await.unwrap().unwrap();
        }
        self.follower.await.unwrap();
        asked.elapsed()
    }

    /// Crashes as by kill -9: nothing is released.
    pub(crate) async fn die(self) {
        if let Some(worker) = self.worker {
            worker.abort();
            assert!(worker.await.unwrap_err().is_cancelled());
        }
        self.follower.abort();
    }
}

pub(crate) fn owner() -> Scope {
    Scope::Owner(OwnerId::new("ann"))
}

/// A typical job: two retries, generous time limits.
pub(crate) fn research() -> NewJob {
    NewJob {
        owner: OwnerId::new("ann"),
        conversation: None,
        subject: None,
        profile: Scripted::profile(),
        workflow: NewJob::DEEP_RESEARCH.to_owned(),
        title: "why".to_owned(),
        request: json!("why").into(),
        priority: 0,
        visibility: Visibility::Promised,
        max_failures: 2,
        attempt_timeout: LONG,
        life: None,
        keep: None,
    }
}

/// Returns the text of a job's report.
pub(crate) fn text(job: &Job) -> &str {
    match &job.state {
        JobState::Succeeded { output, .. } => match &output.body {
            Body::Report { text, .. } => text,
            Body::Tool { .. } => panic!("a tool's result"),
        },
        other => panic!("not succeeded: {other:?} {:?}", job.failures),
    }
}

/// Returns what is known of the remote run of a cancelled job.
pub(crate) fn remote_stop(job: &Job) -> RemoteStop {
    match job.state {
        JobState::Cancelled { remote, .. } => remote,
        ref other => panic!("not cancelled: {other:?}"),
    }
}

/// Returns the run that a job's checkpoint names.
pub(crate) fn remote_run(job: &Job) -> &RemoteRun {
    match &job.checkpoint {
        Checkpoint::Running(run) => run,
        other => panic!("no run: {other:?}"),
    }
}

/// Makes the run deliver its report.
pub(crate) fn deliver(bench: &Bench, run: usize) {
    bench.provider.act(run, Act::Done("because"));
}
