//! `outlast jobs wait`: for scripts. Silent until all jobs have ended, or the time has.

use std::process::ExitCode;

use outlast_engine::{Engine, Shutdown};
use tokio::time::Instant;

use super::{own, watch};
use crate::cli::WaitArgs;
use crate::commands::follow::{CarriedBy, FollowOptions, follow};
use crate::commands::job_view::outcome;
use crate::commands::signals::{INTERRUPTED, stop_on_signals};
use crate::config::Config;
use crate::error::{CommandResult, TIMED_OUT};
use crate::ui;

pub(super) async fn run(
    engine: &Engine,
    config: &Config,
    args: WaitArgs,
    stop: &Shutdown,
) -> CommandResult {
    let scope = own(config);
    let until = args.timeout.map(|timeout| Instant::now() + timeout);
    let jobs = watch::named(engine, &scope, &args.ids).await?;
    outlast_engine::spawn(stop_on_signals(stop.clone())?);
    let options = FollowOptions { carried_by: CarriedBy::Workers, until };
    let jobs = follow(engine, jobs, options, &mut |_, _| {}).await?;
    let code = outcome::print(&jobs, engine, args.json);
    if jobs.iter().all(|job| job.state.kind().is_terminal()) {
        return Ok(code);
    }
    let goes_on = watch::what_goes_on(engine, &scope, &jobs).await?;
    if stop.is_asked() {
        ui::remark(&format!("left; {goes_on}"));
        return Ok(ExitCode::from(INTERRUPTED));
    }
    ui::remark(&goes_on);
    Ok(ExitCode::from(TIMED_OUT))
}
