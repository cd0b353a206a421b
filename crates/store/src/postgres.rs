//! The store of a team: one PostgreSQL database, shared by the processes of many machines.
//!
//! A step is one transaction: lock, load, ask core's rules, save. Steps of one kind that come together share one. Change
//! numbers come from a sequence with marks, so that writers do not wait for one another and readers miss nothing; a session
//! with locks proves workers alive. The server's clock dates everything.

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
    Claimed, Clock, EndNotices, Insert, Inserted, Job, JobId, StoreError, Timestamp,
};
use tokio::sync::{Notify, RwLock};
use tokio_util::sync::CancellationToken;

pub use address::{AddressError, ConnectionDefaults, with_defaults, without_password};
pub use session::WakeupMode;
pub(crate) use transfer::PostgresSide;
pub use upkeep::DatabaseInspection;
pub use workers::Judgement;

use batch::Queue;
use claims::Claim;
pub use connect::ConnectionLimits;
use connect::Target;
use lineage::Lineage;
use session::{Session, Wakeups};
use time::Time;
use workers::Suspects;
use writes::{Effect, Write};

/// How a store is opened.
pub struct PostgresOptions {
    /// The database: `postgres://user:password@host[:port][,host...]/database?sslmode=...`.
    pub url: String,
    /// Dates everything in the place of the server's clock: for tests.
    pub clock: Option<Arc<dyn Clock>>,
    /// When a worker counts as dead.
    pub judgement: Judgement,
    /// Whether a notice is kept of every end.
    pub notices: EndNotices,
    /// The limits of its connections.
    pub limits: ConnectionLimits,
    /// The user's state directory, which has a mark of how far the store has come.
    pub state_dir: Option<PathBuf>,
}

/// Keeps jobs in a PostgreSQL database.
pub struct PostgresStore {
    shared: Arc<Shared>,
    closed: CancellationToken,
    id: String,
}

/// The connections of one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// Open connections of the pool.
    pub open: usize,
    /// Those that do nothing.
    pub idle: usize,
    /// Steps that wait for one.
    pub waiting: usize,
    /// How late other processes hear of a change of this one.
    pub lag: Duration,
    /// The time for which the database has not answered; `None` while it does.
    pub silent_for: Option<Duration>,
    /// The time since it answered again after such a silence, less the limit of a statement: a step that failed before may have
    /// met the silence.
    pub sound_for: Option<Duration>,
}

/// What the parts of a store share.
struct Shared {
    pool: Pool,
    time: Time,
    /// `None` in a store that was opened only to be read.
    lineage: Option<Arc<Lineage>>,
    session: Arc<Session>,
    wakeups: Arc<Wakeups>,
    suspects: Suspects,
    judgement: Judgement,
    notices: EndNotices,
    limits: ConnectionLimits,
    inserts: Queue<(Insert, JobId), Inserted>,
    writes: Queue<Write, (Job, Effect)>,
    notes: Queue<Write, (Job, Effect)>,
    claims: Queue<Claim, Option<Claimed>>,
    /// Told when the words of a job are to be put.
    owed_words: Arc<Notify>,
    /// Shared by answers that are being recorded; an insert waits for them, because its key may be theirs.
    answers: RwLock<()>,
}

impl PostgresStore {
    /// Connects, and makes or updates the tables.
    pub fn open(options: PostgresOptions) -> BoxFuture<'static, Result<Self, StoreError>> {
        Self::connect(options).boxed()
    }

    async fn connect(options: PostgresOptions) -> Result<Self, StoreError> {
        let target = Arc::new(Target::parse(&options.url)?);
        let limits = options.limits;
        let (mut client, connection) = target.connect_within(limits.connect).await?;
        let driving = tokio::spawn(connection);
        target.prepare(&client).await?;
        let state_dir = options.state_dir.as_deref();
        schema::prepare(&mut client, state_dir).await?;
        alone::refuse_closed(&client).await?;
        let time = Time::of(options.clock, &client).await?;
        let id = schema::store_id(&client).await?;
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
        let shared =
            Shared::new(pool, (session, wakeups), time, Some(Arc::clone(&lineage)), judged, limits);
        let shared = Arc::new(shared);
        // A store that cannot be opened ends its session when it is dropped.
        let store = Self { shared, closed, id };
        let Self { shared, closed, .. } = &store;
        shared.session.live().await?;
        shared.session.probe(&shared.pool, &shared.wakeups).await?;
        Shared::gather(shared);
        let owed_words = Arc::clone(&shared.owed_words);
        tokio::spawn(words::run(Arc::downgrade(shared), owed_words, closed.clone()).boxed());
        tokio::spawn(lineage.keep_mark(closed.clone()).boxed());
        Ok(store)
    }

    /// Opens a database to read it, also on a standby: nothing is made or changed in it, and no other process is told. `None` if its tables
    /// are not of this version.
    pub async fn read(url: &str, limits: ConnectionLimits) -> Result<Option<Self>, StoreError> {
        let target = Target::parse(url)?;
        let (client, connection) = target.connect_within(limits.connect).await?;
        let driving = tokio::spawn(connection);
        target.prepare(&client).await?;
        let (schema, newest) = schema::version(&client).await?;
        if schema != Some(newest) {
            return Ok(None);
        }
        alone::refuse_closed(&client).await?;
        let time = Time::of(None, &client).await?;
        let id = schema::store_id(&client).await?;
        driving.abort();
        let pool = target.pool(limits, None)?;
        let told = (Arc::new(Session::new(limits.statement)), Arc::new(Wakeups::new()));
        let judged = (Judgement::default(), EndNotices::Off);
        let shared = Arc::new(Shared::new(pool, told, time, None, judged, limits));
        Ok(Some(Self { shared, closed: CancellationToken::new(), id }))
    }

    /// Names this store, whatever its address.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// How this process hears of others.
    pub fn wakeup_mode(&self) -> WakeupMode {
        self.shared.session.mode()
    }

    /// How the connections of this process stand.
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
                .recovered_for()
                .map(|since| since.saturating_sub(self.shared.limits.statement)),
        }
    }

    /// Ends the session: this process's workers count as dead from now on.
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

impl Shared {
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
