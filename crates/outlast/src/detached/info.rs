//! A detached worker's description of itself, in a file next to its socket: for people, and for ending the worker.

use std::fs;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use outlast_core::Timestamp;
use serde::{Deserialize, Serialize};

use super::identity::{SOCKET_SUFFIX, WORKER_PREFIX, WorkerIdentity};
use super::socket::{Message, SocketFolder};
use crate::config::Config;

const SUFFIX: &str = ".json";

/// A worker as it describes itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WorkerInfo {
    pub(crate) id: String,
    pub(crate) pid: u32,
    pub(crate) version: String,
    /// The configuration file, if there is one.
    pub(crate) config: Option<PathBuf>,
    pub(crate) started_at: Timestamp,
    pub(crate) log: PathBuf,
}

impl WorkerInfo {
    /// Returns the name of its socket.
    pub(crate) fn socket_name(&self) -> String {
        format!("{WORKER_PREFIX}{}{SOCKET_SUFFIX}", self.id)
    }
}

/// The description file; removed when this is dropped.
pub(super) struct InfoFile(PathBuf);

impl InfoFile {
    pub(super) fn write(
        folder: &SocketFolder,
        identity: &WorkerIdentity,
        config: &Config,
        now: Timestamp,
    ) -> std::io::Result<Self> {
        let info = WorkerInfo {
            id: identity.to_string(),
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            config: config.file.as_ref().map(|file| file.path.clone()),
            started_at: now,
            log: super::log::path(&config.data_dir),
        };
        let path = folder.beside(&identity.socket_name(), SUFFIX);
        let partial = path.with_extension("json.new");
        let mut options = fs::File::options();
        let file = options.create(true).write(true).truncate(true).mode(0o600).open(&partial)?;
        serde_json::to_writer(file, &info)?;
        fs::rename(partial, &path)?;
        Ok(Self(path))
    }
}

impl Drop for InfoFile {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.0));
    }
}

/// Returns the running workers of a store. Removes the files of killed ones.
pub(crate) fn list_living(folder: &SocketFolder) -> Vec<WorkerInfo> {
    let mut living = Vec::new();
    for name in folder.names().filter(|name| name.starts_with(WORKER_PREFIX)) {
        let path = folder.beside(&name, SUFFIX);
        match folder.send_or_remove(&name, Message::Look) {
            Ok(()) => living.extend(read(&path)),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                drop(fs::remove_file(path));
            }
            Err(_) => {}
        }
    }
    living.sort_by_key(|worker| worker.started_at);
    living
}

fn read(path: &Path) -> Option<WorkerInfo> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}
