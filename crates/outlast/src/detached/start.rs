//! Starts a detached worker where there is none, and tells it what to do.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use tokio::process::{Child, Command};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::identity::Identity;
use super::socket::{Message, SocketFolder};
use crate::cli::Global;
use crate::config::Config;

/// How long a worker may take until it answers.
const MAX_START: Duration = Duration::from_secs(10);
/// How often it is looked for meanwhile.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// A signal to the whole process group may end a worker before it has a session of its own.
const SPAWNS: u32 = 3;
/// The variable that `inherited.c` reads.
const STARTED_DETACHED: &str = "OUTLAST_STARTED_DETACHED";

/// What is needed to start a worker like this process.
pub(crate) struct WorkerStarter {
    identity: Identity,
    folder: SocketFolder,
    arguments: Vec<OsString>,
    store: Option<String>,
    data_dir: PathBuf,
    /// One start at a time.
    starting: Mutex<()>,
}

impl WorkerStarter {
    /// For the worker of this configuration; `None` where the store has one process.
    pub(crate) fn new(global: &Global, config: &Config, library: &[PathBuf]) -> Option<Self> {
        let folder = SocketFolder::of(config)?;
        let identity = Identity::of(config, library);
        let mut arguments: Vec<OsString> = vec!["worker".into(), "--detached".into()];
        arguments.push(identity.to_string().into());
        arguments.extend(["--concurrency".into(), config.concurrency.to_string().into()]);
        for folder in library {
            arguments.extend(["--library".into(), folder.into()]);
        }
        // The store is no argument: every user of the machine sees those, and there may be a password in it.
        let passed_on = global.passed_on().filter(|(flag, _)| *flag != "--store");
        arguments.extend(passed_on.flat_map(|(flag, value)| [flag.into(), value]));
        if global.no_mirror {
            arguments.push("--no-mirror".into());
        }
        let store = global.store.clone();
        let (data_dir, starting) = (config.data_dir.clone(), Mutex::default());
        Some(Self { identity, folder, arguments, store, data_dir, starting })
    }

    /// Where the worker's log is.
    pub(crate) fn log(&self) -> PathBuf {
        super::log::path(&self.data_dir)
    }

    /// Tells the worker. One is started if there is none: then its process id is returned. Returns when a worker has been
    /// told, or none can be.
    pub(crate) async fn tell(&self, message: Message) -> anyhow::Result<Option<u32>> {
        if self.is_told(message) {
            return Ok(None);
        }
        let _one_start = self.starting.lock().await;
        if self.is_told(message) {
            return Ok(None);
        }
        for _ in 0..SPAWNS {
            let child = self.spawn().context("start a worker beside this process")?;
            let pid = child.id().unwrap_or_default();
            if self.answers(child, message).await? {
                return Ok(Some(pid));
            }
        }
        anyhow::bail!("a signal ended the worker at once")
    }

    /// Whether there is a worker.
    pub(crate) fn is_there(&self) -> bool {
        self.is_told(Message::Look)
    }

    fn is_told(&self, message: Message) -> bool {
        self.folder.send(&self.identity.socket_name(), message).is_ok()
    }

    fn spawn(&self) -> anyhow::Result<Child> {
        let program = std::env::current_exe().context("find this program")?;
        fs::create_dir_all(&self.data_dir).context("make the data directory")?;
        let log = File::options().create(true).append(true).mode(0o600).open(self.log());
        let mut worker = Command::new(program);
        worker.args(&self.arguments).env(STARTED_DETACHED, "1");
        if let Some(store) = &self.store {
            worker.env("OUTLAST_STORE", store);
        }
        worker.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log.context("open its log")?);
        Ok(worker.spawn()?)
    }

    /// Waits until the worker answers; false if a signal ended it.
    async fn answers(&self, mut worker: Child, message: Message) -> anyhow::Result<bool> {
        let deadline = Instant::now() + MAX_START;
        while Instant::now() < deadline {
            if self.is_told(message) {
                // Waited for, so that it does not stay a zombie as long as this process lives.
                outlast_engine::spawn(async move { worker.wait().await });
                return Ok(true);
            }
            match worker.try_wait()? {
                Some(status) if status.signal().is_some() => return Ok(false),
                // Another process was quicker to start one.
                Some(status) if status.success() => {}
                Some(status) => anyhow::bail!("the worker ended at once ({status})"),
                None => {}
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        anyhow::bail!("the worker did not answer within {} s", MAX_START.as_secs())
    }
}
