//! A store with one claimed job, and the researcher that works on it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{
    Body, ConversationId, JournalStep, Lease, NanoUsd, NewJob, NewStep, Output, Provider,
    ProviderError, Run, RunJournal, Scope, Settlement, Source, Step, StepEnd, StepStart, StepState,
    Store, StoreError, StoreMethod, StoreWrapper,
};
use outlast_library::{ConvertLimits, Converters, Library, LibraryOptions};
use outlast_researcher::{Prices, Researcher, SearchBackend, Settings};
use outlast_simulator::{Options, Simulator};
use outlast_sources::FetchOptions;
use outlast_store::MemoryStore;
use outlast_testkit::store_suite::{Fixture, a_job, a_report};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// A question that the scripted web can answer.
pub(crate) const QUESTION: &str = "How have heat pumps developed?";

/// A researcher's job and the servers that it uses.
pub(crate) struct Bench {
    pub(crate) simulator: Arc<Simulator>,
    pub(crate) fixture: Fixture,
    pub(crate) lease: Lease,
    pub(crate) request: Value,
    pub(crate) model_lane: String,
    pub(crate) search_lane: String,
    pub(crate) prices: Prices,
    pub(crate) max_resend: NanoUsd,
    pub(crate) patience: Duration,
    /// The address of the model server, if it is not the simulator's.
    pub(crate) model_url: Option<String>,
    /// The address of the search service, if it is not the simulator's.
    pub(crate) search_url: Option<String>,
    /// The folder to search instead of the web.
    pub(crate) library: Option<PathBuf>,
    stop: Arc<Stop>,
}

/// The point at which the process "dies": the n-th record of a step.
#[derive(Default)]
struct Stop {
    left: AtomicI64,
    reached: Notify,
}

/// A store that never returns from the n-th record of a step.
struct StoppingStore {
    inner: Arc<dyn Store>,
    stop: Arc<Stop>,
}

impl StoppingStore {
    /// Counts down; the last count hangs, as a process does that was killed.
    async fn count(&self) {
        if self.stop.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.stop.reached.notify_one();
            std::future::pending::<()>().await;
        }
    }
}

#[async_trait]
impl StoreWrapper for StoppingStore {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    fn after(&self, _method: StoreMethod, _error: Option<&StoreError>) {}

    async fn begin_step(&self, lease: &Lease, step: &NewStep) -> Result<StepStart, StoreError> {
        self.count().await;
        let begun = self.inner.begin_step(lease, step).await;
        self.count().await;
        begun
    }

    async fn end_step(&self, lease: &Lease, key: &str, end: &StepEnd) -> Result<(), StoreError> {
        self.count().await;
        let ended = self.inner.end_step(lease, key, end).await;
        self.count().await;
        ended
    }
}

/// Returns a turn of the conversation.
fn a_turn(request: &Value) -> NewJob {
    let conversation = Some(ConversationId::new("conversation-1"));
    NewJob { conversation, request: request.clone().into(), ..a_job() }
}

impl Bench {
    /// Starts the servers with these faults. The job asks for little.
    pub(crate) async fn new(model_lane: &str, search_lane: &str) -> Self {
        let simulator = Simulator::start(Options::default()).await.unwrap();
        Self::with(Arc::new(simulator), model_lane, search_lane).await
    }

    /// Uses running servers.
    pub(crate) async fn with(
        simulator: Arc<Simulator>,
        model_lane: &str,
        search_lane: &str,
    ) -> Self {
        let fixture = Fixture::new(|clock, _| Arc::new(MemoryStore::new(clock)));
        let request =
            json!({ "messages": [{ "role": "user", "content": QUESTION }], "effort": "low" });
        fixture.add(a_turn(&request)).await;
        let lease = fixture.claim().await.lease;
        Self {
            simulator,
            fixture,
            lease,
            request,
            model_lane: model_lane.to_owned(),
            search_lane: search_lane.to_owned(),
            prices: Prices::FREE,
            max_resend: NanoUsd(0),
            patience: Settings::PATIENCE,
            model_url: None,
            search_url: None,
            library: None,
            stop: Arc::default(),
        }
    }

    /// Ends the job, and claims a job for the next question of its conversation.
    pub(crate) async fn follow_up(&mut self, report: &str, question: &str) {
        let settlement = Settlement::Succeed { output: a_report().into(), raw: None };
        self.fixture.store.settle(&self.lease, settlement).await.unwrap();
        let message = |role: &str, content: &str| json!({ "role": role, "content": content });
        let messages =
            [message("user", QUESTION), message("assistant", report), message("user", question)];
        self.request = json!({ "messages": messages, "effort": "low" });
        self.fixture.add(a_turn(&self.request)).await;
        self.lease = self.fixture.claim().await.lease;
    }

    fn search_backend(&self) -> SearchBackend {
        let Some(folder) = &self.library else {
            let url = match &self.search_url {
                Some(url) => url.clone(),
                None => format!("{}/searxng/{}", self.simulator.url(), self.search_lane),
            };
            return SearchBackend::Searxng { url, api_key: None };
        };
        let options = LibraryOptions {
            folders: vec![folder.clone()],
            machine: None,
            cache_dir: folder.join(".cache"),
            converters: Converters {
                launcher: Vec::new(),
                search_path: "".into(),
                pdftotext: "none".into(),
                pandoc: "none".into(),
                limits: ConvertLimits::default(),
            },
            clock: self.fixture.clock.clone(),
        };
        SearchBackend::Library(Library::new(options).unwrap())
    }

    fn researcher(&self) -> Researcher {
        let url = self.simulator.url();
        let settings = Settings {
            model_url: match &self.model_url {
                Some(url) => url.clone(),
                None => format!("{url}/llm/{}/v1", self.model_lane),
            },
            model: "scripted".to_owned(),
            api_key: None,
            context_tokens: 0,
            parallel: 0,
            prices: self.prices,
            search: self.search_backend(),
            max_resend: self.max_resend,
            max_pages: 0,
            max_tokens: 0,
            max_minutes: 30,
            patience: self.patience,
            fetch: FetchOptions { allow_private: true, ..FetchOptions::default() },
            pdf: None,
            proxy: None,
        };
        Researcher::new(settings, self.fixture.clock.clone()).unwrap()
    }

    async fn run(&self) -> Box<dyn Run> {
        let researcher = self.researcher();
        let request = self.request.clone().into();
        let mut run = researcher.begin(&request, "run-1").await.unwrap();
        let store =
            StoppingStore { inner: Arc::clone(&self.fixture.store), stop: Arc::clone(&self.stop) };
        run.set_journal(RunJournal::new(Arc::new(store), self.lease.clone(), u64::MAX));
        run
    }

    /// Runs to the end and returns the result with the messages of its progress.
    pub(crate) async fn try_finish(&self) -> (Result<Output, ProviderError>, Vec<String>) {
        let mut run = self.run().await;
        let mut messages = Vec::new();
        loop {
            match run.next().await {
                Ok(Step::Progress(progress)) => messages.push(progress.message),
                Ok(Step::Moved) => {}
                Ok(Step::Wait | Step::Cancel) => panic!("nothing was asked"),
                Ok(Step::Done { output, .. }) => return (Ok(*output), messages),
                Err(error) => return (Err(error), messages),
            }
        }
    }

    /// Runs to the step with which the run stops.
    pub(crate) async fn stop(&self) -> Result<Step, ProviderError> {
        let mut run = self.run().await;
        loop {
            match run.next().await {
                Ok(Step::Progress(_) | Step::Moved) => {}
                end => return end,
            }
        }
    }

    /// Runs to the end, which must be a report.
    pub(crate) async fn finish(&self) -> (String, Vec<Source>) {
        let (output, _) = self.try_finish().await;
        let Body::Report { text, sources, .. } = output.unwrap().body else { panic!("a report") };
        (text, sources)
    }

    /// Runs until the n-th record of a step, where the run is dropped. Returns false if it ended before.
    pub(crate) async fn run_until(&self, record: i64) -> bool {
        self.stop.left.store(record, Ordering::SeqCst);
        let mut run = self.run().await;
        let was_stopped = loop {
            tokio::select! {
                () = self.stop.reached.notified() => break true,
                step = run.next() => match step {
                    Ok(Step::Done { .. }) => break false,
                    Ok(_) => {}
                    Err(error) => panic!("{error:?}"),
                },
            }
        };
        drop(run);
        self.stop.left.store(0, Ordering::SeqCst);
        was_stopped
    }

    /// Runs until a step of this kind is on its way, and ends the run as a worker does that shuts down.
    pub(crate) async fn wind_down_at(&self, kind: &str) {
        let mut run = self.run().await;
        loop {
            tokio::select! {
                step = run.next() => drop(step.unwrap()),
                () = tokio::time::sleep(Duration::from_millis(20)) => {
                    let is_sent = |step: &JournalStep| step.kind == kind && step.state == StepState::Sending;
                    if self.steps().await.iter().any(is_sent) {
                        return run.wind_down(Duration::from_secs(30)).await;
                    }
                }
            }
        }
    }

    /// The recorded steps.
    pub(crate) async fn steps(&self) -> Vec<JournalStep> {
        self.fixture.store.steps(&Scope::Operator, &self.lease.job).await.unwrap()
    }

    /// The answers that were given twice to one request of this bench.
    pub(crate) fn bought_again(&self) -> u64 {
        let calls = self.simulator.calls();
        let names = std::collections::BTreeSet::from([&self.model_lane, &self.search_lane]);
        let lanes = names.into_iter().map(|lane| calls.lanes.get(lane));
        lanes.flatten().map(outlast_simulator::Lane::bought_again).sum()
    }
}
