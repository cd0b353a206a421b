//! `outlast jobs wait`: for scripts. Silent until all jobs have ended, or the time has.

use std::process::ExitCode;

use tokio::time::Instant;

use super::watch;
use crate::cli::WaitArgs;
use crate::commands::engine::Session;
use crate::commands::follow::{CarriedBy, FollowOptions, follow};
use crate::commands::job_view::outcome;
use crate::commands::signals::{INTERRUPTED, stop_on_signals};
use crate::error::{CommandResult, TIMED_OUT};
use crate::ui;

pub(super) async fn run(session: &Session<'_>, args: WaitArgs) -> CommandResult {
    let Session { engine, stop, .. } = session;
    let until = args.timeout.map(|timeout| Instant::now() + timeout);
    let jobs = watch::named(session, &args.ids).await?;
    outlast_engine::spawn(stop_on_signals(stop.clone())?);
    let options = FollowOptions { carried_by: CarriedBy::Workers, until };
    let jobs = follow(engine, jobs, options, &mut |_, _| {}).await?;
    let code = outcome::print(&jobs, engine, args.json);
    if jobs.iter().all(|job| job.state.kind().is_terminal()) {
        return Ok(code);
    }
    let goes_on = watch::what_goes_on(session, &jobs).await?;
    if stop.is_asked() {
        ui::remark(&format!("left; {goes_on}"));
        return Ok(ExitCode::from(INTERRUPTED));
    }
    ui::remark(&goes_on);
    Ok(ExitCode::from(TIMED_OUT))
}
