//! An SQLite file as the source or the target of a copy.

use std::fs;
use std::path::Path;

use async_trait::async_trait;
use outlast_core::{LedgerRow, StoreError};
use rusqlite::{Connection, TransactionBehavior};

use super::fault::Fault;
use super::mark::{self, LockedMarkFile};
use super::open::{self, ConnectionPurpose};
use super::restore::sole_connection;
use super::rows::{self, FirstState, SaveScope, StoredRow};
use super::tx::Tx;
use super::{SqliteFile, bodies, check, identities, journal, keys, ledger, search, sql};
use crate::SystemClock;
use crate::columns::{Columns as _, to_signed};
use crate::copy_side::{
    BATCH_JOBS, BATCH_ROWS, CopyRefusal, CopySide, IS_PARTIAL, JobCounts, WholeJob,
};
use crate::unavailable;

/// The name of the entry for the store whose jobs are being copied here.
const COPYING: &str = "copying";

/// Refuses the target of an incomplete copy.
pub(super) fn refuse_partial(connection: &Connection) -> Result<(), StoreError> {
    match source(connection)? {
        Some(_) => Err(unavailable(IS_PARTIAL)),
        None => Ok(()),
    }
}

fn source(connection: &Connection) -> Result<Option<i64>, Fault> {
    sql::optional(connection, sql!(sqlite::transfer::source), [COPYING])
}

/// A file that no other process can use.
pub(crate) struct SqliteSide {
    connection: Connection,
    mark: LockedMarkFile,
    id: i64,
}

impl SqliteSide {
    /// Opens a file as the source of a copy. The file is not changed.
    pub(crate) fn source(store: SqliteFile<'_>) -> Result<Self, CopyRefusal> {
        let path = store.path;
        if !super::is_there(path)? {
            return Err(CopyRefusal::Missing);
        }
        let mark = take_mark(store)?;
        let (connection, _) = open::look(path)?;
        refuse_old(&connection, path)?;
        check::refuse_damaged(&connection)?;
        mark::refuse_outdated(&connection, mark.read())?;
        mark::refuse_outdated(&connection, mark.read_second(&connection)?)?;
        Self::with(connection, mark)
    }

    /// Opens or creates a file as the target of a copy.
    pub(crate) fn target(store: SqliteFile<'_>) -> Result<Self, CopyRefusal> {
        let path = store.path;
        open::make_files(path)?;
        let is_new = fs::metadata(path).map_err(unavailable)?.len() == 0;
        let mark = if is_new {
            LockedMarkFile::alone(store)?.ok_or(CopyRefusal::InUse)?
        } else {
            take_mark(store)?
        };
        if !is_new {
            refuse_old(&open::connect(path, ConnectionPurpose::Read)?, path)?;
        }
        let connection = open::prepare(path, None)?;
        mark::refuse_outdated(&connection, mark.read())?;
        mark::refuse_outdated(&connection, mark.read_second(&connection)?)?;
        Self::with(connection, mark)
    }

    fn with(connection: Connection, mark: LockedMarkFile) -> Result<Self, CopyRefusal> {
        let reached =
            mark::read_reached(&connection)?.ok_or_else(|| unavailable("it has no number"))?;
        Ok(Self { connection, mark, id: reached.store })
    }
}

/// Locks out all other processes.
fn take_mark(store: SqliteFile<'_>) -> Result<LockedMarkFile, CopyRefusal> {
    let mark = LockedMarkFile::alone(store)?.ok_or(CopyRefusal::InUse)?;
    sql::close(sole_connection(store.path)?.ok_or(CopyRefusal::InUse)?)?;
    Ok(mark)
}

fn refuse_old(connection: &Connection, path: &Path) -> Result<(), CopyRefusal> {
    let moment = connection.unchecked_transaction()?;
    match open::schema(&moment, path)? {
        (schema, newest) if schema < newest => Err(CopyRefusal::OldSchema { schema, newest }),
        _ => Ok(()),
    }
}

impl From<Fault> for CopyRefusal {
    fn from(fault: Fault) -> Self {
        Self::Store(fault.into())
    }
}

impl From<rusqlite::Error> for CopyRefusal {
    fn from(error: rusqlite::Error) -> Self {
        Fault::Sql(error).into()
    }
}

#[async_trait]
impl CopySide for SqliteSide {
    fn id(&self) -> i64 {
        self.id
    }

    async fn counts(&mut self) -> Result<JobCounts, CopyRefusal> {
        let count = |condition: &str| -> Result<u64, Fault> {
            let select = format!("SELECT count(*) FROM {condition}");
            Ok(sql::value::<i64>(&self.connection, &select, [])?.unsigned_abs())
        };
        Ok(JobCounts {
            jobs: count("jobs")?,
            unfinished: count("jobs WHERE ended_at IS NULL")?,
            runs: count("ledger")?,
        })
    }

    async fn sizes(&mut self, after: i64) -> Result<Vec<(i64, u64)>, CopyRefusal> {
        let select = sql!(sqlite::transfer::sizes);
        let mut statement = self.connection.prepare_cached(select)?;
        let rows = statement.query_and_then((after, to_signed(BATCH_JOBS as u64)), |row| {
            Ok((row.get("seq")?, row.count("bytes")?))
        })?;
        rows.collect()
    }

    async fn jobs(&mut self, after: i64, last: i64) -> Result<Vec<WholeJob>, CopyRefusal> {
        let connection = &self.connection;
        let select = format!("{} WHERE seq > ?1 AND seq <= ?2 ORDER BY seq", rows::WHOLE);
        let mut statement = connection.prepare_cached(&select)?;
        let found = statement.query_and_then((after, last), |row| {
            let StoredRow { seq, mut record } = rows::whole_row(connection, row)?;
            // Its worker ended together with its process.
            record.job.partial = None;
            let key = keys::text_of(connection, seq)?.zip(keys::of_job(connection, seq)?);
            let identity = identities::of_job(connection, seq)?;
            let raw = sql::value(connection, sql!(sqlite::transfer::jobs), [seq])?;
            let (steps, pages) = journal::of_job(connection, seq)?;
            Ok(WholeJob { seq, record, key, identity, raw, steps, pages })
        })?;
        found.collect()
    }

    async fn source(&mut self) -> Result<Option<i64>, CopyRefusal> {
        Ok(source(&self.connection)?)
    }

    async fn begin(&mut self, source: i64) -> Result<(), CopyRefusal> {
        sql::execute(&self.connection, sql!(sqlite::transfer::begin), (COPYING, source))?;
        Ok(())
    }

    async fn replace(
        &mut self,
        after: i64,
        last: i64,
        jobs: &[WholeJob],
    ) -> Result<(), CopyRefusal> {
        let moment = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        sql::execute(&moment, sql!(sqlite::transfer::replace), (after, last))?;
        let mut tx = Tx::new(&moment, &SystemClock);
        for job in jobs {
            add(&mut tx, job)?;
        }
        Ok(moment.commit()?)
    }

    async fn ledger(&mut self, after: Option<&LedgerRow>) -> Result<Vec<LedgerRow>, CopyRefusal> {
        Ok(ledger::after(&self.connection, after, BATCH_ROWS)?)
    }

    async fn clear_ledger(&mut self) -> Result<(), CopyRefusal> {
        Ok(sql::execute(&self.connection, sql!(sqlite::transfer::clear_ledger), []).map(drop)?)
    }

    async fn add_to_ledger(&mut self, rows: &[LedgerRow]) -> Result<(), CopyRefusal> {
        let moment = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        rows.iter().try_for_each(|row| ledger::put(&moment, row))?;
        Ok(moment.commit()?)
    }

    async fn complete(&mut self) -> Result<(), CopyRefusal> {
        let moment = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let rev = sql!(sqlite::transfer::raise_rev);
        sql::execute(&moment, rev, [])?;
        sql::execute(&moment, sql!(sqlite::transfer::forget_source), [COPYING])?;
        moment.commit()?;
        sql::empty_log(&self.connection)?;
        if let Some(reached) = mark::read_reached(&self.connection)? {
            self.mark.reset(reached);
        }
        Ok(())
    }

    async fn close(self: Box<Self>) {}
}

/// Adds the job as it was when it was new, then updates it to its current state.
fn add(tx: &mut Tx<'_>, whole: &WholeJob) -> Result<(), Fault> {
    let WholeJob { seq, record, key, identity, raw, steps, pages } = whole;
    let (seq, mut record) = (*seq, record.clone());
    let rev = record.job.rev;
    rows::add(tx, Some(seq), &mut record, FirstState::Queued)?;
    let job = &record.job;
    search::put(tx.connection, seq, job)?;
    bodies::write(tx.connection, seq, job.output(), raw.as_deref())?;
    if let Some((text, key)) = key {
        keys::put(tx.connection, &job.new.owner, text, key, seq)?;
    }
    if let Some(identity) = identity {
        identities::put(tx.connection, &job.new.owner, identity, seq)?;
    }
    journal::add(tx.connection, seq, &job.new.owner, steps, pages)?;
    rows::save(tx, seq, &mut record, SaveScope::All)?;
    sql::execute(tx.connection, sql!(sqlite::transfer::set_rev), (seq, to_signed(rev.0)))?;
    Ok(())
}
