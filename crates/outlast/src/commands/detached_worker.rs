//! A worker that goes on when the person has left: `outlast worker --until-idle` in a session of its own, so that
//! neither Ctrl-C nor a closed terminal ends it.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use outlast_core::{Job, Scope, StateKind};
use outlast_engine::Engine;
use rustix::process::Signal;
use tokio::time::Instant;

use super::signals::INTERRUPTED;
use crate::cli::Global;
use crate::config::{Config, StoreUrl};
use crate::error::CommandError;
use crate::ui::{self, Mark};

/// How long a worker may take to show itself.
const MAX_START: Duration = Duration::from_secs(10);
/// A closing terminal may send its signal again, and to a worker that does not have a session of its own yet.
const SPAWNS: u32 = 3;
/// How often it is looked for.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Who goes on with a job.
#[derive(Debug)]
pub(super) enum Carrier {
    /// A worker that was there already.
    Present,
    /// One that was left behind for it.
    LeftBehind { pid: u32, log: PathBuf },
    /// No other process can: the store ends with this one.
    ThisProcess,
}

/// What a worker needs to fit a job of ours: the same flags.
pub(super) struct Flags<'a> {
    pub(super) global: &'a Global,
    pub(super) config: &'a Config,
    pub(super) library: &'a [PathBuf],
}

impl Flags<'_> {
    /// Makes sure that a worker goes on with this job.
    pub(super) async fn ensure_worker(
        &self,
        engine: &Engine,
        job: &Job,
    ) -> Result<Carrier, CommandError> {
        if self.config.store == StoreUrl::Memory {
            return Ok(Carrier::ThisProcess);
        }
        if engine.has_worker(&job.new.profile).await? {
            return Ok(Carrier::Present);
        }
        let log = self.config.data_dir.join("worker.log");
        for _ in 0..SPAWNS {
            let child = self.spawn(&log).map_err(|error| not_left(error, job, &log))?;
            let pid = child.id();
            let shown = shows_itself(engine, job, child).await;
            if shown.map_err(|error| not_left(error, job, &log))? == WorkerStart::There {
                return Ok(Carrier::LeftBehind { pid, log });
            }
        }
        Err(not_left(anyhow::anyhow!("a signal ended it at once"), job, &log))
    }

    fn spawn(&self, log: &Path) -> anyhow::Result<Child> {
        let program = std::env::current_exe().context("find this program")?;
        std::fs::create_dir_all(&self.config.data_dir).context("make the data directory")?;
        let log = File::options().create(true).append(true).mode(0o600).open(log);
        let mut worker = Command::new(program);
        worker.args(["worker", "--until-idle", "--own-session"]);
        for folder in self.library {
            worker.arg("--library").arg(folder);
        }
        let Global { store, data_dir, config, no_mirror, .. } = self.global;
        if let Some(store) = store {
            // Not an argument: every user of the machine sees those, and there may be a password in it.
            worker.env("OUTLAST_STORE", store);
        }
        if let Some(data_dir) = data_dir {
            worker.arg("--data-dir").arg(data_dir);
        }
        if let Some(config) = config {
            worker.arg("--config").arg(config);
        }
        if *no_mirror {
            worker.arg("--no-mirror");
        }
        worker.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log.context("open its log")?);
        worker.spawn().context("start it")
    }
}

/// Tells a person who leaves before the end what becomes of the job.
pub(super) fn left(carrier: &Carrier, job: &Job) -> ExitCode {
    let words = match carrier {
        Carrier::ThisProcess => "left before the end",
        Carrier::Present | Carrier::LeftBehind { .. } => "left before the end; the job goes on",
    };
    ui::mark(Mark::Step, &format!("{words}: {}", job.id));
    tell(carrier, job);
    ExitCode::from(INTERRUPTED)
}

/// Tells the person who goes on with the job, and how to come back to it.
pub(super) fn tell(carrier: &Carrier, job: &Job) {
    match carrier {
        Carrier::Present => ui::remark("  a running worker goes on with it"),
        Carrier::LeftBehind { pid, log } => {
            let worker = format!("`outlast worker --until-idle` (pid {pid})");
            ui::remark(&format!("  {worker} goes on with it"));
            ui::remark(&format!("  its log:     {}", log.display()));
        }
        Carrier::ThisProcess => {
            ui::remark("  it is gone: a memory store ends with the process");
            return;
        }
    }
    ui::remark(&format!("  follow it:   outlast jobs watch {}", short_id(job)));
    ui::remark(&format!("  its report:  outlast jobs show {}", short_id(job)));
}

/// As much of the id as a command needs.
pub(super) fn short_id(job: &Job) -> String {
    job.id.to_string().chars().take(8).collect()
}

/// What became of a worker that was started.
#[derive(PartialEq, Eq)]
enum WorkerStart {
    /// The worker goes on with the job.
    There,
    /// The signal of a closing terminal ended it.
    HungUp,
}

/// Waits until the worker is known, or the job has gone on, whichever is seen first.
async fn shows_itself(
    engine: &Engine,
    job: &Job,
    mut worker: Child,
) -> anyhow::Result<WorkerStart> {
    let scope = Scope::Owner(job.new.owner.clone());
    let deadline = Instant::now() + MAX_START;
    while Instant::now() < deadline {
        if engine.has_worker(&job.new.profile).await? {
            return Ok(WorkerStart::There);
        }
        let now = engine.job(&scope, &job.id).await?;
        if now.is_none_or(|now| now.state.kind() != StateKind::Queued) {
            return Ok(WorkerStart::There);
        }
        if let Some(status) = worker.try_wait()?
            && !status.success()
        {
            if status.signal() == Some(Signal::HUP.as_raw()) {
                return Ok(WorkerStart::HungUp);
            }
            anyhow::bail!("it ended at once ({status})");
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    anyhow::bail!("it did not show itself within {} s", MAX_START.as_secs())
}

fn not_left(error: anyhow::Error, job: &Job, log: &Path) -> CommandError {
    let error = error.context(format!("leave a worker behind for job {}", job.id));
    CommandError::from(error).hint(format!(
        "the job is kept; `outlast worker --until-idle` goes on with it. The log may say why: {}",
        log.display()
    ))
}
