//! The detached workers to which a process may leave jobs: the one of the configuration that it has read and, once the
//! file has changed, the one of the present file. A process with an outdated configuration runs no job with it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
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
    later: Mutex<Option<Arc<Later>>>,
}

/// A later version of the file, and its worker.
struct Later {
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

    /// Returns true while the configuration file is unchanged since this process read it.
    pub(crate) fn is_current(&self) -> bool {
        is_current(self.read.as_ref())
    }

    /// Notifies the worker of the configuration that this process has read, and starts it if there is none.
    pub(crate) async fn tell_own(&self, message: Message) -> anyhow::Result<()> {
        self.own.tell(message).await.map(drop)
    }

    /// Notifies the worker of the present file, and starts it if there is none.
    pub(crate) async fn tell_present(&self, message: Message) -> anyhow::Result<()> {
        self.present().await?.starter.tell(message).await.map(drop)
    }

    /// Returns true while the worker that last got jobs is running.
    pub(crate) async fn is_there(&self) -> bool {
        match &*self.later.lock().await {
            Some(later) => later.starter.is_there(),
            None => self.own.is_there(),
        }
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

    async fn present(&self) -> anyhow::Result<Arc<Later>> {
        let mut later = self.later.lock().await;
        if let Some(later) = later.as_ref().filter(|later| is_current(later.read.as_ref())) {
            return Ok(Arc::clone(later));
        }
        let config = (self.reload)().map_err(|error| anyhow::anyhow!("{error}"))?;
        let starter = WorkerStarter::new(&self.global, &config, &self.library);
        let starter = starter.context("the configuration now names a store in memory")?;
        let present = Arc::new(Later { read: config.file, starter });
        *later = Some(Arc::clone(&present));
        Ok(present)
    }
}

fn is_current(read: Option<&FileRead>) -> bool {
    read.is_none_or(FileRead::is_current)
}
