//! The work of a detached worker: it runs jobs until there have been none for a minute, and handles messages from the
//! processes that left them.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use outlast_core::Profile;
use outlast_engine::{
    DetachedWorkers as _, Engine, LeaveTime, Shutdown, WaitingJobs, Worker, WorkerRole,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::identity::WorkerIdentity;
use super::info::InfoFile;
use super::socket::{BindError, Message, OwnSocket, SocketFolder};
use super::start;
use super::workers::Workers;
use crate::config::{Config, FileRead, StoreUrl};

/// The time within which the store must know the worker.
const MAX_REGISTRATION: Duration = Duration::from_secs(5);
/// The interval at which the store is asked.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// The interval of the checks that the store still exists.
const LOOK_AT_FOLDER: Duration = Duration::from_secs(10);

/// The interval at which a busy worker with an outdated configuration looks for jobs to leave to the next worker.
const LOOK_FOR_JOBS: Duration = Duration::from_secs(1);

/// Works until idle for the configured time.
pub(crate) async fn work(
    engine: &Engine,
    config: &Config,
    identity: &WorkerIdentity,
    profiles: &[Profile],
    workers: Option<&Workers>,
    stop: &Shutdown,
) -> anyhow::Result<()> {
    let folder = SocketFolder::of(config).context("a memory store has no detached worker")?;
    let name = identity.socket_name();
    // Locked before the first claim: a worker that exits because another is there must have no job to release.
    let Some(lock) = folder.lock(&name).context("lock beside the store")? else {
        tracing::info!("another worker was started first");
        start::report_another();
        return Ok(());
    };
    start::report_pid();
    let base = Arc::new(Base::of(config));
    let asked = Arc::clone(&base);
    let worker =
        Worker::new(engine, WorkerRole::TheQueue).while_current(move || asked.is_current());
    let mut worker = outlast_engine::spawn(worker.run(LeaveTime::IdleFor(config.worker_idle)));
    // A process that gets the answer may report to a caller that a worker is there, and reads that from the store.
    register(engine, profiles).await;
    let info = InfoFile::write(&folder, identity, config, engine.now());
    if let Err(error) = &info {
        tracing::warn!(%error, "`outlast worker list` does not show this worker");
    }
    let socket = match folder.bind(&name) {
        Ok(socket) => socket,
        // Runs its claimed jobs to their end, unseen.
        Err(BindError::Taken) => return Ok(worker.await??),
        Err(BindError::Io(error)) => {
            stop.ask();
            drop(worker.await);
            return Err(anyhow::Error::new(error).context("listen beside the store"));
        }
    };
    if let Err(error) = start::leave_starter() {
        tracing::warn!(%error, "failed to close the connection to the starter");
    }
    tracing::info!(worker = %identity, pid = std::process::id(), "Detached worker started");
    let watched = async {
        tokio::join!(
            listen(&socket, engine, stop, &base),
            leave_with_the_store(&socket, &folder, stop, &base)
        );
        std::future::pending().await
    };
    let ended = tokio::select! {
        worked = &mut worker => Some(worked),
        () = base.replaced.cancelled() => None,
        () = watched => None,
    };
    // From here on no process leaves a job to this worker. The next lines find any job that was left before.
    folder.remove_lock(&name);
    drop((info, socket, lock));
    folder.remove_dead();
    let worked = match ended {
        Some(worked) => worked,
        None => tokio::select! {
            worked = &mut worker => worked,
            () = leave_jobs(engine, workers, stop) => worker.await,
        },
    };
    worked??;
    if !stop.is_asked() && base.is_current() && !engine.is_idle().await {
        Worker::new(engine, WorkerRole::TheQueue).run(LeaveTime::IdleFor(Duration::ZERO)).await?;
    }
    tracing::info!(worker = %identity, "Detached worker ended");
    Ok(())
}

/// Leaves the waiting jobs to a worker of the present file while this one is still busy, because the store lists this
/// one as a worker for them.
async fn leave_jobs(engine: &Engine, workers: Option<&Workers>, stop: &Shutdown) {
    let Some(workers) = workers else { return };
    let mut has_warned = false;
    while !stop.is_asked() && !workers.is_current() {
        if !engine.is_idle().await
            && let Err(error) = workers.notify_present(WaitingJobs::Queue).await
            && !std::mem::replace(&mut has_warned, true)
        {
            let error = format!("{error:#}");
            tracing::warn!(%error, "no worker of the present configuration can be started; jobs wait");
        }
        tokio::time::sleep(LOOK_FOR_JOBS).await;
    }
}

/// The files that a worker was started with. Once one is replaced, jobs are for another worker.
struct Base {
    configuration: Option<FileRead>,
    /// The store's file and its identity: another file at its path is another store.
    store: Option<(PathBuf, (u64, u64))>,
    /// Cancelled when one of them was replaced.
    replaced: CancellationToken,
}

impl Base {
    fn of(config: &Config) -> Self {
        let store = match &config.store {
            StoreUrl::Sqlite(path) => which_file(path).map(|file| (path.clone(), file)),
            StoreUrl::Postgres(_) | StoreUrl::Memory => None,
        };
        Self { configuration: config.file.clone(), store, replaced: CancellationToken::new() }
    }

    fn is_current(&self) -> bool {
        if self.replaced.is_cancelled() {
            return false;
        }
        let is_same = |(path, file): &(PathBuf, _)| which_file(path).as_ref() == Some(file);
        let why = if self.configuration.as_ref().is_some_and(|file| !file.is_current()) {
            "the configuration has changed"
        } else if self.store.as_ref().is_some_and(|store| !is_same(store)) {
            "the store's file was removed or replaced"
        } else {
            return true;
        };
        self.is_over(why);
        false
    }

    fn is_over(&self, why: &str) {
        tracing::info!(why, "No job is taken any more");
        self.replaced.cancel();
    }
}

fn which_file(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

/// Waits until the store knows this worker.
async fn register(engine: &Engine, profiles: &[Profile]) {
    let Some(profile) = profiles.first() else { return };
    let deadline = Instant::now() + MAX_REGISTRATION;
    while Instant::now() < deadline {
        match engine.has_worker(profile).await {
            Ok(false) => tokio::time::sleep(LOOK_AGAIN).await,
            Ok(true) | Err(_) => return,
        }
    }
}

/// Handles the messages of other processes.
async fn listen(socket: &OwnSocket, engine: &Engine, stop: &Shutdown, base: &Base) {
    let hear = |message| match message {
        Message::Stop => stop.ask(),
        // For the jobs of another store, its own process starts a worker as soon as this one has left its socket.
        Message::Look | Message::Carry(_) if !base.is_current() => {}
        Message::Look => engine.look_now(),
        Message::Carry(id) => engine.carry(&id),
    };
    // No process relays a log to a worker.
    socket.listen(hear, |_| {}).await;
}

/// Exits when the folder of the sockets is gone, and with it the store next to it, or when the socket is gone, without
/// which no process leaves a job to this worker.
async fn leave_with_the_store(
    socket: &OwnSocket,
    folder: &SocketFolder,
    stop: &Shutdown,
    base: &Base,
) {
    while folder.is_there() {
        if !base.is_current() {
            return;
        }
        if !socket.is_found() {
            base.is_over("the worker's socket was removed");
            return;
        }
        tokio::time::sleep(LOOK_AT_FOLDER).await;
    }
    tracing::warn!("the folder beside the store was removed, leaving");
    stop.ask();
}
