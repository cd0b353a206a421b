//! Research over the user's own folders: offline, free, without an API key.
//!
//! Reports quote the files verbatim and say so; nothing here writes a sentence about the subject. The
//! index in the cache directory is optional: if it is lost, damaged or cannot be written, the search still
//! works.
//!
//! The library reads Markdown, plain text and HTML, and PDF and office files if their converters are installed.
//! A source is cited as `path:line`. A PDF has no lines to count, so it is cited as `path:pN`, where the page
//! is counted from the first, as viewers count. A document that is damaged, encrypted, contains only pictures,
//! or takes too long to convert is left out and counted; the others are still read.

mod run;
mod research;
mod reporter;
mod walk;
mod open;
mod skip;
mod convert;
mod clean;
mod tags;
mod document;
mod breaks;
mod markdown;
mod plain;
mod html;
mod entities;
mod pages;
mod words;
mod query;
mod index;
mod refresh;
mod rank;
mod sentences;
mod select;
mod cite;
mod cited;
mod statements;
mod note;
mod report;
mod passages;
mod files;

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use outlast_core::{
    BeginError, Clock, Cost, NanoUsd, Profile, Provider, ProviderError, ProviderErrorKind,
    RecoverySemantics, RemoteRun, Request, ResendPolicy, ResumePolicy, Run, StopOutcome,
};
use sha2::{Digest, Sha256};
use uuid::Uuid;

pub use self::cited::{CitedFile, CitedFiles, CitedPart, CitedPartKind};
pub use self::convert::{ConvertLimits, Converters};
pub use self::files::{LibraryFile, LibrarySearchError};
pub use self::passages::{PassageDocument, PassageText, RankedPassage, rank_passages};
use self::research::Research;
use self::run::LibraryRun;
use self::walk::Folder;

/// The options of a library.
pub struct LibraryOptions {
    /// The folders to search, including their subfolders.
    pub folders: Vec<PathBuf>,
    /// The machine that has the folders, if jobs are shared with other machines.
    pub machine: Option<String>,
    /// The directory of the index; created if it does not exist.
    pub cache_dir: PathBuf,
    /// The programs for PDF and office files.
    pub converters: Converters,
    /// The clock for the start time of runs.
    pub clock: Arc<dyn Clock>,
}

/// The reasons a library cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// No folder was given.
    #[error("a library needs at least one folder")]
    NoFolders,
    /// Nothing exists at this path.
    #[error("the library folder {} does not exist", .0.display())]
    Missing(PathBuf),
    /// The path is not a directory.
    #[error("the library folder {} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    /// The directory exists but cannot be read.
    #[error("the library folder {} cannot be read", .path.display())]
    Unreadable {
        /// The folder.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

/// A provider that searches the user's own folders.
#[derive(Clone)]
pub struct Library {
    folders: Arc<[Folder]>,
    hash: String,
    cache_dir: PathBuf,
    converters: Arc<Converters>,
    clock: Arc<dyn Clock>,
}

impl Library {
    /// The provider name in [`RemoteRun`].
    pub const NAME: &'static str = "library";

    /// Checks that every folder can be read; indexes nothing yet.
    pub fn new(options: LibraryOptions) -> Result<Self, LibraryError> {
        let mut paths = Vec::new();
        for folder in options.folders.iter().cloned() {
            paths.push(readable(folder)?);
        }
        paths.sort();
        paths.dedup();
        if paths.is_empty() {
            return Err(LibraryError::NoFolders);
        }
        let mut hasher = Sha256::new();
        hasher.update(options.machine.as_deref().unwrap_or_default());
        for path in &paths {
            hasher.update(path.as_os_str().as_encoded_bytes());
            hasher.update([0]);
        }
        let hash = hasher.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let folders = Folder::with_names(paths).into();
        let LibraryOptions { cache_dir, converters, clock, .. } = options;
        Ok(Self { folders, hash, cache_dir, converters: Arc::new(converters), clock })
    }

    /// The profile a worker must have to run this library's jobs: the same folders.
    pub fn profile(&self) -> Profile {
        Profile::new(format!("{} {}", Self::NAME, self.hash))
    }

    fn remote(&self) -> RemoteRun {
        RemoteRun {
            provider: Self::NAME.to_owned(),
            id: Uuid::new_v4().simple().to_string(),
            cursor: None,
            begun_at: self.clock.now(),
        }
    }
}

#[async_trait]
impl Provider for Library {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn recovery_semantics(&self, _request: &Request) -> RecoverySemantics {
        // Reading twice does no harm, and a run does not outlive its process, so after a crash it is simply
        // repeated.
        RecoverySemantics {
            resend: ResendPolicy::Idempotent,
            resume: ResumePolicy::Never,
            can_stop: true,
        }
    }

    fn expected_model(&self, _request: &Request) -> Option<String> {
        Some(report::MODEL.to_owned())
    }

    fn typical_cost(&self, _request: &Request) -> Cost {
        Cost::Reported(NanoUsd(0))
    }

    async fn begin(&self, request: &Request, _key: &str) -> Result<Box<dyn Run>, BeginError> {
        let ask = request.to_research()?.clone();
        let research = Research {
            folders: Arc::clone(&self.folders),
            cache: self.cache_dir.join(format!("{}.db", self.hash)),
            converters: Arc::clone(&self.converters),
            ask,
        };
        Ok(Box::new(LibraryRun::start(self.remote(), research)))
    }

    async fn resume(
        &self,
        _request: &Request,
        _run: &RemoteRun,
    ) -> Result<Box<dyn Run>, ProviderError> {
        let sentence = "a search of the library ends with its process; it will be repeated";
        Err(ProviderError::new(ProviderErrorKind::RunLost, sentence))
    }

    async fn stop(&self, _run: &RemoteRun) -> Result<StopOutcome, ProviderError> {
        // A run belongs to the worker that holds it and ends when it is dropped, so there is never one left to
        // stop.
        Ok(StopOutcome::Ended { cost: outlast_core::Cost::Unknown })
    }
}

/// Returns the canonical path of the folder if it can be listed.
fn readable(path: PathBuf) -> Result<PathBuf, LibraryError> {
    let canonical = match fs::canonicalize(&path) {
        Ok(canonical) => canonical,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(LibraryError::Missing(path));
        }
        Err(source) => return Err(LibraryError::Unreadable { path, source }),
    };
    if !canonical.is_dir() {
        return Err(LibraryError::NotADirectory(path));
    }
    match fs::read_dir(&canonical) {
        Ok(_) => Ok(canonical),
        Err(source) => Err(LibraryError::Unreadable { path, source }),
    }
}
