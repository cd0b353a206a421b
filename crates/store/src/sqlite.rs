//! The store people run: one SQLite file, shared by the processes of one machine.
//!
//! Writes go to one thread that commits them together, taking turns with other processes at a gate; reads
//! have connections of their own. What is decided is decided by core's rules inside the transaction.

mod open;
mod place;
mod mark;

mod commands;
mod insert;
mod keys;
mod owners;
mod prune;
mod reads;
mod conversations;
mod rows;
mod bodies;

mod gate;
mod readers;
mod writer;
mod checkpoints;

mod liveness;
mod watch;
mod workers;

mod backup;
mod restore;
mod check;
mod inspect;
mod locks;

mod fault;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{
    Cancelled, ChangeWait, Changes, Checkpoint, Claimed, Clock, ConversationId, ConversationPage,
    ConversationQuery, Dead, Insert, Inserted, Job, JobId, JobPage, JobQuery, Lease, OwnerId,
    Profile, Progress, Prune, Pruned, RemoteRun, RemoteStop, Rescued, Rev, Scope, Settlement,
    Store, StoreError, Timestamp, WorkerId, rules,
};
use tokio::time::Instant;

pub use inspect::{Inspection, inspect, is_there, sqlite_version};
pub use locks::{HeldLocks, hold_locks, locks_that_give_way};
pub use restore::{Restore, RestoreError, Restored, RestoredJob};

use fault::{Fault, of_io, unavailable};
use gate::Gate;
use liveness::Liveness;
use mark::Mark;
use open::Access;
use place::Place;
use readers::Readers;
use watch::Watch;
use writer::{Desk, Tx, Writer};

/// Keeps jobs in an SQLite file.
pub struct SqliteStore {
    clock: Arc<dyn Clock>,
    /// None in a store that is only read.
    writer: Option<Writer>,
    readers: Readers,
    watch: Watch,
    liveness: Arc<Liveness>,
    rev: Arc<tokio::sync::watch::Sender<Rev>>,
}

impl SqliteStore {
    /// Opens the store at `path`, or makes it; dates things by `clock`.
    ///
    /// Workers' liveness files go into `workers` beside the database. Blocks for a moment, longer only while
    /// another process is making the same database.
    pub fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, StoreError> {
        open::make_files(path)?;
        let mark = Mark::shared(path)?;
        // Read before the database is: another process may write both between.
        let marked = mark.read();
        // Remembered before it is opened: a file that takes its place meanwhile is then noticed.
        let place = Arc::new(Place::of(path, Access::Read)?);
        let mut gate_path = path.as_os_str().to_owned();
        gate_path.push(".wlock");
        let gate_path = Path::new(&gate_path);
        let gate =
            Gate::open(gate_path, Gate::PATIENCE).map_err(|error| of_io(gate_path, error))?;
        let connection = open::prepare(path, Some(&gate))?;
        mark::refuse_outdated(&connection, marked)?;
        let reached = mark::reached(&connection)?.ok_or_else(|| unavailable("it has no number"))?;
        mark.write(reached);
        let rev = Arc::new(tokio::sync::watch::Sender::new(Rev::default()));
        let desk = Desk {
            connection,
            place: place.clone(),
            gate,
            clock: clock.clone(),
            rev: rev.clone(),
            mark,
            store: reached.store,
        };
        Ok(Self::over(path, place, clock, rev, Some(Writer::start(desk)?)))
    }

    /// Opens an existing store to be read: nothing is made, changed or rescued, and it may lie where nothing can be
    /// written. `None` for one of an older schema, which [`SqliteStore::open`] would bring up to date.
    pub fn read(path: &Path, clock: Arc<dyn Clock>) -> Result<Option<Self>, StoreError> {
        let (connection, reads) = open::look(path)?;
        let moment = connection.unchecked_transaction().map_err(Fault::Sql)?;
        let (schema, newest) = open::schema(&moment, path)?;
        if schema < newest {
            return Ok(None);
        }
        let place = Arc::new(Place::of(path, reads)?);
        let rev = Arc::new(tokio::sync::watch::Sender::new(Rev::default()));
        Ok(Some(Self::over(path, place, clock, rev, None)))
    }

    fn over(
        path: &Path,
        place: Arc<Place>,
        clock: Arc<dyn Clock>,
        rev: Arc<tokio::sync::watch::Sender<Rev>>,
        writer: Option<Writer>,
    ) -> Self {
        Self {
            clock,
            writer,
            readers: Readers::new(place.clone()),
            watch: Watch::new(place),
            liveness: Arc::new(Liveness::new(open::directory_of(path).join("workers"))),
            rev,
        }
    }

    /// Finishes what is queued, empties the write-ahead log and removes this store's liveness files.
    ///
    /// Whatever is asked afterwards is refused as unavailable. Without this, the end of the process does no
    /// harm: the next one finds the log and the free locks.
    pub async fn close(&self) {
        self.readers.close();
        self.watch.close();
        if let Some(thread) = self.writer.as_ref().and_then(Writer::close) {
            // A writer that panicked has said so itself.
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
        self.liveness.close();
    }

    async fn write<T, F>(&self, step: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Tx<'_>) -> Result<T, Fault> + Send + 'static,
    {
        match &self.writer {
            Some(writer) => writer.run(step).await,
            None => Err(unavailable("it was opened to be read")),
        }
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        // The thread finishes what is queued by itself; to wait for it here could hold up a runtime.
        if let Some(writer) = &self.writer {
            writer.close();
        }
        self.liveness.release();
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

    async fn insert(&self, insert: Insert) -> Result<Inserted, StoreError> {
        self.write(move |tx| insert::insert(tx, insert)).await
    }

    async fn claim(
        &self,
        worker: &WorkerId,
        profiles: &[Profile],
        lease: Duration,
    ) -> Result<Option<Claimed>, StoreError> {
        self.show_life(worker).await?;
        let (worker, profiles) = (worker.clone(), profiles.to_vec());
        self.write(move |tx| commands::claim(tx, &worker, &profiles, lease)).await
    }

    async fn take(
        &self,
        worker: &WorkerId,
        profiles: &[Profile],
        id: &JobId,
        lease: Duration,
    ) -> Result<Option<Claimed>, StoreError> {
        self.show_life(worker).await?;
        let (worker, profiles, id) = (worker.clone(), profiles.to_vec(), *id);
        self.write(move |tx| commands::take(tx, &worker, &profiles, &id, lease)).await
    }

    async fn orphans(&self, profiles: &[Profile]) -> Result<Vec<JobId>, StoreError> {
        let profiles = profiles.to_vec();
        self.readers.run(move |connection| reads::orphans(connection, &profiles)).await
    }

    async fn renew(&self, leases: &[Lease], lease: Duration) -> Result<Vec<JobId>, StoreError> {
        let leases = leases.to_vec();
        self.write(move |tx| commands::renew(tx, &leases, lease)).await
    }

    async fn checkpoint(&self, lease: &Lease, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        let (lease, checkpoint) = (lease.clone(), checkpoint.clone());
        self.write(move |tx| {
            commands::write(tx, &lease, |record, now| {
                rules::checkpoint(record, &lease, &checkpoint, now)
            })
        })
        .await
    }

    async fn note(&self, lease: &Lease, progress: &Progress) -> Result<(), StoreError> {
        let (lease, progress) = (lease.clone(), progress.clone());
        self.write(move |tx| {
            commands::write(tx, &lease, |record, now| rules::note(record, &lease, &progress, now))
        })
        .await
    }

    async fn settle(&self, lease: &Lease, settlement: Settlement) -> Result<Job, StoreError> {
        let lease = lease.clone();
        self.write(move |tx| commands::settle(tx, &lease, &settlement)).await
    }

    async fn cancel(&self, scope: &Scope, id: &JobId) -> Result<Cancelled, StoreError> {
        let (scope, id) = (scope.clone(), *id);
        self.write(move |tx| commands::cancel(tx, &scope, &id)).await
    }

    async fn rescue(&self, dead: &Dead) -> Result<Rescued, StoreError> {
        let jobs = match dead {
            Dead::Proven => return self.rescue_proven().await,
            Dead::LeasesExpired => {
                let now = self.clock.now();
                // Looked for by a reader first: the writer is troubled only if there is something to put back.
                if !self.readers.run(move |connection| reads::has_expired(connection, now)).await? {
                    return Ok(Rescued::default());
                }
                let liveness = self.liveness.clone();
                self.write(move |tx| commands::rescue_expired(tx, &liveness)).await?
            }
        };
        Ok(Rescued { jobs, watched: 0 })
    }

    async fn record_late_run(&self, id: &JobId, run: &RemoteRun) -> Result<(), StoreError> {
        let (id, run) = (*id, run.clone());
        self.write(move |tx| {
            commands::amend(tx, &id, |record, now| rules::record_late_run(record, &run, now))
        })
        .await
    }

    async fn owed_stops(
        &self,
        profiles: &[Profile],
        limit: usize,
    ) -> Result<Vec<(JobId, RemoteRun)>, StoreError> {
        let profiles = profiles.to_vec();
        self.readers.run(move |connection| reads::owed_stops(connection, &profiles, limit)).await
    }

    async fn record_stop(&self, id: &JobId, outcome: RemoteStop) -> Result<(), StoreError> {
        let id = *id;
        self.write(move |tx| {
            commands::amend(tx, &id, |record, now| rules::record_stop(record, outcome, now))
        })
        .await
    }

    async fn record_answer(&self, id: &JobId) -> Result<(), StoreError> {
        let id = *id;
        self.write(move |tx| keys::answered(tx, &id)).await
    }

    async fn has_worker(&self, profile: &Profile) -> Result<bool, StoreError> {
        self.find_worker(profile).await
    }

    async fn queued(&self, profiles: &[Profile]) -> Result<u64, StoreError> {
        let profiles = profiles.to_vec();
        self.readers.run(move |connection| reads::queued(connection, &profiles)).await
    }

    async fn ahead(&self, id: &JobId) -> Result<u64, StoreError> {
        let id = *id;
        self.readers.run(move |connection| owners::ahead(connection, &id)).await
    }

    async fn dismiss(&self, worker: &WorkerId) -> Result<(), StoreError> {
        self.let_go(worker).await
    }

    async fn prune(&self, scope: &Scope, prune: &Prune) -> Result<Pruned, StoreError> {
        self.remove(scope, prune).await
    }

    async fn job(&self, scope: &Scope, id: &JobId) -> Result<Option<Job>, StoreError> {
        let (scope, id, now) = (scope.clone(), *id, self.clock.now());
        self.readers.run(move |connection| reads::job(connection, &scope, &id, now)).await
    }

    async fn list(&self, scope: &Scope, query: &JobQuery) -> Result<JobPage, StoreError> {
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

    async fn changes(&self, after: Rev, wait: ChangeWait) -> Result<Changes, StoreError> {
        const SHORTEST: Duration = Duration::from_millis(1);
        const LONGEST: Duration = Duration::from_secs(86_400);
        let deadline = Instant::now() + wait.at_most.min(LONGEST);
        let every = wait.look_every.clamp(SHORTEST, LONGEST);
        let mut own = self.rev.subscribe();
        let (mut seen, mut changes) = (None, Changes::default());
        loop {
            // Marked as known before the look, so that a commit during it ends the wait below at once.
            own.mark_unchanged();
            if let Some(looked) = self.watch.look(after, seen, self.clock.now()).await? {
                (seen, changes) = (Some(looked.0), looked.1);
            }
            let now = Instant::now();
            if !changes.jobs.is_empty() || now >= deadline {
                return Ok(changes);
            }
            // Whether it ends by a commit of ours or by the time for a wait, the next look tells.
            let _ = tokio::time::timeout_at(deadline.min(now + every), own.changed()).await;
        }
    }
}
