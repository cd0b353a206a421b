//! Seeing other processes' commits: a connection that does nothing but look whether there were any.
//!
//! `PRAGMA data_version` costs microseconds and changes with every commit of another connection, ours
//! included; only then are the jobs read. Nobody looks while nobody waits.

use std::sync::{Arc, Mutex, PoisonError};

use outlast_core::{Changes, Rev, StoreError, Timestamp};
use rusqlite::Connection;

use super::database_file::Place;
use super::fault::{Fault, unavailable};
use super::reads;

/// Looks for commits.
pub(super) struct Watch(Arc<Mutex<Eye>>);

/// The state of the database when somebody last looked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    /// Numbers of two connections cannot be compared.
    connection: u64,
    version: i64,
}

/// The connection, if it is open.
struct Eye {
    place: Arc<Place>,
    connection: Option<Connection>,
    opened: u64,
    closed: bool,
}

impl Watch {
    /// Will look at the database at `place`.
    pub(super) fn new(place: Arc<Place>) -> Self {
        Self(Arc::new(Mutex::new(Eye { place, connection: None, opened: 0, closed: false })))
    }

    /// What changed after `after`, unless nothing was committed since `seen`.
    pub(super) async fn look(
        &self,
        after: Rev,
        seen: Option<Seen>,
        now: Timestamp,
    ) -> Result<Option<(Seen, Changes)>, StoreError> {
        let eye = self.0.clone();
        let task = tokio::task::spawn_blocking(move || {
            let mut eye = eye.lock().unwrap_or_else(PoisonError::into_inner);
            let looked = eye.look(after, seen, now);
            if looked.is_err() {
                eye.connection = None;
            }
            looked
        });
        task.await.map_err(unavailable)?.map_err(StoreError::from)
    }

    /// Looks no more.
    pub(super) fn close(&self) {
        let mut eye = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        eye.closed = true;
        eye.connection = None;
    }
}

impl Eye {
    fn look(
        &mut self,
        after: Rev,
        seen: Option<Seen>,
        now: Timestamp,
    ) -> Result<Option<(Seen, Changes)>, Fault> {
        if self.closed {
            return Err(unavailable("the store is closed").into());
        }
        self.place.check()?;
        let connection = match &self.connection {
            Some(connection) => connection,
            None => {
                self.opened += 1;
                self.connection.insert(self.place.connect()?)
            }
        };
        // Taken before the jobs are read: a commit in between is then seen twice rather than never.
        let version =
            connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        let now_seen = Seen { connection: self.opened, version };
        if seen == Some(now_seen) {
            return Ok(None);
        }
        Ok(Some((now_seen, reads::changes(connection, after, now)?)))
    }
}
