//! Turns a backup into the store, without paying a second time for any job that the backup had not finished.
//!
//! All work happens on a copy under another name, and the last step renames it: a crash leaves either the old store or the
//! restored one. The previous store is kept under another name.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outlast_core::rules::{self, RestoredOutcome};
use outlast_core::{Clock, EndNotices, Profile, RecoverySemantics, Request, Rev, StoreError};
use rusqlite::{Connection, ErrorCode, TransactionBehavior};

use super::backup::{Partial, fill, verify};
use super::fault::{Fault, file_error};
use super::files::{beside, directory_of, make_private_dir, rename_durably};
use super::mark::{self, LockedMarkFile, ReachedChange};
use super::open::{self, ConnectionPurpose};
use super::rows::{self, SaveScope, StoredRow};
use super::tx::Tx;
use super::{SqliteFile, check, ledger, notices, sql};
use crate::restored::{RestoreError, Restored, RestoredJob};
use crate::{columns, unavailable};

/// The number of change numbers that a restore skips. The mark may be a few seconds behind, and a reader that follows changes
/// by number must not mistake new changes for those it has seen.
const SKIPPED_REVS: u64 = 1_000_000;
/// The time for which a restore waits for other processes to close the database.
const MAX_LOCK_WAIT: Duration = Duration::from_millis(500);

/// A restore of a backup to a store.
pub struct Restore<'a> {
    /// The path of the database.
    pub path: &'a Path,
    /// The user's state directory, which holds a second mark of the store's latest state.
    pub state_dir: Option<&'a Path>,
    /// The clock for the times of the changes.
    pub clock: &'a dyn Clock,
    /// returns the recovery semantics of the provider of these jobs for a request; `None` if no provider is configured.
    pub semantics: &'a dyn Fn(&Profile, &Request) -> Option<RecoverySemantics>,
    /// Sets whether a notice is stored for the jobs that the restore ends.
    pub notices: EndNotices,
    /// Restores even if this may be a mistake: over a store with jobs, or to a store that is not an older copy.
    pub force: bool,
}

impl From<Fault> for RestoreError {
    fn from(fault: Fault) -> Self {
        Self::Store(fault.into())
    }
}

impl From<rusqlite::Error> for RestoreError {
    fn from(error: rusqlite::Error) -> Self {
        Fault::Sql(error).into()
    }
}

impl Restore<'_> {
    /// Replaces the store by the backup `from`, or creates the store from it.
    pub fn from_backup(&self, from: &Path) -> Result<Restored, RestoreError> {
        let backup = sound_backup(from)?;
        make_private_dir(&directory_of(self.path))?;
        let mark = LockedMarkFile::alone(self.file())?.ok_or(RestoreError::InUse)?;
        let is_replaced = fs::exists(self.path).map_err(unavailable)?;
        let reached = if is_replaced { self.close_old_store()? } else { None };
        let partial = Partial::alone_beside(self.path)?;
        fill(&backup, &partial.0)?;
        drop(backup);
        let mut connection = open::prepare(&partial.0, None)?;
        let second = mark.read_second(&connection)?;
        let marks = mark.read().into_iter().chain(reached).chain(second);
        let floor = marks.map(|reached| reached.rev).max();
        let (jobs, reached) = self.end_unfinished(&mut connection, floor)?;
        sql::close(connection)?;
        verify(&partial.0)?;
        let kept = if is_replaced { Some(self.keep_old_store()?) } else { None };
        rename_durably(&partial.0, self.path)?;
        mark.reset(reached);
        Ok(Restored { jobs, kept })
    }

    /// Restores a database that was copied to its path by other means.
    pub fn in_place(&self) -> Result<Restored, RestoreError> {
        refuse_missing(self.path)?;
        let mark = LockedMarkFile::alone(self.file())?.ok_or(RestoreError::InUse)?;
        drop(sole_connection(self.path)?.ok_or(RestoreError::InUse)?);
        let marked = mark.read();
        let mut connection = open::prepare(self.path, None)?;
        // This finds the damage if the log next to the database belongs to another state of the store.
        check::refuse_damaged(&connection)?;
        let second = mark.read_second(&connection)?;
        let is_outdated = mark::explain_outdated(&connection, marked)?.is_some()
            || mark::explain_outdated(&connection, second)?.is_some();
        if !self.force && !is_outdated {
            self.refuse_ending_jobs(&connection)?;
        }
        let floor = marked.into_iter().chain(second).map(|reached| reached.rev).max();
        let (jobs, reached) = self.end_unfinished(&mut connection, floor)?;
        sql::close(connection)?;
        mark.reset(reached);
        Ok(Restored { jobs, kept: None })
    }

    fn file(&self) -> SqliteFile<'_> {
        SqliteFile { path: self.path, state_dir: self.state_dir }
    }

    /// Verifies that no other process has the old store open and that it may be replaced. Returns its latest state.
    fn close_old_store(&self) -> Result<Option<ReachedChange>, RestoreError> {
        let look = || -> Result<_, RestoreError> {
            let connection = sole_connection(self.path)?.ok_or(RestoreError::InUse)?;
            let jobs: i64 = sql::value(&connection, sql!(sqlite::restore::count_jobs), [])?;
            let reached = mark::read_reached(&connection)?;
            // Closing moves the log into the database, so only one file is kept.
            sql::close(connection)?;
            Ok((jobs.unsigned_abs(), reached))
        };
        // A killed process may have left an empty file; opening it would turn it into a database.
        let is_empty = fs::metadata(self.path).is_ok_and(|found| found.len() == 0);
        let (jobs, reached) = match look() {
            Ok((jobs, reached)) => (Some(jobs), reached),
            Err(RestoreError::InUse) => return Err(RestoreError::InUse),
            // A damaged store is the normal reason to restore a backup.
            Err(_) => (is_empty.then_some(0), None),
        };
        if jobs != Some(0) && !self.force {
            return Err(RestoreError::Exists { jobs });
        }
        Ok(reached)
    }

    /// Gives the old store a second name, so that there is always a database at the path. Its log, if it still has one, is
    /// moved with it.
    fn keep_old_store(&self) -> Result<PathBuf, RestoreError> {
        let stamp = self.clock.now().to_string().replace(':', "-");
        let kept = beside(self.path, &format!(".before-restore-{stamp}"));
        let linked =
            fs::hard_link(self.path, &kept).or_else(|_| fs::copy(self.path, &kept).map(drop));
        linked.map_err(file_error(&kept))?;
        for end in ["-wal", "-shm"] {
            let from = beside(self.path, end);
            if fs::exists(&from).map_err(unavailable)? {
                fs::rename(&from, beside(&kept, end)).map_err(file_error(&from))?;
            }
        }
        Ok(kept)
    }

    /// Decides about all unfinished jobs in one transaction, and sets the store's change number above every earlier one.
    fn end_unfinished(
        &self,
        connection: &mut Connection,
        floor: Option<Rev>,
    ) -> Result<(Vec<RestoredJob>, ReachedChange), Fault> {
        let moment = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let floor = columns::to_signed(floor.unwrap_or_default().0.saturating_add(SKIPPED_REVS));
        moment.execute(sql!(sqlite::restore::raise_rev), [floor])?;
        moment.execute_batch("DELETE FROM meta WHERE name = 'backup'; DELETE FROM workers;")?;
        let mut tx = Tx::new(&moment, self.clock);
        let mut jobs = Vec::new();
        for (StoredRow { seq, mut record }, fate) in self.decide(&moment)? {
            rows::save(&mut tx, seq, &mut record, SaveScope::All)?;
            if fate == RestoredOutcome::Ended {
                notices::add(&tx, self.notices, &record)?;
            }
            let job = record.job;
            // The journal lacks the steps that were taken after the backup.
            ledger::charge_with(&tx, &job.checkpoint, &job, None)?;
            let update = sql!(sqlite::restore::set_max_failures);
            sql::execute(&moment, update, (seq, job.new.max_failures))?;
            jobs.push(RestoredJob { job, fate });
        }
        let reached =
            mark::read_reached(&moment)?.ok_or_else(|| unavailable("it has no number"))?;
        moment.commit()?;
        Ok((jobs, reached))
    }

    /// Fails if nothing shows that the store is an older copy and jobs would be ended.
    fn refuse_ending_jobs(&self, connection: &Connection) -> Result<(), RestoreError> {
        let decided = self.decide(connection)?;
        match decided.iter().filter(|(_, fate)| *fate == RestoredOutcome::Ended).count() {
            0 => Ok(()),
            jobs => Err(RestoreError::Current { jobs }),
        }
    }

    /// Returns all unfinished jobs in their new state, oldest first. Writes nothing.
    fn decide(&self, connection: &Connection) -> Result<Vec<(StoredRow, RestoredOutcome)>, Fault> {
        let unfinished = sql!(sqlite::restore::unfinished);
        let mut decided = Vec::new();
        for seq in sql::column::<i64>(connection, unfinished, [])? {
            let Some(mut stored) = rows::whole(connection, "seq = ?1", seq)? else { continue };
            let new = &stored.record.job.new;
            let semantics = (self.semantics)(&new.profile, &new.request);
            let fate = rules::restore(&mut stored.record, semantics, self.clock.now());
            decided.extend(fate.map(|fate| (stored, fate)));
        }
        Ok(decided)
    }
}

/// Opens a backup that is complete and belongs to outlast.
fn sound_backup(from: &Path) -> Result<Connection, Fault> {
    refuse_missing(from)?;
    let (connection, _) = open::look(from)?;
    let (schema, _) = open::schema(&connection.unchecked_transaction()?, from)?;
    if schema == 0 {
        return Err(unavailable(format!("{} is empty", from.display())).into());
    }
    check::refuse_damaged(&connection)?;
    Ok(connection)
}

fn refuse_missing(path: &Path) -> Result<(), StoreError> {
    match fs::exists(path).map_err(unavailable)? {
        true => Ok(()),
        false => Err(unavailable(format!("there is no {}", path.display()))),
    }
}

/// Opens a connection that excludes all other processes; returns `None` while another has the database open. This also
/// detects processes of versions without marks.
pub(super) fn sole_connection(path: &Path) -> Result<Option<Connection>, Fault> {
    let connection = open::connect(path, ConnectionPurpose::Write)?;
    connection.busy_timeout(MAX_LOCK_WAIT)?;
    let alone =
        connection.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; COMMIT;");
    match alone {
        Ok(()) => Ok(Some(connection)),
        Err(error) => match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Ok(None),
            _ => Err(error.into()),
        },
    }
}
