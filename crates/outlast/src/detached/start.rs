//! Starts a detached worker if there is none, and sends messages to it.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::identity::WorkerIdentity;
use super::socket::{Message, SocketFolder};
use crate::cli::Global;
use crate::config::Config;
use crate::data_dir;

/// The time within which a worker must answer.
const MAX_START: Duration = Duration::from_secs(10);
/// The interval of the checks in the meantime.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// The number of starts of a worker that ends without an answer. A signal to the whole process group may end it before
/// it has a separate session.
const SPAWNS: u32 = 3;

/// The values needed to start a worker like this process.
pub(crate) struct WorkerStarter {
    identity: WorkerIdentity,
    folder: SocketFolder,
    arguments: Vec<OsString>,
    store: Option<String>,
    data_dir: PathBuf,
    /// One start at a time.
    starting: Mutex<()>,
}

impl WorkerStarter {
    /// Returns the starter for the worker of this configuration; `None` if the store has one process.
    pub(crate) fn new(global: &Global, config: &Config, library: &[PathBuf]) -> Option<Self> {
        let folder = SocketFolder::of(config)?;
        let identity = WorkerIdentity::of(config, library);
        let mut arguments: Vec<OsString> = vec!["worker".into(), "--detached".into()];
        arguments.push(identity.to_string().into());
        arguments.extend(["--concurrency".into(), config.concurrency.to_string().into()]);
        for folder in library {
            arguments.extend(["--library".into(), folder.into()]);
        }
        // The store is not an argument: every user of the machine sees arguments, and it may contain a password.
        let passed_on = global.passed_on().filter(|(flag, _)| *flag != "--store");
        arguments.extend(passed_on.flat_map(|(flag, value)| [flag.into(), value]));
        if global.no_mirror {
            arguments.push("--no-mirror".into());
        }
        let store = global.store.clone();
        let (data_dir, starting) = (config.data_dir.clone(), Mutex::default());
        Some(Self { identity, folder, arguments, store, data_dir, starting })
    }

    /// Returns the path of the worker's log.
    pub(crate) fn log(&self) -> PathBuf {
        super::log::path(&self.data_dir)
    }

    /// Sends a message to the worker, and starts one if there is none; in that case returns its process id. Returns
    /// when a worker has received the message, or none can be started.
    pub(crate) async fn tell(&self, message: Message) -> anyhow::Result<Option<u32>> {
        if self.is_told(message) {
            return Ok(None);
        }
        let _one_start = self.starting.lock().await;
        if self.is_told(message) {
            return Ok(None);
        }
        for _ in 0..SPAWNS {
            let worker = self.spawn().context("start a worker beside this process")?;
            match self.answers(worker, message).await? {
                StartEnd::Started(pid) => return Ok(Some(pid)),
                StartEnd::AnotherWasFirst => return Ok(None),
                StartEnd::EndedAtOnce => {}
            }
        }
        anyhow::bail!("the worker ended at once; {} has the reason", self.log().display())
    }

    /// Returns true if there is a worker.
    pub(crate) fn is_there(&self) -> bool {
        self.is_told(Message::Look)
    }

    /// Sends a message; returns true if a worker was there to receive it.
    pub(super) fn is_told(&self, message: Message) -> bool {
        self.folder.send(&self.identity.socket_name(), message).is_ok()
    }

    fn spawn(&self) -> anyhow::Result<UnixStream> {
        let program = std::env::current_exe().context("find this program")?;
        data_dir::prepare(&self.data_dir).map_err(|error| {
            anyhow::anyhow!("{error} ({})", error.next_step().unwrap_or_default())
        })?;
        let log = data_dir::open_log(&self.log()).context("open its log")?;
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        let mut worker = Command::new(program);
        worker.args(&self.arguments).env(outlast_sys::STARTED_DETACHED, "1");
        if let Some(store) = &self.store {
            worker.env("OUTLAST_STORE", store);
        }
        // It never reads: the end of this connection is the end of the worker, which is not a child of this process.
        worker.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(log);
        let mut child = worker.spawn()?;
        drop(worker);
        // It leaves a worker behind and exits at once. If it could not, it is the worker.
        outlast_engine::spawn(async move { child.wait().await });
        ours.set_nonblocking(true)?;
        Ok(UnixStream::from_std(ours)?)
    }

    /// Waits until the worker answers, or has ended without an answer.
    async fn answers(&self, mut worker: UnixStream, message: Message) -> anyhow::Result<StartEnd> {
        let deadline = Instant::now() + MAX_START;
        let (mut heard, mut has_ended) = (Vec::new(), false);
        while Instant::now() < deadline {
            if self.is_told(message) {
                // The worker can be reached before its report was read here.
                if worker_pid(&heard).is_none() && !has_ended {
                    drop(tokio::time::timeout(REPORT_WAIT, worker.read_buf(&mut heard)).await);
                }
                let pid = worker_pid(&heard);
                return Ok(pid.map_or(StartEnd::AnotherWasFirst, StartEnd::Started));
            }
            // Checked once more after its end: a worker that answers has closed the connection too. One that reports
            // another worker exits because another process started one first.
            if has_ended && !heard.ends_with(ANOTHER_WAS_FIRST) {
                return Ok(StartEnd::EndedAtOnce);
            }
            tokio::select! {
                read = worker.read_buf(&mut heard), if !has_ended => {
                    has_ended = !read.is_ok_and(|length| length > 0);
                }
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
        anyhow::bail!("the worker did not answer within {} s", MAX_START.as_secs())
    }
}

/// The time within which a worker that can be reached reports its process id.
const REPORT_WAIT: Duration = Duration::from_secs(1);

/// The outcome of one attempt to start a worker.
enum StartEnd {
    /// The process id of the worker.
    Started(u32),
    AnotherWasFirst,
    EndedAtOnce,
}

/// The last output of a worker that exits because there is one already.
const ANOTHER_WAS_FIRST: &[u8] = b"another worker was first\n";

/// Reports the worker's process id to the process that started it.
pub(super) fn report_pid() {
    report(format!("pid {}\n", std::process::id()).as_bytes());
}

/// Reports to the process that started this worker that there is one already.
pub(super) fn report_another() {
    report(ANOTHER_WAS_FIRST);
}

fn report(line: &[u8]) {
    // A starter that has left needs no answer.
    let _ = rustix::io::write(rustix::stdio::stdin(), line);
}

/// Closes the connection to the process that started this worker.
pub(super) fn leave_starter() -> std::io::Result<()> {
    let null = std::fs::File::open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdin(&null)?)
}

fn worker_pid(heard: &[u8]) -> Option<u32> {
    std::str::from_utf8(heard).ok()?.lines().next()?.strip_prefix("pid ")?.parse().ok()
}
