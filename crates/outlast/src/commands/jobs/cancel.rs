//! `outlast jobs cancel`

use std::process::ExitCode;

use outlast_core::{Cancelled, JobState, RemoteStop, StateKind};

use super::find;
use crate::cli::JobArgs;
use crate::commands::engine::Session;
use crate::commands::job_view::json;
use crate::error::{CommandError, CommandResult};
use crate::ui;

pub(super) async fn run(session: &Session<'_>, args: JobArgs) -> CommandResult {
    let engine = &session.engine;
    let job = find::job(session, &args.id).await?;
    let Some(cancelled) = engine.cancel(&session.own(), &job.id).await? else {
        return Err(anyhow::anyhow!("job {} was removed", job.id).into());
    };
    let (job, was_ended) = match cancelled {
        Cancelled::Now(job) => (job, false),
        Cancelled::Already(job) => (job, true),
    };
    if was_ended && job.state.kind() != StateKind::Cancelled {
        let state = job.state.kind().as_str();
        let why = format!("job {} has ended already: {state}", job.id);
        return Err(CommandError::failed(why, "`outlast jobs show` has what came of it"));
    }
    if args.json {
        ui::json(&json::job(&job, engine.now()));
    } else {
        ui::outcome(&job.id.to_string(), job.state.kind(), "");
    }
    if was_ended {
        ui::remark("It was cancelled before.");
    }
    if let Some(told) = job.stop_text() {
        ui::remark(told);
    }
    if matches!(job.state, JobState::Cancelled { remote: RemoteStop::Owed, .. })
        && !engine.has_worker(&job.new.profile).await?
    {
        ui::remark("No worker is there to tell it: `outlast worker --until-idle` does so.");
    }
    Ok(ExitCode::SUCCESS)
}
