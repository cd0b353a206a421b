//! `outlast jobs list`

use std::process::ExitCode;

use outlast_core::{JobQuery, StateKind, Summary, Timestamp};

use super::own_or_all;
use crate::cli::ListArgs;
use crate::commands::engine::Session;
use crate::commands::job_view::json;
use crate::error::CommandResult;
use crate::ui;

pub(super) async fn run(session: &Session<'_>, args: ListArgs) -> CommandResult {
    let states: Vec<StateKind> =
        args.state.iter().filter_map(|word| StateKind::parse(word)).collect();
    let is_filtered = !states.is_empty() || args.search.is_some();
    let query = JobQuery { states, search: args.search, limit: args.limit, ..JobQuery::default() };
    let page = session.engine.list(&own_or_all(session, args.all), &query).await?;
    if args.json {
        ui::json(&json::page(&page));
        return Ok(ExitCode::SUCCESS);
    }
    if page.jobs.is_empty() {
        ui::remark(match is_filtered {
            true => "No such jobs.",
            false => "No jobs yet; `outlast research QUESTION` starts one.",
        });
        return Ok(ExitCode::SUCCESS);
    }
    let now = session.engine.now();
    let rows = page.jobs.iter().map(|job| row(job, now, args.all));
    let mut heads = vec!["ID", "STATE", "AGE", "QUESTION"];
    if args.all {
        heads.insert(3, "OWNER");
    }
    ui::table(&heads, rows.collect());
    if page.next.is_some() {
        ui::remark(&format!("Only the newest {} are shown; --limit shows more.", args.limit));
    }
    Ok(ExitCode::SUCCESS)
}

fn row(job: &Summary, now: Timestamp, with_owner: bool) -> Vec<ui::Cell> {
    let percent = job.progress.as_ref().and_then(|progress| progress.percent);
    let state = match percent.filter(|_| job.state == StateKind::Running) {
        Some(percent) => format!("{} {percent} %", job.state.as_str()),
        None => job.state.as_str().to_owned(),
    };
    let mut cells = vec![
        ui::Cell::id(&job.id.to_string()),
        ui::Cell::state(state, job.state),
        ui::Cell::plain(&ui::ago(now.since(job.created_at))),
        ui::Cell::plain(&job.title),
    ];
    if with_owner {
        cells.insert(3, ui::Cell::plain(job.owner.as_str()));
    }
    cells
}
