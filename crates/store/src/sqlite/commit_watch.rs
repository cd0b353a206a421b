//! Sees other processes' commits: a connection that only asks whether there were any.
//!
//! `PRAGMA data_version` costs microseconds and changes with every commit of another connection, our own writer's
//! included; only then are the jobs read. It is asked only while a caller waits for changes.

use std::sync::{Arc, Mutex, PoisonError};

use outlast_core::{Changes, Rev, StoreError, Timestamp};
use rusqlite::Connection;

use super::database_file::DatabaseFile;
use super::fault::{Fault, unavailable};
use super::{reads, sql};

/// Looks for commits.
pub(super) struct CommitWatch(Arc<Mutex<WatchConnection>>);

/// The state of the database at a look.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    /// Versions of two connections cannot be compared.
    connection: u64,
    version: i64,
}

/// The connection, if it is open.
struct WatchConnection {
    file: Arc<DatabaseFile>,
    connection: Option<Connection>,
    opened: u64,
    closed: bool,
}

impl CommitWatch {
    /// Will look at this database.
    pub(super) fn new(file: Arc<DatabaseFile>) -> Self {
        let watch = WatchConnection { file, connection: None, opened: 0, closed: false };
        Self(Arc::new(Mutex::new(watch)))
    }

    /// What changed after `after`, unless nothing was committed since `seen`.
    pub(super) async fn look(
        &self,
        after: Rev,
        seen: Option<Seen>,
        now: Timestamp,
    ) -> Result<Option<(Seen, Changes)>, StoreError> {
        let watch = self.0.clone();
        let task = tokio::task::spawn_blocking(move || {
            let mut watch = watch.lock().unwrap_or_else(PoisonError::into_inner);
            let looked = watch.look(after, seen, now);
            if looked.is_err() {
                watch.connection = None;
            }
            Ok(looked?)
        });
        task.await.map_err(unavailable)?
    }

    /// Closes the connection for good.
    pub(super) fn close(&self) {
        let mut watch = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        watch.closed = true;
        watch.connection = None;
    }
}

impl WatchConnection {
    fn look(
        &mut self,
        after: Rev,
        seen: Option<Seen>,
        now: Timestamp,
    ) -> Result<Option<(Seen, Changes)>, Fault> {
        if self.closed {
            return Err(unavailable("the store is closed").into());
        }
        self.file.check()?;
        if self.connection.is_none() {
            self.opened += 1;
        }
        let connection = match &self.connection {
            Some(connection) => connection,
            None => self.connection.insert(self.file.connect()?),
        };
        // Taken before the jobs are read: a commit in between is then seen twice rather than never.
        let version = sql::value(connection, "PRAGMA data_version", [])?;
        let now_seen = Seen { connection: self.opened, version };
        if seen == Some(now_seen) {
            return Ok(None);
        }
        Ok(Some((now_seen, reads::changes(connection, after, now)?)))
    }
}
