//! The digest that identifies a detached worker: all configured values that decide its behaviour. Two processes with
//! the same digest may leave their jobs to the same worker.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use outlast_core::Clock as _;
use outlast_store::SystemClock;
use sha2::{Digest as _, Sha256};

use super::file::ConfigFile;
use super::layers::Layers;
use super::settings::{self, Setting};
use super::workflows::{ProgramDefinition, Upstream, Workflow, WorkflowAction};
use super::{Config, Notify, Secret};

/// Settings that a worker does not use, and those that locate the store, which already identifies a worker.
const NOT_OF_A_WORKER: [&Setting; 8] = [
    settings::SERVER_TOOLS,
    settings::SERVER_ASYNC_MODE,
    settings::SERVER_FIXED_WORKFLOW,
    settings::SERVER_LONG_POLL_TIMEOUT,
    settings::SERVER_DETACH,
    settings::LIBRARY_AGENTS_MAY_SHARE,
    settings::STORE_URL,
    settings::STORE_DATA_DIR,
];

/// The age from which a file's stamp is trusted.
const SETTLED_SECONDS: i64 = 2;

/// Parts of a text, each with its length, so that no two lists of parts have the same digest.
#[derive(Default)]
pub(crate) struct PartsDigest(Sha256);

impl PartsDigest {
    pub(crate) fn add(&mut self, part: impl AsRef<[u8]>) {
        let part = part.as_ref();
        self.0.update((part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    /// Adds a path as every process of this machine knows it.
    pub(crate) fn add_absolute(&mut self, path: &Path) {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        self.add(path.as_os_str().as_encoded_bytes());
    }

    /// Returns the digest in hexadecimal digits.
    pub(crate) fn text(self) -> String {
        self.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Returns the digest of the settings, from any layer, and of the file.
pub(super) fn of_settings(layers: &Layers) -> String {
    let mut digest = PartsDigest::default();
    if let Some(file) = &layers.file {
        let path = file.path.canonicalize().unwrap_or_else(|_| file.path.clone());
        digest.add(path.as_os_str().as_encoded_bytes());
        digest.add(&file.text);
    }
    for setting in settings::SETTINGS.iter().filter(|setting| !NOT_OF_A_WORKER.contains(setting)) {
        digest.add(setting.key);
        digest.add(layers.find(setting).text);
    }
    digest.text()
}

/// The configuration file as read by this process.
#[derive(Clone, Debug)]
pub(crate) struct FileRead {
    pub(crate) path: PathBuf,
    digest: String,
    /// The stamp with which the file was last found unchanged: one that still has it need not be read again.
    unchanged: Arc<Mutex<Option<FileStamp>>>,
}

/// The marks of a file that change with its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileStamp {
    inode: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileStamp {
    fn of(path: &Path) -> io::Result<Self> {
        let file = fs::metadata(path)?;
        Ok(Self {
            inode: (file.dev(), file.ino()),
            size: file.size(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        })
    }

    /// Returns true if a later write is certain to give another stamp: a write within the same tick of the file
    /// system's clock may not.
    fn is_settled(&self) -> bool {
        let last = self.modified.0.max(self.changed.0);
        last + SETTLED_SECONDS < SystemClock.now().as_millis() / 1000
    }
}

impl FileRead {
    pub(super) fn of(file: &ConfigFile) -> Self {
        let path = std::path::absolute(&file.path).unwrap_or_else(|_| file.path.clone());
        Self { path, digest: of_text(file.text.as_bytes()), unchanged: Arc::default() }
    }

    /// Returns true while the file's content is unchanged. A file that cannot be read counts as unchanged, a missing
    /// one does not.
    pub(crate) fn is_current(&self) -> bool {
        let stamp = FileStamp::of(&self.path).ok();
        let mut unchanged = self.unchanged.lock().unwrap_or_else(PoisonError::into_inner);
        if stamp.is_some() && *unchanged == stamp {
            return true;
        }
        match fs::read(&self.path) {
            Ok(text) if of_text(&text) == self.digest => {
                *unchanged = stamp.filter(FileStamp::is_settled);
                true
            }
            Ok(_) => false,
            Err(error) => error.kind() != ErrorKind::NotFound,
        }
    }
}

fn of_text(text: &[u8]) -> String {
    let mut digest = PartsDigest::default();
    digest.add(text);
    digest.text()
}

impl Config {
    /// Returns the digest of the settings, and of the environment variables that commands and other servers get.
    pub(crate) fn worker_digest(&self) -> String {
        let mut digest = PartsDigest::default();
        digest.add(&self.settings_digest);
        for folder in &self.library {
            digest.add_absolute(folder);
        }
        digest.add(&self.search_path);
        for Workflow { work, .. } in &self.workflows {
            match work {
                WorkflowAction::Command { program, steps, .. } => {
                    add_program(&mut digest, program);
                    if *steps {
                        digest.add("steps");
                    }
                }
                WorkflowAction::Tool(_) => {}
            }
        }
        for (name, upstream) in &self.upstreams {
            digest.add(name);
            match upstream {
                Upstream::Program(program) => add_program(&mut digest, program),
                Upstream::Url { headers, .. } => {
                    for (name, Secret(value)) in headers {
                        digest.add(name);
                        digest.add(value);
                    }
                }
            }
        }
        if let Some(Notify::Command(program)) = &self.notify {
            add_program(&mut digest, program);
        }
        digest.text()
    }
}

fn add_program(digest: &mut PartsDigest, program: &ProgramDefinition) {
    digest.add(program.cwd.as_os_str().as_encoded_bytes());
    for (name, value) in &program.environment.0 {
        digest.add(name);
        digest.add(value);
    }
}
