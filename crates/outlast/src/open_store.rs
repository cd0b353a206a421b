//! The open store of the configuration, and an engine over it.

use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use anyhow::Context as _;
use futures_util::future::BoxFuture;
use outlast_core::{Clock, EndNotices, Profile, Store, StoreError};
use outlast_engine::{Engine, Observers, Options, Providers, RunRetention, Shutdown};
use outlast_mirror::{Mirror, MirrorOptions};
use outlast_server::{Database, DatabaseFigures, Metrics};
use outlast_store::{
    ConnectionLimits, Connections, Judgement, MemoryStore, PostgresOptions, PostgresStore,
    SqliteFile, SqliteStore, SystemClock, WakeupMode,
};
use tokio::task::JoinHandle;

use crate::audit::AuditFile;
use crate::config::{CitationChecks, Config, LOCAL, Secret, StoreUrl};
use crate::data_dir;
use crate::detached::socket::SocketFolder;
use crate::detached::telling::ChangeNotifier;
use crate::error::{CommandError, CommandResult, OrUsage as _, refuse};
use crate::kill_points::{KillPoint, KillPointStore, KillingObserver};
use crate::metered::WriteCounter;
use crate::wire::notifier;

/// An engine over an open store, and the parts that belong to it.
pub(crate) struct OpenEngine {
    pub(crate) engine: Engine,
    /// Follows the store's changes for the engine, until it is asked to stop.
    pub(crate) follower: JoinHandle<()>,
    /// The files of the owner's conversations, if they are written.
    pub(crate) mirror: Option<Arc<Mirror>>,
    /// The audit file, if one is configured.
    pub(crate) audit: Option<Arc<AuditFile>>,
}

/// An open store, to be closed by the command that opened it.
pub(crate) struct OpenStore {
    store: Arc<dyn Store>,
    pub(crate) backend: Backend,
    /// The point at which this process is killed, in a test.
    kill_point: Option<KillPoint>,
}

/// The concrete store, for operations that only some stores have.
pub(crate) enum Backend {
    Memory,
    Sqlite(Arc<SqliteStore>),
    Postgres(Arc<PostgresStore>),
}

/// Decides if opening waits for a database that is unreachable. A person at a terminal gets the error at once.
#[derive(Clone, Copy)]
pub(crate) enum OpenPatience {
    None,
    AsConfigured,
}

/// The longest path of a database that SQLite opens, in bytes.
const MAX_DATABASE_PATH: usize = 504;

/// Refuses a path that SQLite cannot open, because SQLite itself does not report the reason.
pub(crate) fn check_path_length(url: &StoreUrl) -> CommandResult<()> {
    let StoreUrl::Sqlite(path) = url else { return Ok(()) };
    let length = std::path::absolute(path).map_or(0, |path| path.as_os_str().len());
    if length <= MAX_DATABASE_PATH {
        return Ok(());
    }
    let why = format!(
        "the path of the job store is too long ({length} bytes, at most {MAX_DATABASE_PATH}): {}",
        path.display()
    );
    Err(CommandError::wrong(why, "give --data-dir a directory with a shorter path"))
}

impl OpenStore {
    /// Opens the configured store.
    pub(crate) async fn open(config: &Config) -> CommandResult<Self> {
        Self::open_by(config, None, Judgement::default(), OpenPatience::None).await
    }

    /// Opens it with this clock instead of the store's clock.
    pub(crate) async fn open_by(
        config: &Config,
        clock: Option<Arc<dyn Clock>>,
        judgement: Judgement,
        patience: OpenPatience,
    ) -> CommandResult<Self> {
        let (url, notices) = (&config.store, config.end_notices());
        match url {
            StoreUrl::Memory => Ok(Self::memory(clock, notices)),
            StoreUrl::Sqlite(path) => {
                check_path_length(url)?;
                if path.parent() == Some(&*config.data_dir) {
                    data_dir::prepare(&config.data_dir)?;
                }
                let file = SqliteFile { path, state_dir: config.state_dir.as_deref() };
                let opened = SqliteStore::open(file, or_system(clock));
                let store = opened.map_err(|error| cannot_open(error, url))?;
                Ok(Self::sqlite_store(store.with_notices(notices)))
            }
            StoreUrl::Postgres(Secret(address)) => {
                let limits = match patience {
                    OpenPatience::None => {
                        ConnectionLimits { connect: Duration::ZERO, ..config.connection_limits }
                    }
                    OpenPatience::AsConfigured => config.connection_limits,
                };
                let state_dir = Some(marks_of(config).to_owned());
                let options = PostgresOptions {
                    url: address.clone(),
                    clock,
                    judgement,
                    notices,
                    limits,
                    state_dir,
                };
                let opened = PostgresStore::open(options).await;
                let store = Arc::new(opened.map_err(|error| cannot_open(error, url))?);
                Ok(Self {
                    store: store.clone(),
                    backend: Backend::Postgres(store),
                    kill_point: None,
                })
            }
        }
    }

    /// Opens it for a command that only reads: nothing is created or changed, and a missing store has no jobs.
    pub(crate) async fn to_read(config: &Config) -> CommandResult<Self> {
        let url = &config.store;
        let path = match url {
            StoreUrl::Sqlite(path) => path,
            StoreUrl::Postgres(Secret(address)) => {
                return Self::database_to_read(config, address).await;
            }
            StoreUrl::Memory => return Self::open(config).await,
        };
        if !is_there(url, path)? {
            return Ok(Self::memory(None, EndNotices::Off));
        }
        let read = SqliteStore::read(path, Arc::new(SystemClock));
        match read.map_err(|error| cannot_open(error, url))? {
            Some(sqlite) => Ok(Self::sqlite_store(sqlite)),
            // It has an older schema, which is upgraded first.
            None => Self::open(config).await,
        }
    }

    /// Opens a database for reading, which may be a standby.
    async fn database_to_read(config: &Config, address: &str) -> CommandResult<Self> {
        let limits = ConnectionLimits { connect: Duration::ZERO, ..config.connection_limits };
        let read = PostgresStore::read(address, limits).await;
        match read.map_err(|error| cannot_open(error, &config.store))? {
            Some(store) => {
                let store = Arc::new(store);
                Ok(Self {
                    store: store.clone(),
                    backend: Backend::Postgres(store),
                    kill_point: None,
                })
            }
            None => Self::open(config).await,
        }
    }

    /// Opens it for a command that changes existing jobs: a missing store is not created.
    pub(crate) async fn open_existing(config: &Config) -> CommandResult<Self> {
        match &config.store {
            StoreUrl::Sqlite(path) if !is_there(&config.store, path)? => {
                Ok(Self::memory(None, EndNotices::Off))
            }
            StoreUrl::Sqlite(_) | StoreUrl::Postgres(_) | StoreUrl::Memory => {
                Self::open(config).await
            }
        }
    }

    fn memory(clock: Option<Arc<dyn Clock>>, notices: EndNotices) -> Self {
        let store = MemoryStore::new(or_system(clock)).with_notices(notices);
        Self { store: Arc::new(store), backend: Backend::Memory, kill_point: None }
    }

    fn sqlite_store(store: SqliteStore) -> Self {
        let store = Arc::new(store);
        Self { store: store.clone(), backend: Backend::Sqlite(store), kill_point: None }
    }

    /// Returns the same store, which kills this process at a point.
    pub(crate) fn with_kill_point(self, point: Option<KillPoint>) -> Self {
        let Some(point) = point else { return self };
        let store = Arc::new(KillPointStore { store: self.store, point });
        Self { store, kill_point: Some(point), backend: self.backend }
    }

    /// Returns the observers of this process's writes: they count the writes, and notify other processes on the store.
    /// This process listens under `own`.
    pub(crate) fn observers(
        &self,
        metrics: &Arc<Metrics>,
        folder: Option<SocketFolder>,
        own: String,
    ) -> Observers {
        if let Backend::Postgres(store) = &self.backend {
            metrics.with_database(MeteredDatabase(Arc::downgrade(store)));
        }
        let mut observers = Observers::default();
        observers.add(Arc::new(WriteCounter::new(Arc::clone(metrics))));
        self.kill_after(KillPoint::AfterCounting, &mut observers);
        if let Some(folder) = folder {
            observers.add(Arc::new(ChangeNotifier { folder, own }));
        }
        self.kill_after(KillPoint::AfterNotifying, &mut observers);
        observers
    }

    /// Adds the observer that kills this process here, if this is the chosen point.
    fn kill_after(&self, point: KillPoint, observers: &mut Observers) {
        if self.kill_point == Some(point) {
            observers.add(Arc::new(KillingObserver { point }));
        }
    }

    /// Creates an engine over it.
    pub(crate) async fn engine(
        &self,
        config: &Config,
        options: Options,
        providers: Providers,
        stop: Shutdown,
    ) -> CommandResult<OpenEngine> {
        config.clock.follow(&self.store);
        let mut options = Options { notifier: notifier(config)?, ..options };
        let mirror = self.mirror(config, &providers)?;
        if let Some(mirror) = &mirror {
            options.observers.add(mirror.clone());
        }
        let audit = match &config.audit_file {
            None => None,
            Some(path) => {
                let audit = AuditFile::open(path.clone()).context("start the audit thread");
                Some(Arc::new(audit?))
            }
        };
        if let Some(audit) = &audit {
            options.observers.add(audit.clone());
        }
        self.kill_after(KillPoint::AfterFiles, &mut options.observers);
        let made = Engine::new(Arc::clone(&self.store), providers, options, stop).await;
        let (engine, follower) =
            made.map_err(|error| unusable(error, "read the job store".to_owned(), &config.store))?;
        Ok(OpenEngine { engine, follower, mirror, audit })
    }

    /// Returns the writer of the owner's conversation files. A store in memory has none; for a file, the mirror's locks
    /// are next to it too, so that all processes on it share them.
    fn mirror(&self, config: &Config, providers: &Providers) -> CommandResult<Option<Arc<Mirror>>> {
        let Some(logs_dir) = &config.conversation_logs else { return Ok(None) };
        let state_dir = match (&config.store, &self.backend) {
            (StoreUrl::Sqlite(database), _) => database.with_added_extension("mirror"),
            (_, Backend::Postgres(store)) => config.data_dir.join(format!("{}.mirror", store.id())),
            (StoreUrl::Memory | StoreUrl::Postgres(_), _) => return Ok(None),
        };
        let options =
            MirrorOptions { logs_dir: logs_dir.clone(), state_dir, owner: config.owner.clone() };
        let mirror = Mirror::open(Arc::clone(&self.store), providers.clone(), options)
            .with_context(|| format!("find the conversations' directory {}", logs_dir.display()))
            .or_usage("set CONVERSATION_LOGS_DIR, or give --no-mirror")?;
        Ok(Some(Arc::new(mirror)))
    }

    /// Closes it; every acknowledged write was already durable.
    pub(crate) async fn close(self) {
        match self.backend {
            Backend::Memory => {}
            Backend::Sqlite(store) => store.close().await,
            Backend::Postgres(store) => store.close().await,
        }
    }
}

/// Returns the directory with the marks of databases: in the user's state directory, or in the data directory without a
/// home directory.
pub(crate) fn marks_of(config: &Config) -> &Path {
    config.state_dir.as_deref().unwrap_or(&config.data_dir)
}

/// The database of the metrics; a closed store has no connection.
struct MeteredDatabase(Weak<PostgresStore>);

impl Database for MeteredDatabase {
    fn check(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Some(store) = self.0.upgrade() {
                store.check_responds().await;
            }
        })
    }

    fn figures(&self) -> DatabaseFigures {
        let store = self.0.upgrade();
        let connections = store.as_ref().map(|store| store.connections());
        let Connections { open, idle, waiting, lag, silent_for, sound_for } =
            connections.unwrap_or_default();
        let is_told = store.is_some_and(|store| store.wakeup_mode() == WakeupMode::Sessions);
        let is_silent = silent_for.is_some();
        DatabaseFigures { open, idle, waiting, lag, is_told, is_silent, sound_for }
    }
}

fn or_system(clock: Option<Arc<dyn Clock>>) -> Arc<dyn Clock> {
    clock.unwrap_or_else(|| Arc::new(SystemClock))
}

/// Returns the engine's options from the configuration.
pub(crate) fn options(config: &Config) -> Options {
    Options {
        concurrency: config.concurrency,
        retry_base: config.perplexity.retry_base,
        max_unfinished: config.max_jobs_per_owner,
        max_bytes: config.max_bytes_per_owner,
        spend_limits: config.spend_limits,
        polls: config.polls,
        check_reports: config.citations.check == CitationChecks::Always,
        sweep_interval: config.perplexity.research_sweep_interval,
        keep_runs: Some(RunRetention { provider: Profile::RESEARCHER, keep: config.keep_pages }),
        ..Options::default()
    }
}

/// Refuses the owner that means "the person at this machine" if many machines share the store.
pub(crate) fn check_owner(config: &Config) -> CommandResult<()> {
    if matches!(config.store, StoreUrl::Postgres(_)) && config.owner.as_str() == LOCAL {
        let why = format!(
            "a store that many machines share needs named owners: `{LOCAL}` would be one on every machine"
        );
        return refuse(why, "set OUTLAST_OWNER to your name");
    }
    Ok(())
}

/// Returns true if there is a store at this path. A log file without its store means that the store was lost, and is an
/// error.
fn is_there(url: &StoreUrl, path: &Path) -> CommandResult<bool> {
    let found = outlast_store::is_there(path);
    found.map_err(|error| cannot_open(error, url))
}

fn cannot_open(error: StoreError, url: &StoreUrl) -> CommandError {
    unusable(error, format!("open the job store at {url}"), url)
}

/// Describes the attempted operation on a store that cannot be used.
pub(crate) fn unusable(error: StoreError, attempt: String, url: &StoreUrl) -> CommandError {
    let hint = store_hint(&error, url);
    CommandError::usage(anyhow::Error::new(error).context(attempt), hint)
}

const OUTDATED: &str = "stop every process that uses the store, then run `outlast store restore --in-place`: it ends \
                        what may have been run and paid for since, and the store can be used again";

/// Returns the next step for a store that cannot be used.
pub(crate) fn store_hint(error: &StoreError, url: &StoreUrl) -> &'static str {
    let is_database = matches!(url, StoreUrl::Postgres(_));
    match error {
        StoreError::Newer { .. } if is_database => "update outlast on this machine",
        StoreError::Newer { .. } => "update outlast, or point OUTLAST_STORE at another file",
        StoreError::Corrupt { .. } if is_database => "restore a dump of the database",
        StoreError::Corrupt { .. } => "restore a backup, or point OUTLAST_STORE at a new file",
        StoreError::Outdated { .. } => OUTDATED,
        StoreError::Full => "make room on the disk",
        _ if is_database => {
            "check that the database is up, that OUTLAST_STORE is right, and that its user may make tables \
             (docs/postgres.md)"
        }
        _ => "check that the directory exists and can be written, or give --data-dir",
    }
}
