//! Checks of citations as runs: free, and each fetched source is a recorded step, so that a check goes on after a
//! crash without fetching a source again (J1).

mod files;
mod kept;
mod recorder;

use std::sync::Arc;

use async_trait::async_trait;
use outlast_core::{
    BeginError, Body, CheckRequest, Clock, Cost, NanoUsd, Output, Profile, Progress, Provider,
    ProviderError, ProviderErrorKind, RecoverySemantics, RemoteRun, Request, ResendPolicy,
    ResumePolicy, Run, RunJournal, Step, StopOutcome, Usage,
};
use outlast_sources::{
    Check, CitationCheck, CitedSource, FetchOptions, Fetcher, FetcherError, PdfReader, Report,
    SourceReaders,
};
use serde_json::json;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinHandle;

use self::files::file_reader;
pub use self::files::{LibraryAccess, LibraryFile, OpenLibrary};
use self::kept::kept_reader;
use self::recorder::JournalRecorder;

/// The number of checks that one process runs at a time, next to its other jobs: slow sites must not hold up research.
const AT_ONCE: usize = 2;

/// The name of the checker in a result, where others have a model.
const MODEL: &str = "text comparison";

/// The options of the checker.
pub struct CitationOptions {
    /// The rules of fetching.
    pub fetch: FetchOptions,
    /// The converter of PDFs.
    pub pdf: Option<PdfReader>,
    /// The files of the library.
    pub library: Option<LibraryAccess>,
    /// The clock that dates checks.
    pub clock: Arc<dyn Clock>,
}

/// Compares reports with the pages that they cite.
pub struct Citations {
    options: Arc<CitationOptions>,
    slots: Arc<Semaphore>,
}

impl Citations {
    /// Creates the checker of this process.
    pub fn new(options: CitationOptions) -> Self {
        Self { options: Arc::new(options), slots: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Returns the profile of its jobs: every process with checks can run them.
    pub fn profile() -> Profile {
        Profile::new(Profile::CITATIONS)
    }
}

#[async_trait]
impl Provider for Citations {
    fn name(&self) -> &'static str {
        Profile::CITATIONS
    }

    fn recovery_semantics(&self, _request: &Request) -> RecoverySemantics {
        // Fetching twice does no harm, and the journal prevents most of it. A run ends with its process.
        RecoverySemantics {
            resend: ResendPolicy::Idempotent,
            resume: ResumePolicy::Never,
            can_stop: true,
        }
    }

    fn expected_model(&self, _request: &Request) -> Option<String> {
        Some(MODEL.to_owned())
    }

    fn typical_cost(&self, _request: &Request) -> Cost {
        Cost::Reported(NanoUsd(0))
    }

    async fn begin(&self, request: &Request, key: &str) -> Result<Box<dyn Run>, BeginError> {
        let request = request.to_citation_check().map_err(BeginError::Refused)?.clone();
        let remote = RemoteRun {
            provider: Profile::CITATIONS.to_owned(),
            id: key.to_owned(),
            cursor: None,
            begun_at: self.options.clock.now(),
        };
        let (options, slots) = (Arc::clone(&self.options), Arc::clone(&self.slots));
        Ok(Box::new(CheckRun {
            remote,
            state: RunState::New { request, options, slots, journal: None },
        }))
    }

    async fn resume(
        &self,
        _request: &Request,
        _run: &RemoteRun,
    ) -> Result<Box<dyn Run>, ProviderError> {
        let sentence = "a check of citations ends with its process; it will be continued";
        Err(ProviderError::new(ProviderErrorKind::RunLost, sentence))
    }

    async fn stop(&self, _run: &RemoteRun) -> Result<StopOutcome, ProviderError> {
        // A run belongs to the worker that holds it and ends when it is dropped.
        Ok(StopOutcome::Ended { cost: Cost::Reported(NanoUsd(0)) })
    }
}

/// A check that is under way.
struct CheckRun {
    remote: RemoteRun,
    state: RunState,
}

enum RunState {
    New {
        request: CheckRequest,
        options: Arc<CitationOptions>,
        slots: Arc<Semaphore>,
        journal: Option<RunJournal>,
    },
    Running {
        steps: mpsc::UnboundedReceiver<Result<Step, ProviderError>>,
        work: AbortOnDrop,
    },
}

/// A task that ends with its run.
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[async_trait]
impl Run for CheckRun {
    fn remote(&self) -> RemoteRun {
        self.remote.clone()
    }

    fn set_journal(&mut self, given: RunJournal) {
        if let RunState::New { journal, .. } = &mut self.state {
            *journal = Some(given);
        }
    }

    async fn next(&mut self) -> Result<Step, ProviderError> {
        if let RunState::New { request, options, slots, journal } = &mut self.state {
            let (sender, steps) = mpsc::unbounded_channel();
            let (request, journal) = (std::mem::take(request), journal.take());
            let work = work(request, Arc::clone(options), Arc::clone(slots), journal, sender);
            self.state = RunState::Running { steps, work: AbortOnDrop(tokio::spawn(work)) };
        }
        let RunState::Running { steps, work: AbortOnDrop(_) } = &mut self.state else {
            return Err(failed());
        };
        steps.recv().await.unwrap_or_else(|| Err(failed()))
    }
}

fn failed() -> ProviderError {
    let sentence =
        "the check of citations failed unexpectedly; the log of the server has the details";
    ProviderError::new(ProviderErrorKind::RunFailed, sentence)
}

type Steps = mpsc::UnboundedSender<Result<Step, ProviderError>>;

/// Runs the check, and sends its progress and its end. A run that is no longer followed is dropped.
async fn work(
    request: CheckRequest,
    options: Arc<CitationOptions>,
    slots: Arc<Semaphore>,
    journal: Option<RunJournal>,
    steps: Steps,
) {
    if slots.available_permits() == 0 {
        report(&steps, 0, "Waiting for other checks");
    }
    // The semaphore is never closed.
    let _slot = slots.acquire().await;
    let end = match check(request, &options, journal, &steps).await {
        Ok(done) => Ok(Step::Done { output: Box::new(output(&done)), raw: None }),
        Err(error) => Err(error),
    };
    let _ = steps.send(end);
}

async fn check(
    request: CheckRequest,
    options: &CitationOptions,
    journal: Option<RunJournal>,
    steps: &Steps,
) -> Result<CitationCheck, ProviderError> {
    let library = options.library.clone();
    let may_fetch = !request.stays_local;
    let kept = kept_reader(&request, journal.as_ref()).await;
    let parse = move || {
        let files = file_reader(&request, library.as_ref());
        let CheckRequest { report, sources, .. } = request;
        let sources = sources.into_iter();
        let sources = sources.map(|it| CitedSource { number: it.number, url: it.url }).collect();
        (Check::new(Report::with_sources(&report, sources)), files)
    };
    // A long report takes a while.
    let (mut check, files) = tokio::task::spawn_blocking(parse).await.map_err(|_| failed())?;
    let fetcher = Fetcher::new(options.fetch.clone()).map_err(misconfigured)?;
    let all = check.pending().len();
    report(steps, 0, format!("0 of {all} sources"));
    let recorder = Arc::new(JournalRecorder::new(journal));
    let progress = |_: &_, left: usize| {
        let done = all.saturating_sub(left);
        let percent = (done * 95).checked_div(all).and_then(|percent| u8::try_from(percent).ok());
        report(steps, percent.unwrap_or(0), format!("{done} of {all} sources"));
    };
    let fetcher = Arc::new(fetcher);
    let local = kept.or(files);
    let readers = SourceReaders { fetcher, may_fetch, pdf: options.pdf.clone(), local };
    check.run(readers, Arc::clone(&recorder), progress).await;
    if recorder.was_stopped() {
        let sentence = "the check was stopped: its job belongs to another worker";
        return Err(ProviderError::new(
            ProviderErrorKind::Unavailable { retry_after: None },
            sentence,
        ));
    }
    let checked_at = options.clock.now().to_string();
    tokio::task::spawn_blocking(move || check.finish(checked_at)).await.map_err(|_| failed())
}

fn misconfigured(error: FetcherError) -> ProviderError {
    let sentence = "sources cannot be fetched: check network.proxy";
    super::with_detail(ProviderErrorKind::Misconfigured, sentence, error.to_string())
}

fn report(steps: &Steps, percent: u8, message: impl Into<String>) {
    let progress = Progress { percent: Some(percent), message: message.into() };
    let _ = steps.send(Ok(Step::Progress(progress)));
}

/// Returns the result of the job: the summary as text, the check in its structured form.
fn output(done: &CitationCheck) -> Output {
    Output {
        body: Body::Tool {
            content: vec![json!({ "type": "text", "text": done.summary() })],
            structured: Some(json!(done)),
            is_error: false,
        },
        model: Some(MODEL.to_owned()),
        usage: Usage::default(),
        cost: Cost::Reported(NanoUsd(0)),
    }
}
