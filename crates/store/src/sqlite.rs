//! The default store: one SQLite file that the processes of one machine share.
//!
//! One thread does all writes: it commits them together and takes turns with other processes. Reads have separate
//! connections. Core's rules decide, inside the transaction.

mod open;
mod files;
mod database_file;
mod mark;

mod commands;
mod insert;
mod keys;
mod identities;
mod notices;
mod owners;
mod ledger;
mod journal;
mod questions;
mod prune;
mod reads;
mod conversations;
mod rows;
mod search;
mod titles;
mod bodies;
mod sql;

mod write_lock;
mod readers;
mod writer;
mod tx;
mod own_commits;
mod file_watch;
mod log_checkpoints;

mod liveness;
mod worker_list;
mod workers;

mod backup;
mod restore;
mod transfer;
mod check;
mod inspect;
mod locks;

mod fault;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{
    AnswerOutcome, CancelOutcome, ChangeWait, Changes, Checkpoint, ClaimedJob, ClaimedNotice,
    Clock, CloseReason, ConversationId, ConversationPage, ConversationQuery, Cost, EndNotices,
    Insert, InsertOutcome, Job, JobId, JobPage, JobQuery, JournalStep, Lease, LedgerRow,
    NewQuestion, NewStep, NoticeClaim, NoticeOutcome, OwnerId, Page, Profile, Progress, Prune,
    PruneOutcome, Question, RemoteRun, RemoteStop, RescueBy, RescueOutcome, ResolveOutcome, Rev,
    Scope, Settlement, SpendQuery, SpendSum, StateCount, StateKind, StepDecision, StepEnd,
    StepOutput, StepStart, Store, StoreError, Timestamp, WorkerId, rules,
};
use rusqlite::Connection;
use tokio::time::Instant;

pub(crate) use files::{make_private_dir, open_private_file};
pub use inspect::{Inspection, inspect, is_there, sqlite_version};
pub use locks::{HeldLocks, hold_locks, locks_that_give_way};
pub use restore::Restore;
pub(crate) use transfer::SqliteSide;

use crate::unavailable;
use database_file::DatabaseFile;
use fault::{Fault, file_error};
use file_watch::FileWatch;
use liveness::Liveness;
use mark::LockedMarkFile;
use open::ConnectionPurpose;
use own_commits::OwnCommits;
use readers::Readers;
use search::PendingText;
use write_lock::WriteLock;
use writer::{Urgency, Writer, WriterThread};

/// The interval at which a store with watched files is still checked, in case a write was not reported.
const WATCHED_LOOK: Duration = Duration::from_secs(60);
/// The usual delay between the first write of a commit and the time at which it can be read.
const COMMIT_SOON: Duration = Duration::from_millis(5);

/// The maximum time that a search waits for words to be indexed.
const WORDS_WAIT: Duration = Duration::from_secs(2);

/// The location of an SQLite store.
#[derive(Clone, Copy, Debug)]
pub struct SqliteFile<'a> {
    /// The path of the database.
    pub path: &'a Path,
    /// The user's state directory, which holds a second mark of the store's latest state.
    pub state_dir: Option<&'a Path>,
}

/// Without a second mark.
impl<'a, P: AsRef<Path> + ?Sized> From<&'a P> for SqliteFile<'a> {
    fn from(path: &'a P) -> Self {
        Self { path: path.as_ref(), state_dir: None }
    }
}

/// A store that keeps jobs in an SQLite file.
pub struct SqliteStore {
    clock: Arc<dyn Clock>,
    /// `None` in a store opened only for reading. Its thread finishes its queue when the store is dropped.
    writer: Option<Writer>,
    readers: Readers,
    liveness: Arc<Liveness>,
    commits: Arc<OwnCommits>,
    path: PathBuf,
    /// Created by the first caller that waits for changes, because it needs a runtime. `None` if the system does not report
    /// writes.
    file_watch: OnceLock<Option<FileWatch>>,
    notices: EndNotices,
}

impl SqliteStore {
    /// Opens the store at `path`, or creates it. Times come from `clock`.
    ///
    /// Workers' liveness files go into the folder `workers` next to the database. Blocks for a moment; blocks longer only
    /// while another process creates the same database.
    pub fn open<'a>(
        store: impl Into<SqliteFile<'a>>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, StoreError> {
        let store = store.into();
        let path = store.path;
        open::make_files(path)?;
        let mark = LockedMarkFile::open_shared(store)?;
        // Read before the database: another process may write both in between.
        let marked = mark.read();
        // Recorded before the file is opened, so that a file that replaces it meanwhile is noticed.
        let file = Arc::new(DatabaseFile::of(path, ConnectionPurpose::Read)?);
        let lock_path = files::beside(path, ".wlock");
        let lock = WriteLock::open(&lock_path, WriteLock::MAX_WAIT);
        let lock = lock.map_err(file_error(&lock_path))?;
        let connection = open::prepare(path, Some(&lock))?;
        mark::refuse_outdated(&connection, marked)?;
        mark::refuse_outdated(&connection, mark.read_second(&connection)?)?;
        transfer::refuse_partial(&connection)?;
        let reached =
            mark::read_reached(&connection)?.ok_or_else(|| unavailable("it has no number"))?;
        mark.write(reached);
        let mut store = Self::reading(path, file.clone(), clock.clone());
        let (commits, store_number) = (store.commits.clone(), reached.store);
        let thread =
            WriterThread { connection, file, lock, clock, commits, mark, store: store_number };
        store.writer = Some(Writer::start(thread)?);
        Ok(store)
    }

    /// Sets whether this store keeps a notice of every end.
    pub fn with_notices(mut self, notices: EndNotices) -> Self {
        self.notices = notices;
        self
    }

    /// Opens an existing store only for reading. It creates, changes and rescues nothing, and the directory does not have to
    /// be writable. Returns `None` if the schema is older; [`SqliteStore::open`] would update it.
    pub fn read(path: &Path, clock: Arc<dyn Clock>) -> Result<Option<Self>, StoreError> {
        let (connection, reads) = open::look(path)?;
        let moment = connection.unchecked_transaction().map_err(Fault::Sql)?;
        let (schema, newest) = open::schema(&moment, path)?;
        if schema < newest {
            return Ok(None);
        }
        let file = Arc::new(DatabaseFile::of(path, reads)?);
        Ok(Some(Self::reading(path, file, clock)))
    }

    fn reading(path: &Path, file: Arc<DatabaseFile>, clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            writer: None,
            readers: Readers::new(file),
            liveness: Arc::new(Liveness::of_database(path)),
            commits: Arc::new(OwnCommits::new()),
            path: path.to_owned(),
            file_watch: OnceLock::new(),
            notices: EndNotices::Off,
        }
    }

    /// Finishes the queued writes, empties the write-ahead log and removes this store's liveness files.
    ///
    /// Every later call is refused as unavailable. A process that exits without calling this does no harm: the next process
    /// finds the log and the free locks.
    pub async fn close(&self) {
        self.readers.close();
        if let Some(thread) = self.writer.as_ref().and_then(Writer::close) {
            // If the writer panicked, it has already logged the panic.
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
        self.liveness.close();
    }

    /// Indexes the pending words before a search, for a limited time. After a flood of jobs, a search is still answered, but
    /// finds the newest jobs only later. A read-only store is searched as it is.
    async fn put_words(&self) {
        let until = Instant::now() + WORDS_WAIT;
        while Instant::now() < until {
            match self.readers.run(search::read_owed).await {
                Ok(PendingText::More) => {}
                Ok(PendingText::Nothing) | Err(_) => return,
            }
            let Some(writer) = &self.writer else { return };
            if let Err(error) = writer.run(|tx| search::catch_up(tx.connection)).await {
                return tracing::warn!(%error, "words could not be put; the last jobs may not be found");
            }
        }
    }

    fn writer(&self) -> Result<&Writer, StoreError> {
        self.writer.as_ref().ok_or_else(|| unavailable("it was opened to be read"))
    }
}

#[async_trait]
impl Store for SqliteStore {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn rev(&self) -> Result<Rev, StoreError> {
        self.readers.run(reads::rev).await
    }

    async fn insert(&self, insert: Insert) -> Result<InsertOutcome, StoreError> {
        if let Some(carrier) = &insert.initial_worker {
            self.show_life(&carrier.worker).await?;
        }
        let notices = self.notices;
        self.writer()?.run(move |tx| insert::insert(tx, insert, notices)).await
    }

    async fn claim(
        &self,
        worker: &WorkerId,
        profiles: &[Profile],
        lease: Duration,
    ) -> Result<Option<ClaimedJob>, StoreError> {
        self.show_life(worker).await?;
        let (worker, profiles) = (worker.clone(), profiles.to_vec());
        self.writer()?.run(move |tx| commands::claim(tx, &worker, &profiles, lease)).await
    }

    async fn claim_by_id(
        &self,
        worker: &WorkerId,
        profiles: &[Profile],
        id: &JobId,
        lease: Duration,
    ) -> Result<Option<ClaimedJob>, StoreError> {
        self.show_life(worker).await?;
        let (worker, profiles, id) = (worker.clone(), profiles.to_vec(), *id);
        self.writer()?.run(move |tx| commands::take(tx, &worker, &profiles, &id, lease)).await
    }

    async fn unclaimed_held_calls(&self, profiles: &[Profile]) -> Result<Vec<JobId>, StoreError> {
        let profiles = profiles.to_vec();
        self.readers.run(move |connection| reads::orphans(connection, &profiles)).await
    }

    async fn renew(&self, leases: &[Lease], lease: Duration) -> Result<Vec<JobId>, StoreError> {
        let leases = leases.to_vec();
        self.writer()?.run(move |tx| commands::renew(tx, &leases, lease)).await
    }

    async fn checkpoint(&self, lease: &Lease, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        let (id, lease, checkpoint) = (lease.job, lease.clone(), checkpoint.clone());
        let rule = move |record: &mut _, now| rules::checkpoint(record, &lease, &checkpoint, now);
        self.writer()?.run(move |tx| commands::write(tx, &id, rule)).await
    }

    async fn show_progress(&self, lease: &Lease, progress: &Progress) -> Result<(), StoreError> {
        let (id, lease, progress) = (lease.job, lease.clone(), progress.clone());
        let rule = move |record: &mut _, now| rules::show_progress(record, &lease, &progress, now);
        self.writer()?.run(move |tx| commands::write(tx, &id, rule)).await
    }

    async fn show_text(&self, lease: &Lease, text: &str) -> Result<(), StoreError> {
        let (lease, text) = (lease.clone(), text.to_owned());
        self.writer()?.run(move |tx| commands::show_text(tx, &lease, &text)).await
    }

    async fn begin_step(&self, lease: &Lease, step: &NewStep) -> Result<StepStart, StoreError> {
        let (lease, step) = (lease.clone(), step.clone());
        self.writer()?.run(move |tx| journal::begin_step(tx, &lease, &step)).await
    }

    async fn end_step(&self, lease: &Lease, key: &str, end: &StepEnd) -> Result<(), StoreError> {
        let (lease, key, end) = (lease.clone(), key.to_owned(), end.clone());
        self.writer()?.run(move |tx| journal::end_step(tx, &lease, &key, &end)).await
    }

    async fn resolve_step(
        &self,
        scope: &Scope,
        job: &JobId,
        key: &str,
        decision: StepDecision,
    ) -> Result<ResolveOutcome, StoreError> {
        let (scope, job, key) = (scope.clone(), *job, key.to_owned());
        self.writer()?.run(move |tx| journal::resolve_step(tx, &scope, &job, &key, decision)).await
    }

    async fn save_page(
        &self,
        lease: &Lease,
        page: &Page,
        max_bytes: u64,
    ) -> Result<(), StoreError> {
        let (lease, page) = (lease.clone(), page.clone());
        self.writer()?.run(move |tx| journal::save_page(tx, &lease, &page, max_bytes)).await
    }

    async fn ask(&self, lease: &Lease, question: &NewQuestion) -> Result<Question, StoreError> {
        let (lease, question, notices) = (lease.clone(), question.clone(), self.notices);
        self.writer()?.run(move |tx| questions::ask(tx, &lease, &question, notices)).await
    }

    async fn close_question(
        &self,
        lease: &Lease,
        key: &str,
        reason: CloseReason,
    ) -> Result<(), StoreError> {
        let (id, lease, key) = (lease.job, lease.clone(), key.to_owned());
        let rule =
            move |record: &mut _, now| rules::close_question(record, &lease, &key, reason, now);
        self.writer()?.run(move |tx| commands::write(tx, &id, rule)).await
    }

    async fn answer(
        &self,
        scope: &Scope,
        id: &JobId,
        question: Option<&str>,
        text: &str,
    ) -> Result<AnswerOutcome, StoreError> {
        let (scope, id) = (scope.clone(), *id);
        let (question, text) = (question.map(str::to_owned), text.to_owned());
        self.writer()?
            .run(move |tx| questions::answer(tx, &scope, &id, question.as_deref(), &text))
            .await
    }

    async fn settle(&self, lease: &Lease, settlement: Settlement) -> Result<Job, StoreError> {
        let (lease, notices) = (lease.clone(), self.notices);
        self.writer()?.run(move |tx| commands::settle(tx, &lease, &settlement, notices)).await
    }

    async fn cancel(&self, scope: &Scope, id: &JobId) -> Result<CancelOutcome, StoreError> {
        let (scope, id, notices) = (scope.clone(), *id, self.notices);
        self.writer()?.run(move |tx| commands::cancel(tx, &scope, &id, notices)).await
    }

    async fn rescue(&self, dead: &RescueBy) -> Result<RescueOutcome, StoreError> {
        let jobs = match dead {
            RescueBy::DeadProcess => return self.rescue_proven().await,
            RescueBy::ExpiredLease => {
                let now = self.clock.now();
                // A reader checks first: the write lock is taken only if there is a job to release.
                if !self.readers.run(move |connection| reads::has_expired(connection, now)).await? {
                    return Ok(RescueOutcome::default());
                }
                let liveness = self.liveness.clone();
                self.writer()?.run(move |tx| commands::rescue_expired(tx, &liveness)).await?
            }
            RescueBy::UnheldByWorker { worker, held } => {
                let now = self.clock.now();
                if !self.readers.run(move |connection| reads::has_expired(connection, now)).await? {
                    return Ok(RescueOutcome::default());
                }
                let (worker, held) = (worker.clone(), held.clone());
                self.writer()?.run(move |tx| commands::rescue_unheld(tx, &worker, &held)).await?
            }
        };
        Ok(RescueOutcome { jobs, watched: 0 })
    }

    async fn record_late_run(&self, id: &JobId, run: &RemoteRun) -> Result<(), StoreError> {
        let (id, run) = (*id, run.clone());
        let rule = move |record: &mut _, now| rules::record_late_run(record, &run, now);
        self.writer()?.run(move |tx| commands::amend(tx, &id, rule)).await
    }

    async fn pending_stops(
        &self,
        profiles: &[Profile],
        limit: usize,
    ) -> Result<Vec<(JobId, RemoteRun)>, StoreError> {
        let profiles = profiles.to_vec();
        self.readers.run(move |connection| reads::owed_stops(connection, &profiles, limit)).await
    }

    async fn record_stop(
        &self,
        id: &JobId,
        outcome: RemoteStop,
        cost: Cost,
    ) -> Result<(), StoreError> {
        let id = *id;
        let rule = move |record: &mut _, now| rules::record_stop(record, outcome, cost, now);
        self.writer()?.run(move |tx| commands::amend(tx, &id, rule)).await
    }

    async fn claim_notice(&self, lease: Duration) -> Result<NoticeClaim, StoreError> {
        // A reader checks first: the write lock is taken only if a notice is due.
        match self.readers.run(notices::next_due).await? {
            Some(due) if due <= self.clock.now() => {
                self.writer()?.run(move |tx| notices::claim(tx, lease)).await
            }
            next => Ok(NoticeClaim::NoneDue { next }),
        }
    }

    async fn record_notice(
        &self,
        claimed: &ClaimedNotice,
        outcome: NoticeOutcome,
    ) -> Result<(), StoreError> {
        let claimed = claimed.clone();
        self.writer()?.run(move |tx| notices::record(tx, &claimed, outcome)).await
    }

    async fn record_answer(&self, id: &JobId) -> Result<(), StoreError> {
        let id = *id;
        self.writer()?
            .run_when(Urgency::InCompany, move |tx| commands::mark_answered(tx, &id))
            .await
    }

    async fn has_worker(&self, profile: &Profile) -> Result<bool, StoreError> {
        self.find_worker(profile).await
    }

    async fn count_queued(&self, profiles: &[Profile]) -> Result<u64, StoreError> {
        let profiles = profiles.to_vec();
        self.readers.run(move |connection| reads::count_queued(connection, &profiles)).await
    }

    async fn queue_position(&self, id: &JobId) -> Result<u64, StoreError> {
        let id = *id;
        self.readers.run(move |connection| owners::ahead(connection, &id)).await
    }

    async fn deregister_worker(&self, worker: &WorkerId) -> Result<(), StoreError> {
        self.release_worker(worker).await
    }

    async fn prune(&self, scope: &Scope, prune: &Prune) -> Result<PruneOutcome, StoreError> {
        self.remove(scope, prune).await
    }

    async fn forget_runs(
        &self,
        provider: &str,
        ended_before: Timestamp,
    ) -> Result<u32, StoreError> {
        self.forget_old_runs(provider, ended_before).await
    }

    async fn job(&self, scope: &Scope, id: &JobId) -> Result<Option<Job>, StoreError> {
        let (scope, id, now) = (scope.clone(), *id, self.clock.now());
        self.readers.run(move |connection| reads::job(connection, &scope, &id, now)).await
    }

    async fn list(&self, scope: &Scope, query: &JobQuery) -> Result<JobPage, StoreError> {
        if query.words.is_some() {
            self.put_words().await;
        }
        let (scope, query, now) = (scope.clone(), query.clone(), self.clock.now());
        self.readers.run(move |connection| reads::list(connection, &scope, &query, now)).await
    }

    async fn turns(
        &self,
        scope: &Scope,
        conversation: &ConversationId,
    ) -> Result<Vec<Job>, StoreError> {
        let (scope, conversation, now) = (scope.clone(), conversation.clone(), self.clock.now());
        self.readers
            .run(move |connection| conversations::turns(connection, &scope, &conversation, now))
            .await
    }

    async fn newest_about(
        &self,
        scope: &Scope,
        subject: &JobId,
        states: &[StateKind],
    ) -> Result<Option<Job>, StoreError> {
        let (scope, subject, states) = (scope.clone(), *subject, states.to_vec());
        let now = self.clock.now();
        self.readers
            .run(move |connection| reads::newest_about(connection, &scope, &subject, &states, now))
            .await
    }

    async fn steps(&self, scope: &Scope, job: &JobId) -> Result<Vec<JournalStep>, StoreError> {
        let (scope, job) = (scope.clone(), *job);
        self.readers.run(move |connection| journal::steps(connection, &scope, &job)).await
    }

    async fn step_outputs(
        &self,
        scope: &Scope,
        job: &JobId,
        kinds: &[&str],
    ) -> Result<Vec<StepOutput>, StoreError> {
        let (scope, job) = (scope.clone(), *job);
        let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect::<Vec<_>>();
        let read =
            move |connection: &Connection| journal::step_outputs(connection, &scope, &job, &kinds);
        self.readers.run(read).await
    }

    async fn page(&self, owner: &OwnerId, digest: &[u8; 32]) -> Result<Option<Page>, StoreError> {
        let (owner, digest) = (owner.clone(), *digest);
        self.readers.run(move |connection| journal::page(connection, &owner, &digest)).await
    }

    async fn conversations(
        &self,
        owner: &OwnerId,
        query: &ConversationQuery,
    ) -> Result<ConversationPage, StoreError> {
        let (owner, query, now) = (owner.clone(), query.clone(), self.clock.now());
        self.readers
            .run(move |connection| conversations::list(connection, &owner, &query, now))
            .await
    }

    async fn counts(&self, scope: &Scope, at_most: u32) -> Result<Vec<StateCount>, StoreError> {
        let (scope, now) = (scope.clone(), self.now());
        self.readers.run(move |connection| reads::counts(connection, &scope, at_most, now)).await
    }

    async fn spend(&self, scope: &Scope, query: &SpendQuery) -> Result<Vec<SpendSum>, StoreError> {
        let (scope, query) = (scope.clone(), *query);
        self.readers.run(move |connection| ledger::spend(connection, &scope, &query)).await
    }

    async fn ledger_rows(&self, scope: &Scope, job: &JobId) -> Result<Vec<LedgerRow>, StoreError> {
        let (scope, job) = (scope.clone(), *job);
        self.readers.run(move |connection| ledger::of_job(connection, &scope, &job)).await
    }

    async fn get_setting(&self, name: &str) -> Result<Option<String>, StoreError> {
        let name = name.to_owned();
        let select = "SELECT value FROM kept WHERE name = ?1";
        self.readers.run(move |connection| sql::optional(connection, select, [name])).await
    }

    async fn put_setting(&self, name: &str, value: &str) -> Result<(), StoreError> {
        let kept = [name.to_owned(), value.to_owned()];
        let replace = "INSERT OR REPLACE INTO kept (name, value) VALUES (?1, ?2)";
        let keep =
            move |tx: &mut tx::Tx<'_>| sql::execute(tx.connection, replace, kept.clone()).map(drop);
        self.writer()?.run(keep).await
    }

    async fn create_setting(&self, name: &str, value: &str) -> Result<String, StoreError> {
        let kept = [name.to_owned(), value.to_owned()];
        let create = move |tx: &mut tx::Tx<'_>| {
            let insert = "INSERT OR IGNORE INTO kept (name, value) VALUES (?1, ?2)";
            sql::execute(tx.connection, insert, kept.clone())?;
            let select = "SELECT value FROM kept WHERE name = ?1";
            sql::optional(tx.connection, select, [&kept[0]])
        };
        Ok(self.writer()?.run(create).await?.unwrap_or_default())
    }

    async fn changes(&self, after: Rev, wait: ChangeWait) -> Result<Changes, StoreError> {
        const MIN_INTERVAL: Duration = Duration::from_millis(1);
        const MAX_WAIT: Duration = Duration::from_secs(86_400);
        let watch = self.file_watch.get_or_init(|| FileWatch::start(&self.path)).as_ref();
        let deadline = Instant::now() + wait.at_most.min(MAX_WAIT);
        let every = wait.look_every.clamp(MIN_INTERVAL, MAX_WAIT);
        let mut own = self.commits.follow();
        loop {
            // Mark the current state as seen before reading, so that a commit during the read ends the wait below
            // immediately.
            own.mark_unchanged();
            let (looked_at, now) = (Instant::now(), self.clock.now());
            let is_last = looked_at >= deadline;
            if !is_last {
                if let Some(changes) = self.commits.after(after) {
                    return Ok(changes);
                }
                // This was known a moment ago. The next look is due at the interval for changes of other processes.
                if let Some(known) = self.commits.unchanged_at(after) {
                    let next = known + every;
                    if next > looked_at {
                        let _ = tokio::time::timeout_at(deadline.min(next), own.changed()).await;
                        continue;
                    }
                    // No process has written since then, so a look would find nothing.
                    let next = known + WATCHED_LOOK;
                    if let Some(watch) = watch
                        && next > looked_at
                        && watch.is_quiet_since(known)
                    {
                        tokio::select! {
                            _ = own.changed() => {}
                            () = watch.was_written_after(known) => {
                                let soon = Instant::now() + COMMIT_SOON;
                                let _ = tokio::time::timeout_at(deadline.min(soon), own.changed()).await;
                            }
                            () = tokio::time::sleep_until(deadline.min(next)) => {}
                        }
                        continue;
                    }
                }
            }
            // First compare only the change number, which costs microseconds. Read jobs only if another process has
            // committed.
            let look = move |connection: &Connection| match (reads::rev(connection)?, is_last) {
                (rev, false) if rev <= after => Ok(Changes { rev, ..Changes::default() }),
                _ => reads::changes(connection, after, now),
            };
            let changes = self.readers.run(look).await?;
            self.commits.saw(changes.rev, looked_at);
            if is_last || !changes.jobs.is_empty() {
                return Ok(changes);
            }
            if changes.rev > after {
                // There was a change, but it shows no job: the job was removed since.
                let until = deadline.min(Instant::now() + every);
                let _ = tokio::time::timeout_at(until, own.changed()).await;
            }
        }
    }
}
