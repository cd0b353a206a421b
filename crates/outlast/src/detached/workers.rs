//! The detached workers to which a process may leave jobs: the one of the configuration that it has read and, once the
//! file has changed, the one of the present file. A process with an outdated configuration runs no job with it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use futures_util::future::BoxFuture;
use outlast_core::BoxError;
use outlast_engine::{DetachedWorkers, WaitingJobs};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::socket::Message;
use super::start::WorkerStarter;
use crate::cli::Global;
use crate::config::{Config, FileRead};
use crate::error::CommandResult;

/// The time limit for a worker that is stopped together with this process.
const MAX_LEAVING: Duration = Duration::from_secs(2);
/// The interval between checks of such a worker.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Reads the configuration again, with the flags of this process.
pub(crate) type Reload = Box<dyn Fn() -> CommandResult<Config> + Send + Sync>;

/// The workers of one process.
pub(crate) struct Workers {
    own: WorkerStarter,
    /// The file that this process has read.
    read: Option<FileRead>,
    global: Global,
    library: Vec<PathBuf>,
    reload: Reload,
    /// The worker of a later version of the file.
    later: Mutex<Option<Arc<LaterWorker>>>,
}

/// A later version of the file, and its worker.
struct LaterWorker {
    read: Option<FileRead>,
    starter: WorkerStarter,
}

impl Workers {
    /// Creates the workers; `None` if the store has one process.
    pub(crate) fn new(
        global: &Global,
        config: &Config,
        library: &[PathBuf],
        reload: Reload,
    ) -> Option<Self> {
        Some(Self {
            own: WorkerStarter::new(global, config, library)?,
            read: config.file.clone(),
            global: global.clone(),
            library: library.to_vec(),
            reload,
            later: Mutex::default(),
        })
    }

    /// Stops the worker of a later file and waits for its end: if this process is the first of a container, the worker
    /// would be killed with it.
    pub(crate) async fn stop_later(&self) {
        let later = self.later.lock().await.take();
        let Some(later) = later.filter(|_| std::process::id() == 1) else { return };
        if !later.starter.is_told(Message::Stop) {
            return;
        }
        let deadline = Instant::now() + MAX_LEAVING;
        while later.starter.is_there() && Instant::now() < deadline {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    async fn present(&self) -> anyhow::Result<Arc<LaterWorker>> {
        let mut later = self.later.lock().await;
        if let Some(later) = later.as_ref().filter(|later| is_current(later.read.as_ref())) {
            return Ok(Arc::clone(later));
        }
        let config = (self.reload)().map_err(|error| anyhow::anyhow!("{error}"))?;
        let starter = WorkerStarter::new(&self.global, &config, &self.library);
        let starter = starter.context("the configuration now names a store in memory")?;
        let present = Arc::new(LaterWorker { read: config.file, starter });
        *later = Some(Arc::clone(&present));
        Ok(present)
    }
}

impl DetachedWorkers for Workers {
    fn is_current(&self) -> bool {
        is_current(self.read.as_ref())
    }

    fn notify_own(&self, jobs: WaitingJobs) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async move { Ok(self.own.tell(message(jobs)).await.map(drop)?) })
    }

    fn notify_present(&self, jobs: WaitingJobs) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async move {
            let present = self.present().await?;
            Ok(present.starter.tell(message(jobs)).await.map(drop)?)
        })
    }

    fn is_running(&self) -> BoxFuture<'_, bool> {
        Box::pin(async {
            match &*self.later.lock().await {
                Some(later) => later.starter.is_there(),
                None => self.own.is_there(),
            }
        })
    }
}

fn message(jobs: WaitingJobs) -> Message {
    match jobs {
        WaitingJobs::Queue => Message::Look,
        WaitingJobs::HeldCall(id) => Message::Carry(id),
    }
}

fn is_current(read: Option<&FileRead>) -> bool {
    read.is_none_or(FileRead::is_current)
}
