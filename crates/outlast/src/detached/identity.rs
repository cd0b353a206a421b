//! The identity of a detached worker. It runs the jobs of processes with the same store, configuration file,
//! environment and program. So no project runs the commands of another, and no worker continues with a program or a key
//! that was replaced.

use std::fmt;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use crate::config::{Config, PartsDigest, Secret, StoreUrl};

/// The number of hexadecimal digits of the digest that are used: the path of a socket is short.
const DIGITS: usize = 16;

/// The digest of everything that decides the behaviour of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkerIdentity(String);

impl WorkerIdentity {
    /// Computes the identity of a worker with this configuration and these folders, if there are any.
    pub(crate) fn of(config: &Config, library: &[PathBuf]) -> Self {
        let mut digest = PartsDigest::default();
        digest.add(config.worker_digest());
        match &config.store {
            StoreUrl::Memory => {}
            StoreUrl::Sqlite(path) => digest.add_absolute(path),
            StoreUrl::Postgres(Secret(address)) => digest.add(address),
        }
        for folder in library {
            digest.add_absolute(folder);
        }
        digest.add(env!("CARGO_PKG_VERSION"));
        let program = std::env::current_exe().and_then(std::fs::metadata);
        if let Ok(program) = program {
            digest.add(program.size().to_le_bytes());
            digest.add(program.mtime().to_le_bytes());
            digest.add(program.mtime_nsec().to_le_bytes());
        }
        Self(digest.text().chars().take(DIGITS).collect())
    }

    /// Returns the name of a worker's socket.
    pub(crate) fn socket_name(&self) -> String {
        format!("{WORKER_PREFIX}{self}{SOCKET_SUFFIX}")
    }
}

/// The prefix of the names of workers' sockets.
pub(super) const WORKER_PREFIX: &str = "worker-";
/// The prefix of the names of fronts' sockets.
pub(super) const FRONT_PREFIX: &str = "front-";
/// The suffix of the names of sockets.
pub(super) const SOCKET_SUFFIX: &str = ".sock";

impl fmt::Display for WorkerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
