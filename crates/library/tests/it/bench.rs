//! A library for a test, with its folders and answers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outlast_core::{
    Body, Message, Output, Progress, Provider, ResearchKind, ResearchRequest, Role, Run, Source,
    Step,
};
use outlast_library::{ConvertLimits, Converters, Library, LibraryOptions};
use outlast_testkit::clock::ManualClock;
use tempfile::TempDir;

/// The maximum time of every wait in these tests.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// A folder for the files and a cache next to it.
pub(crate) struct Bench {
    root: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("books")).unwrap();
        Self { root }
    }

    pub(crate) fn with(files: &[(&str, &str)]) -> Self {
        let bench = Self::new();
        for (name, text) in files {
            bench.write(name, text);
        }
        bench
    }

    pub(crate) fn books(&self) -> PathBuf {
        self.root.path().join("books")
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.root.path().join("cache")
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.books().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(crate) fn library(&self) -> Library {
        library(&[self.books()], &self.cache())
    }

    pub(crate) async fn ask(&self, question: &str) -> Report {
        ask(&self.library(), &research(question)).await
    }
}

pub(crate) fn library(folders: &[PathBuf], cache: &Path) -> Library {
    open(folders, cache).unwrap()
}

pub(crate) fn open(
    folders: &[PathBuf],
    cache: &Path,
) -> Result<Library, outlast_library::LibraryError> {
    converting(folders, cache, converters())
}

/// The installed `pdftotext`, and a fake `pandoc` that does what the files say.
pub(crate) fn converters() -> Converters {
    Converters {
        launcher: Vec::new(),
        search_path: "/usr/local/bin:/usr/bin:/bin".into(),
        pdftotext: "pdftotext".into(),
        pandoc: Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/converters/pandoc"),
        limits: ConvertLimits::default(),
    }
}

pub(crate) fn converting(
    folders: &[PathBuf],
    cache: &Path,
    converters: Converters,
) -> Result<Library, outlast_library::LibraryError> {
    Library::new(LibraryOptions {
        machine: None,
        folders: folders.to_vec(),
        cache_dir: cache.to_owned(),
        converters,
        clock: Arc::new(ManualClock::default()),
    })
}

pub(crate) fn research(question: &str) -> ResearchRequest {
    let message = Message { role: Role::User, content: question.to_owned() };
    ResearchRequest { messages: vec![message], ..ResearchRequest::default() }
}

pub(crate) fn of_kind(kind: ResearchKind, question: &str) -> ResearchRequest {
    ResearchRequest { kind, ..research(question) }
}

/// The answer to a question.
pub(crate) struct Report {
    pub(crate) text: String,
    pub(crate) sources: Vec<Source>,
    pub(crate) progress: Vec<Progress>,
    pub(crate) output: Output,
}

impl Report {
    /// The files of the sources, in order.
    pub(crate) fn files(&self) -> Vec<&str> {
        self.sources.iter().map(|source| source.url.rsplit_once(':').unwrap().0).collect()
    }
}

pub(crate) async fn begin(library: &Library, ask: &ResearchRequest) -> Box<dyn Run> {
    library.begin(&serde_json::to_value(ask).unwrap().into(), "key").await.unwrap()
}

pub(crate) async fn ask(library: &Library, ask: &ResearchRequest) -> Report {
    let mut run = begin(library, ask).await;
    let mut progress = Vec::new();
    loop {
        let step = tokio::time::timeout(LIMIT, run.next()).await.expect("in time").unwrap();
        match step {
            Step::Progress(seen) => progress.push(seen),
            Step::Moved | Step::Wait | Step::Cancel => panic!("a library run has one step"),
            Step::Done { output, raw } => {
                assert_eq!(raw, None);
                let Body::Report { text, sources, .. } = output.body.clone() else {
                    panic!("no report")
                };
                return Report { text, sources, progress, output: *output };
            }
        }
    }
}
