//! Reads the sources of a check: pages of the web, pages that were kept, and files of the library that wrote the report.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::super::address::AddressRefusal;
use super::super::fetch::{FetchError, Fetcher};
use super::super::markdown::CitedSource;
use super::super::page::{Block, Page, PdfReader};
use super::{Check, SourceStep};

/// The means of a check to read sources.
pub struct SourceReaders {
    /// Fetches pages.
    pub fetcher: Arc<Fetcher>,
    /// False if no page may be fetched: the report has text of local documents, and no person has agreed (J4).
    pub may_fetch: bool,
    /// Converts PDFs.
    pub pdf: Option<PdfReader>,
    /// Reads local files and kept pages.
    pub local: Option<LocalReader>,
}

/// Reads a source of a report that needs no request; `None` for sources that have to be fetched.
pub type LocalReader = Arc<dyn Fn(&CitedSource) -> Option<LocalSource> + Send + Sync>;

/// A source that is read without a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalSource {
    /// A page as the run that wrote the report has read it.
    Kept {
        /// The page.
        page: Page,
        /// The address that it was read from, if it is another one than the report cites.
        final_url: Option<String>,
        /// The status of the answer that brought it; `None` for a file.
        status: Option<u16>,
    },
    /// A file from which the report was written.
    Unchanged {
        /// The title.
        title: Option<String>,
        /// The text, the cited place first; empty if the file cannot be converted.
        blocks: Vec<Block>,
    },
    /// Another file now, or none; the sentence states which.
    Changed(String),
    /// A source that a rule forbids reading; the sentence names it.
    Refused(String),
}

/// Records the steps of a check, one for each address, so that a check that is begun again does not fetch them again.
pub trait StepRecorder: Send + Sync + 'static {
    /// Finds the steps of an address, or records that it is about to be fetched.
    fn begin(&self, address: &str) -> impl Future<Output = StepRecord> + Send;

    /// Records the steps of an address.
    fn end(&self, address: &str, steps: &[SourceStep]) -> impl Future<Output = ()> + Send;
}

/// The answer of a recorder.
#[derive(Clone, Debug, PartialEq)]
pub enum StepRecord {
    /// The address may be fetched.
    New,
    /// It was fetched before, with these results.
    Done(Vec<SourceStep>),
    /// The check must not go on.
    Stopped,
}

/// Records nothing.
impl StepRecorder for () {
    async fn begin(&self, _address: &str) -> StepRecord {
        StepRecord::New
    }

    async fn end(&self, _address: &str, _steps: &[SourceStep]) {}
}

impl Check {
    /// Reads and judges the sources without a step, and records each page that is fetched. `progress` is called with
    /// every step and the number of sources that are left.
    pub async fn run<R: StepRecorder>(
        &mut self,
        readers: SourceReaders,
        recorder: Arc<R>,
        mut progress: impl FnMut(&SourceStep, usize),
    ) {
        let left = self.pending().len();
        let local = self.read_local(&readers, left, &mut progress).await;
        let SourceReaders { fetcher, pdf, may_fetch, .. } = readers;
        let left = left - local;
        if !may_fetch {
            let refused = Err(FetchError::Refused(AddressRefusal::Consent));
            for (at, source) in self.pending().iter().enumerate() {
                let step = self.judge(source, &refused, None);
                progress(&step, left - at - 1);
                self.record(step);
            }
            return;
        }
        let mut by_address: HashMap<String, Vec<CitedSource>> = HashMap::new();
        for source in self.pending() {
            let address = source.url.split('#').next().unwrap_or("").to_owned();
            by_address.entry(address).or_default().push(source);
        }
        let mut left = left;
        let room = Arc::new(Semaphore::new(fetcher.at_once()));
        // The facts of a long page take many times its length in memory.
        let judging = Arc::new(Semaphore::new(1));
        let check = Arc::new(self.clone());
        let mut tasks = JoinSet::new();
        for (address, sources) in by_address {
            let (fetcher, pdf, room, check) =
                (fetcher.clone(), pdf.clone(), room.clone(), check.clone());
            let (recorder, judging) = (recorder.clone(), judging.clone());
            tasks.spawn(async move {
                let turn = fetcher.turn(&address).await;
                // Bodies that wait to be judged are limited as well as those that are being fetched.
                let _room = room.acquire_owned().await;
                match recorder.begin(&address).await {
                    StepRecord::New => {}
                    StepRecord::Done(steps) => return Ok(steps),
                    StepRecord::Stopped => return Ok(Vec::new()),
                }
                let fetched = fetcher.fetch_in_turn(&address, turn).await;
                let turn = judging.acquire_owned().await;
                let judge = move || {
                    let _turn = turn;
                    let judge = |source| check.judge(source, &fetched, pdf.as_ref());
                    sources.iter().map(judge).collect::<Vec<_>>()
                };
                let steps = tokio::task::spawn_blocking(judge).await?;
                recorder.end(&address, &steps).await;
                Ok::<_, tokio::task::JoinError>(steps)
            });
        }
        while let Some(done) = tasks.join_next().await {
            // A panic while judging one page must not lose the others: its source stays without a step.
            let Ok(Ok(steps)) = done else { continue };
            for step in steps {
                left -= 1;
                progress(&step, left);
                self.record(step);
            }
        }
    }

    /// Judges the sources that need no request, and returns their number. Nothing is recorded: reading them again is
    /// free.
    async fn read_local(
        &mut self,
        readers: &SourceReaders,
        mut left: usize,
        progress: &mut impl FnMut(&SourceStep, usize),
    ) -> usize {
        let Some(local) = &readers.local else { return 0 };
        let whole = Arc::new(self.clone());
        let mut read = 0;
        for source in self.pending() {
            let (local, check) = (Arc::clone(local), Arc::clone(&whole));
            let judge = move || local(&source).map(|found| check.judge_local(&source, found));
            // A text that breaks a parser must not take the other sources with it.
            let Ok(Some(step)) = tokio::task::spawn_blocking(judge).await else { continue };
            read += 1;
            left -= 1;
            progress(&step, left);
            self.record(step);
        }
        read
    }
}
