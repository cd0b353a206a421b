//! The store of a team: one PostgreSQL database that the processes of many machines share.
//!
//! Each step is one transaction: lock, load, ask core's rules, save. Concurrent steps of one kind share a transaction. Change
//! numbers come from a sequence with marks, so writers do not wait for one another and readers miss nothing. A session with
//! locks proves that workers are alive. All times come from the server's clock.

mod port;

mod address;
mod password_file;
mod connect;
mod schema;

mod tx;
mod step;
mod batch;

mod insert;
mod identities;
mod room;
mod ledger;
mod journal;
mod claims;
mod writes;
mod notices;
mod partials;
mod prune;
mod upkeep;
mod alone;
mod lineage;
mod mark;
mod restore;
mod transfer;
mod reads;
mod rows;
mod words;
mod titles;
mod text;

mod session;
mod workers;
mod changes;
mod time;

mod fault;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use deadpool_postgres::Pool;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use outlast_core::{
    ClaimedJob, Clock, EndNotices, Insert, InsertOutcome, Job, JobId, StoreError, Timestamp,
};
use tokio::sync::{Notify, RwLock};
use tokio_util::sync::CancellationToken;

pub use address::{AddressError, ConnectionDefaults, with_defaults, without_password};
pub use session::WakeupMode;
pub(crate) use transfer::PostgresSide;
pub use upkeep::DatabaseInspection;
pub use workers::Judgement;

use batch::Queue;
use claims::ClaimRequest;
pub use connect::ConnectionLimits;
use connect::DatabaseTarget;
use lineage::Lineage;
use session::{Session, Wakeups};
use time::Time;
use workers::Suspects;
use writes::{Effect, Write};

/// Options for opening a store.
pub struct PostgresOptions {
    /// The database: `postgres://user:password@host[:port][,host...]/database?sslmode=...`.
    pub url: String,
    /// Replaces the server's clock, for tests.
    pub clock: Option<Arc<dyn Clock>>,
    /// The rules by which a worker counts as dead.
    pub judgement: Judgement,
    /// Sets whether a notice of every end is stored.
    pub notices: EndNotices,
    /// The limits of the store's connections.
    pub limits: ConnectionLimits,
    /// The user's state directory, which holds a mark of the store's latest state.
    pub state_dir: Option<PathBuf>,
}

/// A store that keeps jobs in a PostgreSQL database.
pub struct PostgresStore {
    shared: Arc<StoreShared>,
    closed: CancellationToken,
    id: String,
}

/// The state of one process's connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// Open connections of the pool.
    pub open: usize,
    /// Idle connections of the pool.
    pub idle: usize,
    /// Steps that wait for a connection.
    pub waiting: usize,
    /// The delay before other processes receive a change of this one.
    pub lag: Duration,
    /// The time since the database stopped responding; `None` while it responds.
    pub silent_for: Option<Duration>,
    /// The time since the database responded again after such a silence, minus the statement timeout. A step that failed
    /// before may have been affected by the silence.
    pub sound_for: Option<Duration>,
}

/// The state that all parts of a store share.
struct StoreShared {
    pool: Pool,
    time: Time,
    /// `None` in a store that was opened only for reading.
    lineage: Option<Arc<Lineage>>,
    session: Arc<Session>,
    wakeups: Arc<Wakeups>,
    suspects: Suspects,
    judgement: Judgement,
    notices: EndNotices,
    limits: ConnectionLimits,
    inserts: Queue<(Insert, JobId), InsertOutcome>,
    writes: Queue<Write, (Job, Effect)>,
    notes: Queue<Write, (Job, Effect)>,
    claims: Queue<ClaimRequest, Option<ClaimedJob>>,
    /// Notified when the words of a job must be indexed.
    owed_words: Arc<Notify>,
    /// Held shared while answers are recorded. An insert waits for these answers, because they may belong to its key.
    answers: RwLock<()>,
}

impl PostgresStore {
    /// Connects, and creates or updates the tables.
    pub fn open(options: PostgresOptions) -> BoxFuture<'static, Result<Self, StoreError>> {
        Self::connect(options).boxed()
    }

    async fn connect(options: PostgresOptions) -> Result<Self, StoreError> {
        let target = Arc::new(DatabaseTarget::parse(&options.url)?);
        let limits = options.limits;
        let (mut client, connection) = target.connect_within(limits.connect).await?;
        let driving = tokio::spawn(connection);
        target.prepare(&client).await?;
        let state_dir = options.state_dir.as_deref();
        schema::prepare(&mut client, state_dir).await?;
        alone::refuse_closed(&client).await?;
        let time = Time::of(options.clock, &client).await?;
        let id = lineage::store_id(&client).await?;
        let lineage = Arc::new(Lineage::open(&client, &id, state_dir).await?);
        drop(client);
        driving.abort();
        let pool = target.pool(limits, Some(Arc::clone(&lineage)))?;
        let session = Arc::new(Session::new(limits.statement));
        let wakeups = Arc::new(Wakeups::new());
        let closed = CancellationToken::new();
        let running =
            Arc::clone(&session).run(Arc::clone(&target), Arc::clone(&wakeups), closed.clone());
        tokio::spawn(running.boxed());
        let judged = (options.judgement, options.notices);
        let shared = StoreShared::new(
            pool,
            (session, wakeups),
            time,
            Some(Arc::clone(&lineage)),
            judged,
            limits,
        );
        let shared = Arc::new(shared);
        // If opening fails, dropping the store ends its session.
        let store = Self { shared, closed, id };
        let Self { shared, closed, .. } = &store;
        shared.session.live().await?;
        shared.session.probe(&shared.pool, &shared.wakeups).await?;
        StoreShared::gather(shared);
        let owed_words = Arc::clone(&shared.owed_words);
        tokio::spawn(words::run(Arc::downgrade(shared), owed_words, closed.clone()).boxed());
        tokio::spawn(lineage.keep_mark(closed.clone()).boxed());
        Ok(store)
    }

    /// Opens a database only for reading, which also works on a standby. It creates and changes nothing, and notifies no
    /// other process. Returns `None` if the tables are not of this version.
    pub async fn read(url: &str, limits: ConnectionLimits) -> Result<Option<Self>, StoreError> {
        let target = DatabaseTarget::parse(url)?;
        let (client, connection) = target.connect_within(limits.connect).await?;
        let driving = tokio::spawn(connection);
        target.prepare(&client).await?;
        let (schema, newest) = schema::version(&client).await?;
        if schema != Some(newest) {
            return Ok(None);
        }
        alone::refuse_closed(&client).await?;
        let time = Time::of(None, &client).await?;
        let id = lineage::store_id(&client).await?;
        driving.abort();
        let pool = target.pool(limits, None)?;
        let told = (Arc::new(Session::new(limits.statement)), Arc::new(Wakeups::new()));
        let judged = (Judgement::default(), EndNotices::Off);
        let shared = Arc::new(StoreShared::new(pool, told, time, None, judged, limits));
        Ok(Some(Self { shared, closed: CancellationToken::new(), id }))
    }

    /// The id of this store, independent of its address.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The way in which this process receives changes of other processes.
    pub fn wakeup_mode(&self) -> WakeupMode {
        self.shared.session.mode()
    }

    /// The state of this process's connections.
    pub fn connections(&self) -> Connections {
        let pool = self.shared.pool.status();
        Connections {
            open: pool.size,
            idle: pool.available,
            waiting: pool.waiting,
            lag: self.shared.session.lag(),
            silent_for: self.shared.session.silent_for(),
            sound_for: self
                .shared
                .session
                .time_since_recovery()
                .map(|since| since.saturating_sub(self.shared.limits.statement)),
        }
    }

    /// Checks that the database responds, if it has not done so for a second, and updates [`PostgresStore::connections`].
    pub async fn check_responds(&self) {
        self.shared.session.check().await;
    }

    /// Ends the session. From now on, this process's workers count as dead.
    pub async fn close(&self) {
        self.shared.session.let_all_go().await;
        if let Some(lineage) = &self.shared.lineage {
            lineage.write_mark();
        }
        self.closed.cancel();
        self.shared.pool.close();
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.closed.cancel();
    }
}

impl StoreShared {
    fn new(
        pool: Pool,
        (session, wakeups): (Arc<Session>, Arc<Wakeups>),
        time: Time,
        lineage: Option<Arc<Lineage>>,
        (judgement, notices): (Judgement, EndNotices),
        limits: ConnectionLimits,
    ) -> Self {
        Self {
            pool,
            time,
            lineage,
            session,
            wakeups,
            suspects: Suspects::default(),
            judgement,
            notices,
            limits,
            inserts: OnceLock::new(),
            writes: OnceLock::new(),
            notes: OnceLock::new(),
            claims: OnceLock::new(),
            owed_words: Arc::new(Notify::new()),
            answers: RwLock::new(()),
        }
    }

    fn now(&self) -> Timestamp {
        self.time.now()
    }
}
