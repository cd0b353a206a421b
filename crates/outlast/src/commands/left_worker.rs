//! Finds the process that continues a job after the person has left a command: a running worker, or a detached one that
//! is started.

use std::path::PathBuf;
use std::process::ExitCode;

use outlast_core::Job;

use super::engine::CommandSession;
use super::signals::INTERRUPTED;
use crate::detached::WorkerStarter;
use crate::detached::socket::Message;
use crate::error::{CommandError, CommandResult};
use crate::ui::{self, LineMark};

/// The process that continues a job.
#[derive(Debug)]
pub(super) enum Carrier {
    /// A worker that was already running.
    Present,
    /// A worker that was started for it.
    LeftBehind { pid: u32, log: PathBuf },
    /// Only this process: the store ends with it.
    ThisProcess,
}

/// Makes sure that a worker continues this job. A worker that is started gets the same flags, and the same library.
pub(super) async fn ensure(
    session: &CommandSession<'_>,
    library: &[PathBuf],
    job: &Job,
) -> CommandResult<Carrier> {
    let Some(starter) = WorkerStarter::new(session.global, session.config, library) else {
        return Ok(Carrier::ThisProcess);
    };
    if session.engine.has_worker(&job.new.profile).await? {
        return Ok(Carrier::Present);
    }
    let log = starter.log();
    match starter.tell(Message::Look).await {
        Ok(None) => Ok(Carrier::Present),
        Ok(Some(pid)) => Ok(Carrier::LeftBehind { pid, log }),
        Err(error) => {
            let error = error.context(format!("leave a worker behind for job {}", job.id));
            Err(CommandError::from(error).hint(format!(
                "the job is kept; `outlast worker --until-idle` goes on with it. The log may say why: {}",
                log.display()
            )))
        }
    }
}

/// Informs a person who leaves before the end about the job's future.
pub(super) fn leave(carrier: &Carrier, job: &Job) -> ExitCode {
    let words = match carrier {
        Carrier::ThisProcess => "left before the end",
        Carrier::Present | Carrier::LeftBehind { .. } => "left before the end; the job goes on",
    };
    ui::mark(LineMark::Step, &format!("{words}: {}", job.id));
    tell(carrier, job);
    ExitCode::from(INTERRUPTED)
}

/// Reports which worker continues the job, and the way back to it.
pub(super) fn tell(carrier: &Carrier, job: &Job) {
    match carrier {
        Carrier::Present => ui::remark("  a running worker goes on with it"),
        Carrier::LeftBehind { pid, log } => {
            ui::remark(&format!("  a worker (pid {pid}) goes on with it"));
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

/// Returns the part of the id that a command needs.
pub(super) fn short_id(job: &Job) -> String {
    job.id.to_string().chars().take(8).collect()
}
