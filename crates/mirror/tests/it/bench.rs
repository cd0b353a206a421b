//! A folder with a store and its mirror, and any number of engines.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{
    BeginError, ConversationId, Job, JobId, NewJob, OwnerId, Provider, ProviderError,
    RecoverySemantics, RemoteRun, Request, Run, Scope, StopOutcome, StoreError, Visibility,
};
use outlast_engine::{Engine, LeaveTime, Options, Providers, Shutdown, Worker, WorkerRole};
use outlast_mirror::{ConversationFile, JobFile, Mirror, MirrorOptions, StatusFile, StatusWord};
use outlast_store::{SqliteStore, SystemClock};
use outlast_testkit::scripted::{Handle, Scripted};
use serde::de::DeserializeOwned;
use serde_json::json;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The maximum time of every wait in a test.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(60);
pub(crate) const ONE_HOUR: Duration = Duration::from_secs(3_600);
pub(crate) const MODEL: &str = "sonar-deep-research";

pub(crate) struct TestDir {
    pub(crate) dir: TempDir,
}

impl TestDir {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn logs_dir(&self) -> PathBuf {
        self.dir.path().join("conversation-logs")
    }

    pub(crate) fn folder(&self, id: &ConversationId) -> PathBuf {
        self.logs_dir().join(id.as_str())
    }

    /// The mirror's own directory.
    pub(crate) fn state_dir(&self) -> PathBuf {
        let inner = fs::read_dir(self.dir.path().join("mirror")).unwrap().next().unwrap().unwrap();
        inner.path()
    }

    /// A process that follows and has a worker.
    pub(crate) async fn process(&self) -> Process {
        let mut process = self.face().await;
        process.follow();
        process.work();
        process
    }

    /// A process that does neither.
    pub(crate) async fn face(&self) -> Process {
        self.face_with(Options { retry_base: ONE_HOUR, ..Options::default() }).await
    }

    pub(crate) async fn face_with(&self, options: Options) -> Process {
        self.face_of(ann(), options).await
    }

    pub(crate) async fn face_of(&self, owner: OwnerId, options: Options) -> Process {
        let scripted = Scripted::paid();
        let provider = Arc::new(Modelled(Handle(Arc::clone(&scripted))));
        Process::open(self.dir.path(), owner, options, provider, scripted).await
    }
}

/// One simulated process.
pub(crate) struct Process {
    pub(crate) engine: Engine,
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) mirror: Arc<Mirror>,
    pub(crate) provider: Arc<Scripted>,
    stop: Shutdown,
    mirror_stop: CancellationToken,
    worker: Option<JoinHandle<Result<(), StoreError>>>,
    mirror_task: Option<JoinHandle<()>>,
    follower: JoinHandle<()>,
}

impl Process {
    pub(crate) async fn open(
        dir: &Path,
        owner: OwnerId,
        options: Options,
        provider: Arc<dyn Provider>,
        scripted: Arc<Scripted>,
    ) -> Self {
        let store = SqliteStore::open(&dir.join("jobs.db"), Arc::new(SystemClock));
        let store = Arc::new(store.unwrap());
        let providers = Providers::from([(Scripted::profile(), provider)]);
        let mirror = MirrorOptions {
            logs_dir: dir.join("conversation-logs"),
            state_dir: dir.join("mirror"),
            owner,
        };
        let mirror = Mirror::open(store.clone(), providers.clone(), mirror);
        let mirror = Arc::new(mirror.unwrap());
        let mut options = options;
        options.observers.add(mirror.clone());
        let stop = Shutdown::new();
        let (engine, follower) =
            Engine::new(store.clone(), providers, options, stop.clone()).await.unwrap();
        Self {
            engine,
            store,
            mirror,
            provider: scripted,
            stop,
            mirror_stop: CancellationToken::new(),
            worker: None,
            mirror_task: None,
            follower,
        }
    }

    pub(crate) fn follow(&mut self) {
        let (mirror, stop) = (self.mirror.clone(), self.mirror_stop.clone());
        self.mirror_task = Some(tokio::spawn(async move { mirror.run(stop).await }));
    }

    pub(crate) fn work(&mut self) {
        let worker = Worker::new(&self.engine, WorkerRole::TheQueue);
        self.worker = Some(tokio::spawn(worker.run(LeaveTime::Asked)));
    }

    pub(crate) async fn start(&self, new: NewJob) -> JobId {
        self.engine.start(new, None).await.unwrap().job.id
    }

    /// Waits until the provider has started the n-th run.
    pub(crate) async fn begun(&self, run: usize) {
        let begun = || self.provider.keys().len() >= run && self.provider.followers() > 0;
        eventually("the run begins", begun).await;
    }

    pub(crate) async fn end(&self, id: &JobId) -> Job {
        let reading = self.engine.poll(&owner(), id, MAX_WAIT).await.unwrap().unwrap();
        assert!(reading.job.state.kind().is_terminal(), "{:?}", reading.job.state);
        reading.job
    }

    pub(crate) async fn leave(self) {
        self.stop.ask();
        if let Some(worker) = self.worker {
            worker.await.unwrap().unwrap();
        }
        self.mirror_stop.cancel();
        if let Some(mirror_task) = self.mirror_task {
            mirror_task.await.unwrap();
        }
        self.follower.await.unwrap();
        self.store.close().await;
    }

    /// Aborts the follower without a last read of changes, as kill -9 would.
    pub(crate) async fn stop_following_at_once(&mut self) {
        let mirror_task = self.mirror_task.take().expect("it follows");
        mirror_task.abort();
        drop(mirror_task.await);
    }
}

/// The scripted provider, with the name of a model.
struct Modelled(Handle);

#[async_trait]
impl Provider for Modelled {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn recovery_semantics(&self, request: &Request) -> RecoverySemantics {
        self.0.recovery_semantics(request)
    }

    fn expected_model(&self, _request: &Request) -> Option<String> {
        Some(MODEL.to_owned())
    }

    async fn begin(&self, request: &Request, key: &str) -> Result<Box<dyn Run>, BeginError> {
        self.0.begin(request, key).await
    }

    async fn resume(
        &self,
        request: &Request,
        run: &RemoteRun,
    ) -> Result<Box<dyn Run>, ProviderError> {
        self.0.resume(request, run).await
    }

    async fn stop(&self, run: &RemoteRun) -> Result<StopOutcome, ProviderError> {
        self.0.stop(run).await
    }
}

pub(crate) fn ann() -> OwnerId {
    OwnerId::new("ann")
}

pub(crate) fn owner() -> Scope {
    Scope::Owner(ann())
}

pub(crate) fn new_id() -> ConversationId {
    ConversationId::new(uuid::Uuid::new_v4().simple().to_string())
}

/// A promised turn of a conversation.
pub(crate) fn turn(id: &ConversationId, question: &str) -> NewJob {
    NewJob {
        owner: ann(),
        conversation: Some(id.clone()),
        subject: None,
        profile: Scripted::profile(),
        workflow: "deep_research".to_owned(),
        title: question.to_owned(),
        request:
            json!({ "messages": [{ "role": "user", "content": question }], "effort": "medium" })
                .into(),
        priority: 0,
        visibility: Visibility::Promised,
        max_failures: 2,
        attempt_timeout: ONE_HOUR,
        life: None,
        keep: None,
    }
}

/// Reads a document; `None` if the file does not exist. An existing file must be complete.
pub(crate) fn document<T: DeserializeOwned>(path: &Path) -> Option<T> {
    match fs::read(path) {
        Ok(bytes) => Some(serde_json::from_slice(&bytes).unwrap_or_else(|error| {
            panic!("{}: {error}: {}", path.display(), String::from_utf8_lossy(&bytes))
        })),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => panic!("{}: {error}", path.display()),
    }
}

/// The contents of a conversation's folder.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) conversation: Option<ConversationFile>,
    pub(crate) status: Option<StatusFile>,
    pub(crate) job: Option<JobFile>,
}

impl Files {
    pub(crate) fn read(folder: &Path) -> Self {
        Self {
            conversation: document(&folder.join("conversation.json")),
            status: document(&folder.join("status.json")),
            job: document(&folder.join("job.json")),
        }
    }

    pub(crate) fn word(&self) -> Option<StatusWord> {
        self.status.as_ref().map(|status| status.status)
    }

    /// The messages, without their roles.
    pub(crate) fn said(&self) -> Vec<&str> {
        let messages = self.conversation.iter().flat_map(|said| &said.messages);
        messages.map(|message| message.content.as_str()).collect()
    }
}

/// Waits until the folder has the expected contents.
pub(crate) async fn until(folder: &Path, what: &str, wanted: impl Fn(&Files) -> bool) -> Files {
    eventually(what, || wanted(&Files::read(folder))).await;
    Files::read(folder)
}

/// Waits until the status is this one and the job file exists, or was removed, accordingly.
pub(crate) async fn until_status(folder: &Path, word: StatusWord) -> Files {
    let job_expected = matches!(word, StatusWord::Pending | StatusWord::InProgress);
    let wanted = |files: &Files| files.word() == Some(word) && files.job.is_some() == job_expected;
    until(folder, word.as_str(), wanted).await
}

/// Waits until an observable condition is true.
pub(crate) async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let waited = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(MAX_WAIT, waited).await.unwrap_or_else(|_| panic!("never: {what}"));
}
