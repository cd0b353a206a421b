//! The work of a detached worker: jobs until there have been none for a minute, and messages from the processes that left them.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use outlast_core::Profile;
use outlast_engine::{Engine, Shutdown, Takes, Until, Worker};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::identity::Identity;
use super::info::InfoFile;
use super::socket::{BindError, Message, OwnSocket, SocketFolder};
use super::start;
use super::workers::Workers;
use crate::config::{Config, FileRead, StoreUrl};

/// How long the store may take to know the worker.
const MAX_REGISTRATION: Duration = Duration::from_secs(5);
/// How often it is asked.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// How often it is seen whether the store is there.
const LOOK_AT_FOLDER: Duration = Duration::from_secs(5);

/// How often a busy worker with an outdated configuration looks for jobs that it leaves to the next.
const LOOK_FOR_JOBS: Duration = Duration::from_secs(1);

/// Works until idle for as long as is configured.
pub(crate) async fn work(
    engine: &Engine,
    config: &Config,
    identity: &Identity,
    profiles: &[Profile],
    workers: Option<&Workers>,
    stop: &Shutdown,
) -> anyhow::Result<()> {
    let folder = SocketFolder::of(config).context("a memory store has no worker of its own")?;
    let name = identity.socket_name();
    // Before the first claim: a worker that leaves because another is there must have no job to give back.
    let Some(lock) = folder.lock(&name).context("lock beside the store")? else {
        tracing::info!("another worker was started first");
        start::report_another();
        return Ok(());
    };
    start::report_pid();
    let base = Arc::new(Base::of(config));
    let asked = Arc::clone(&base);
    let worker = Worker::new(engine, Takes::TheQueue).while_current(move || asked.is_current());
    let mut worker = outlast_engine::spawn(worker.run(Until::IdleFor(config.worker_idle)));
    // Whoever is answered may tell a caller that a worker is there, and reads that from the store.
    registered(engine, profiles).await;
    let info = InfoFile::write(&folder, identity, config, engine.now());
    if let Err(error) = &info {
        tracing::warn!(%error, "`outlast worker list` does not show this worker");
    }
    let socket = match folder.bind(&name) {
        Ok(socket) => socket,
        // Carries what it has claimed, unseen, to its end.
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
    // From here on no process leaves a job to this worker. One that was left before is seen by what follows.
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
        Worker::new(engine, Takes::TheQueue).run(Until::IdleFor(Duration::ZERO)).await?;
    }
    tracing::info!(worker = %identity, "Detached worker ended");
    Ok(())
}

/// Leaves the jobs that wait to a worker of the present file, for as long as this one is still busy: the store knows it as a worker
/// for them.
async fn leave_jobs(engine: &Engine, workers: Option<&Workers>, stop: &Shutdown) {
    let Some(workers) = workers else { return };
    let mut has_warned = false;
    while !stop.is_asked() && !workers.is_current() {
        if !engine.is_idle().await
            && let Err(error) = workers.tell_present(Message::Look).await
            && !std::mem::replace(&mut has_warned, true)
        {
            let error = format!("{error:#}");
            tracing::warn!(%error, "no worker of the present configuration can be started; jobs wait");
        }
        tokio::time::sleep(LOOK_FOR_JOBS).await;
    }
}

/// What a worker was started with. Once that is replaced, jobs are for another worker.
struct Base {
    configuration: Option<FileRead>,
    /// The store's file and which one it is: another at its path is another store.
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
async fn registered(engine: &Engine, profiles: &[Profile]) {
    let Some(profile) = profiles.first() else { return };
    let deadline = Instant::now() + MAX_REGISTRATION;
    while Instant::now() < deadline {
        match engine.has_worker(profile).await {
            Ok(false) => tokio::time::sleep(LOOK_AGAIN).await,
            Ok(true) | Err(_) => return,
        }
    }
}

/// Does what other processes tell.
async fn listen(socket: &OwnSocket, engine: &Engine, stop: &Shutdown, base: &Base) {
    let hear = |message| match message {
        Message::Stop => stop.ask(),
        // What another store has, its own process starts a worker for, as soon as this one has left its socket.
        Message::Look | Message::Carry(_) if !base.is_current() => {}
        Message::Look => engine.look_now(),
        Message::Carry(id) => engine.carry(&id),
    };
    // No process relays a log to a worker.
    socket.listen(hear, |_| {}).await;
}

/// Leaves when the folder of the sockets is gone, and with it the store beside it, or when the socket is, without which no process leaves
/// a job to this worker.
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
