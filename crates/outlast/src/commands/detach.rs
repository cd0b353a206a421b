//! `--detach`: the job is started, and a worker carries it.

use std::process::ExitCode;

use outlast_core::Job;
use outlast_engine::Engine;

use super::detached_worker::{self, Flags};
use super::jobs;
use crate::error::CommandError;
use crate::ui::{self, Mark};

/// Prints the job's id, or the job as JSON, and leaves it to a worker.
pub(super) async fn run(
    engine: &Engine,
    flags: &Flags<'_>,
    job: &Job,
    json: bool,
) -> Result<ExitCode, CommandError> {
    // First of all, so that whatever follows the id is known.
    match json {
        true => ui::line(&jobs::json::job(job, engine.now())),
        false => ui::line(&job.id.to_string()),
    }
    let carrier = flags.ensure_worker(engine, job).await?;
    ui::mark(Mark::Good, "started");
    detached_worker::tell(&carrier, job);
    Ok(ExitCode::SUCCESS)
}
