//! `outlast jobs wait`: for scripts. Silent until all jobs have ended, or the time has.

use std::process::ExitCode;
use std::time::Duration;

use outlast_core::Job;
use outlast_engine::{Engine, Shutdown};
use tokio::time::Instant;

use super::{STILL_RUNNING, own, watch};
use crate::cli::WaitArgs;
use crate::commands::research::INTERRUPTED;
use crate::commands::signals::stop_on_signals;
use crate::config::Config;
use crate::error::CommandError;
use crate::ui;

/// A poll waits no longer than this, and is then made again.
const LONGEST_POLL: Duration = Duration::from_secs(3_600);

pub(super) async fn run(
    engine: &Engine,
    config: &Config,
    args: WaitArgs,
    stop: &Shutdown,
) -> Result<ExitCode, CommandError> {
    let scope = own(config);
    let since = Instant::now();
    let mut jobs = watch::named(engine, &scope, &args.ids).await?;
    tokio::spawn(stop_on_signals(stop.clone())?);
    for job in &mut jobs {
        while is_unfinished(job) && !stop.is_asked() {
            let left = args.timeout.map(|timeout| timeout.saturating_sub(since.elapsed()));
            let budget = left.unwrap_or(LONGEST_POLL).min(LONGEST_POLL);
            match engine.poll(&scope, &job.id, budget).await? {
                Some(reading) => *job = reading.job,
                None => return Err(gone(job)),
            }
            if left.is_some_and(|left| left.is_zero()) {
                break;
            }
        }
    }
    let code = watch::told(&jobs, engine, args.json);
    let unfinished = jobs.iter().filter(|job| is_unfinished(job)).count();
    if unfinished == 0 {
        return Ok(code);
    }
    let goes_on = watch::what_goes_on(engine, &scope, &jobs).await?;
    if stop.is_asked() {
        ui::remark(&format!("left; {goes_on}"));
        return Ok(ExitCode::from(INTERRUPTED));
    }
    ui::remark(&goes_on);
    Ok(ExitCode::from(STILL_RUNNING))
}

fn is_unfinished(job: &Job) -> bool {
    !job.state.kind().is_terminal()
}

fn gone(job: &Job) -> CommandError {
    anyhow::anyhow!("job {} was removed while it was waited for", job.id).into()
}
