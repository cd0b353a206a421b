//! The transaction of the writer: the steps of several callers write to it, each in its own savepoint.

use outlast_core::{Change, Clock, Job, Rev, Timestamp};
use rusqlite::Connection;

use super::fault::Fault;
use super::sql;
use crate::columns;

/// The open transaction, as a command sees it.
pub(super) struct Tx<'a> {
    pub(super) connection: &'a Connection,
    clock: &'a dyn Clock,
    pub(super) rev: Option<Rev>,
    /// The changes of this transaction, each with the job's number of arrival.
    pub(super) changes: Vec<(i64, Change)>,
}

impl<'a> Tx<'a> {
    /// Wraps the transaction that was begun on this connection.
    pub(super) fn new(connection: &'a Connection, clock: &'a dyn Clock) -> Self {
        Self { connection, clock, rev: None, changes: Vec::new() }
    }

    /// The current time.
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Records the state of a job after this commit.
    pub(super) fn record_change(&mut self, seq: i64, job: &Job) {
        self.changes.push((seq, Change::from_job(job)));
    }

    /// Takes the changes of this transaction, in the order in which readers see them, and their number.
    pub(super) fn take_changes(&mut self) -> Option<(Rev, Vec<Change>)> {
        let rev = self.rev?;
        self.changes.sort_by_key(|(seq, _)| *seq);
        Some((rev, self.changes.drain(..).map(|(_, change)| change).collect()))
    }

    /// The number of this commit's changes, assigned at the first change.
    pub(super) fn rev(&mut self) -> Result<Rev, Fault> {
        if let Some(rev) = self.rev {
            return Ok(rev);
        }
        // Two plain statements: RETURNING would create and drop a temporary table each time.
        sql::execute(self.connection, sql!(sqlite::tx::next_rev), [])?;
        let select = sql!(sqlite::tx::rev);
        let rev = columns::rev(sql::value(self.connection, select, [])?);
        self.rev = Some(rev);
        Ok(rev)
    }
}
