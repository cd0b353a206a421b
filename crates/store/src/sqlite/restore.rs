//! A backup becomes the store again, and what it had not finished is not bought a second time.
//!
//! Everything is done to a copy under another name; the rename at the end is the one step that counts, so a crash leaves
//! the old store or the restored one. The store that was there is kept under a name of its own.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use outlast_core::rules::{self, Fate};
use outlast_core::{Clock, ConversationId, JobId, Nature, OwnerId, Profile, Rev, StoreError};
use rusqlite::{Connection, ErrorCode, TransactionBehavior};
use serde_json::Value;

use super::backup::{Partial, fill, verify};
use super::fault::{Fault, of_io, unavailable};
use super::mark::{self, Mark, Reached};
use super::open::{self, Access};
use super::rows::{self, Stored};
use super::writer::Tx;

/// Numbers of changes that are left out after a restore: the mark may be behind by a few seconds, and what follows
/// changes by their number must not take new ones for those it has seen.
const ROOM: u64 = 1_000_000;
/// How long other processes may take to let go of the database.
const PATIENCE: Duration = Duration::from_millis(500);

/// The store that a backup is to become.
pub struct Restore<'a> {
    /// Its database.
    pub path: &'a Path,
    /// What dates the changes.
    pub clock: &'a dyn Clock,
    /// What the provider of these jobs says of a request; `None` where none is configured.
    pub nature: &'a dyn Fn(&Profile, &Value) -> Option<Nature>,
    /// Do it although it may not be meant: over a store with jobs, or to a store that is no older copy.
    pub force: bool,
}

/// What was restored.
#[derive(Debug)]
pub struct Restored {
    /// Every job that the backup had not finished, oldest first.
    pub jobs: Vec<RestoredJob>,
    /// Where the store that was there before is kept, if there was one.
    pub kept: Option<PathBuf>,
}

/// A job that the backup had not finished.
#[derive(Debug)]
pub struct RestoredJob {
    /// Its name.
    pub id: JobId,
    /// Whose it is.
    pub owner: OwnerId,
    /// The conversation it belongs to, if any.
    pub conversation: Option<ConversationId>,
    /// The kind of work.
    pub workflow: String,
    /// The start of the question.
    pub title: String,
    /// What becomes of it.
    pub fate: Fate,
}

/// Why nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// Another process has the store open.
    #[error("the store is in use")]
    InUse,
    /// There is a store already; how many jobs it has, if that can be read.
    #[error("there is a store already, {}", contents(*.jobs))]
    Exists {
        /// How many jobs are in it.
        jobs: Option<u64>,
    },
    /// Nothing shows that the store is an older copy, and this many jobs would be ended.
    #[error("nothing shows that the store is an older copy, and it would end {}", jobs_of(*.jobs as u64))]
    Current {
        /// How many.
        jobs: usize,
    },
    /// The store, or the backup, cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn contents(jobs: Option<u64>) -> String {
    jobs.map_or("which cannot be read".to_owned(), |jobs| format!("with {}", jobs_of(jobs)))
}

fn jobs_of(number: u64) -> String {
    if number == 1 { "1 job".to_owned() } else { format!("{number} jobs") }
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
    /// Replaces the store by the backup `from`, or makes the store from it.
    pub fn from_backup(&self, from: &Path) -> Result<Restored, RestoreError> {
        let backup = sound_backup(from)?;
        open::make_private_dir(&open::directory_of(self.path))?;
        let mark = Mark::alone(self.path)?.ok_or(RestoreError::InUse)?;
        let old = self.old_store()?;
        let partial = Partial::alone_beside(self.path)?;
        fill(&backup, &partial.0)?;
        drop(backup);
        let mut connection = open::prepare(&partial.0, None)?;
        let floor = [mark.read(), old.as_ref().and_then(|old| old.reached)];
        let floor = floor.into_iter().flatten().map(|reached| reached.rev).max();
        let (jobs, reached) = self.end_unfinished(&mut connection, floor)?;
        fold(connection)?;
        verify(&partial.0)?;
        let kept = old.map(|_| self.keep()).transpose()?;
        let placed = fs::rename(&partial.0, self.path).and_then(|()| {
            File::open(open::directory_of(self.path)).and_then(|directory| directory.sync_all())
        });
        placed.map_err(|error| of_io(self.path, error))?;
        mark.write(reached);
        Ok(Restored { jobs, kept })
    }

    /// Does the same to a database that was copied to its place by other means.
    pub fn in_place(&self) -> Result<Restored, RestoreError> {
        if !fs::exists(self.path).map_err(unavailable)? {
            return Err(unavailable(format!("there is no {}", self.path.display())).into());
        }
        let mark = Mark::alone(self.path)?.ok_or(RestoreError::InUse)?;
        drop(sole_connection(self.path)?);
        let marked = mark.read();
        let mut connection = open::prepare(self.path, None)?;
        // A log that was left beside it by another state of the store would show here.
        super::check::refuse_damaged(&connection)?;
        let is_outdated = mark::outdated(&connection, marked)?.is_some();
        if !is_outdated && !self.force {
            let ended = self.fates(&connection)?;
            let jobs = ended.iter().filter(|job| job.fate == Fate::Ended).count();
            if jobs > 0 {
                return Err(RestoreError::Current { jobs });
            }
        }
        let floor = marked.map(|marked| marked.rev);
        let (jobs, reached) = self.end_unfinished(&mut connection, floor)?;
        fold(connection)?;
        mark.write(reached);
        Ok(Restored { jobs, kept: None })
    }

    /// The store that is at the path, which no other process has open.
    fn old_store(&self) -> Result<Option<OldStore>, RestoreError> {
        if !fs::exists(self.path).map_err(unavailable)? {
            return Ok(None);
        }
        let looked = sole_connection(self.path).and_then(|connection| {
            let count = "SELECT count(*) FROM jobs";
            let jobs = connection.query_row(count, [], |row| row.get::<_, i64>(0))?;
            let reached = mark::reached(&connection)?;
            // The last to close it empties its log into it: what is kept is one file.
            fold(connection)?;
            Ok((u64::try_from(jobs).unwrap_or_default(), reached))
        });
        let (jobs, reached) = match looked {
            Ok((jobs, reached)) => (Some(jobs), reached),
            Err(RestoreError::InUse) => return Err(RestoreError::InUse),
            // A damaged store is what backups are for; an empty file is what a process that died made of it.
            Err(_) => {
                let is_empty = fs::metadata(self.path).is_ok_and(|found| found.len() == 0);
                (is_empty.then_some(0), None)
            }
        };
        if jobs != Some(0) && !self.force {
            return Err(RestoreError::Exists { jobs });
        }
        Ok(Some(OldStore { reached }))
    }

    /// Gives the old store a second name, so that the path is never without a database; its log, if it still has one,
    /// goes with it.
    fn keep(&self) -> Result<PathBuf, RestoreError> {
        let stamp = self.clock.now().to_string().replace(':', "-");
        let mut name = self.path.as_os_str().to_owned();
        name.push(format!(".before-restore-{stamp}"));
        let aside = PathBuf::from(name);
        let linked =
            fs::hard_link(self.path, &aside).or_else(|_| fs::copy(self.path, &aside).map(drop));
        linked.map_err(|error| of_io(&aside, error))?;
        for end in ["-wal", "-shm"] {
            let [from, to] = [self.path, &aside].map(|path| {
                let mut path = path.as_os_str().to_owned();
                path.push(end);
                PathBuf::from(path)
            });
            if fs::exists(&from).map_err(unavailable)? {
                fs::rename(&from, &to).map_err(|error| of_io(&from, error))?;
            }
        }
        Ok(aside)
    }

    /// Decides about every unfinished job, in one transaction, and gives the store a number above every one it had.
    fn end_unfinished(
        &self,
        connection: &mut Connection,
        floor: Option<Rev>,
    ) -> Result<(Vec<RestoredJob>, Reached), RestoreError> {
        let moment = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let floor = rows::signed(floor.unwrap_or_default().0.saturating_add(ROOM));
        moment.execute("UPDATE meta SET value = max(value, ?1) WHERE name = 'rev'", [floor])?;
        moment.execute_batch("DELETE FROM meta WHERE name = 'backup'; DELETE FROM workers;")?;
        let mut tx = Tx::new(&moment, self.clock);
        let mut jobs = Vec::new();
        for seq in unfinished(&moment)? {
            if let Some((mut stored, job)) = self.decided(&moment, seq)? {
                rows::save(&mut tx, seq, &mut stored.record)?;
                let max_failures = stored.record.job.new.max_failures;
                let update = "UPDATE jobs SET max_failures = ?2 WHERE seq = ?1";
                moment.execute(update, (seq, max_failures))?;
                jobs.push(job);
            }
        }
        let reached = mark::reached(&moment)?.ok_or_else(|| unavailable("it has no number"))?;
        moment.commit()?;
        Ok((jobs, reached))
    }

    /// What would become of every unfinished job.
    fn fates(&self, connection: &Connection) -> Result<Vec<RestoredJob>, RestoreError> {
        let mut jobs = Vec::new();
        for seq in unfinished(connection)? {
            jobs.extend(self.decided(connection, seq)?.map(|(_, job)| job));
        }
        Ok(jobs)
    }

    fn decided(
        &self,
        connection: &Connection,
        seq: i64,
    ) -> Result<Option<(Stored, RestoredJob)>, Fault> {
        let Some(mut stored) = rows::whole(connection, "seq = ?1", seq)? else { return Ok(None) };
        let new = &stored.record.job.new;
        let nature = (self.nature)(&new.profile, &new.ask);
        let Some(fate) = rules::restore(&mut stored.record, nature, self.clock.now()) else {
            return Ok(None);
        };
        let job = &stored.record.job;
        let told = RestoredJob {
            id: job.id,
            owner: job.new.owner.clone(),
            conversation: job.new.conversation.clone(),
            workflow: job.new.workflow.clone(),
            title: job.new.title.clone(),
            fate,
        };
        Ok(Some((stored, told)))
    }
}

/// What is known of the store that is replaced.
struct OldStore {
    reached: Option<Reached>,
}

/// Opens a backup that is whole and ours.
fn sound_backup(from: &Path) -> Result<Connection, RestoreError> {
    if !fs::exists(from).map_err(unavailable)? {
        return Err(unavailable(format!("there is no {}", from.display())).into());
    }
    let (connection, _) = open::look(from)?;
    let moment = connection.unchecked_transaction()?;
    let (schema, _) = open::schema(&moment, from)?;
    if schema == 0 {
        return Err(unavailable(format!("{} is empty", from.display())).into());
    }
    drop(moment);
    super::check::refuse_damaged(&connection)?;
    Ok(connection)
}

/// A connection that no other process can share; also one of a version that knows no mark is seen by this.
fn sole_connection(path: &Path) -> Result<Connection, RestoreError> {
    let connection = open::connect(path, Access::Write)?;
    connection.busy_timeout(PATIENCE)?;
    let alone = connection
        .execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; COMMIT;")
        .map_err(|error| match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => RestoreError::InUse,
            _ => error.into(),
        });
    alone.map(|()| connection)
}

/// Empties the log into the file and closes it.
fn fold(connection: Connection) -> Result<(), RestoreError> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    connection.close().map_err(|(_, error)| error.into())
}

fn unfinished(connection: &Connection) -> Result<Vec<i64>, Fault> {
    let seqs = connection
        .prepare("SELECT seq FROM jobs WHERE ended_at IS NULL ORDER BY seq")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    Ok(seqs)
}
