//! The outcomes of jobs, for people and for the shell.

use std::process::ExitCode;

use outlast_core::{Body, Cost, Job, NanoUsd, Output, StateKind, rules};
use outlast_engine::Engine;

use super::json;
use crate::commands::left_worker::short_id;
use crate::error::CommandError;
use crate::ui;

/// Prints the outcomes of jobs; the exit code is success if all succeeded.
pub(crate) fn print(jobs: &[Job], engine: &Engine, as_json: bool) -> ExitCode {
    if as_json {
        ui::json(&json::jobs(jobs, engine.now()));
    } else {
        for job in jobs {
            let words = match job.state.kind() {
                StateKind::Failed => why(job),
                StateKind::Succeeded | StateKind::Cancelled => {
                    format!("after {}", ui::took(job.elapsed(engine.now())))
                }
                StateKind::Queued | StateKind::Running | StateKind::Waiting => String::new(),
            };
            ui::outcome(&job.id.to_string(), job.state.kind(), &words);
        }
    }
    exit_code(jobs)
}

/// Returns success if all jobs succeeded.
pub(crate) fn exit_code(jobs: &[Job]) -> ExitCode {
    match jobs.iter().all(|job| job.state.kind() == StateKind::Succeeded) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Prints the end of a job: its id, state, cost and title as data, then how to read it (L1).
pub(crate) fn end(job: &Job) {
    let cost = cost(job);
    ui::outcome(&job.id.to_string(), job.state.kind(), &format!("{cost}  {}", job.new.title));
    let id = short_id(job);
    ui::remark(&match (job.state.kind(), &job.new.conversation) {
        (StateKind::Failed, _) => {
            format!("  {}; `outlast jobs show {id}` has the details", why(job))
        }
        (StateKind::Succeeded, Some(conversation)) => format!(
            "  read it with `outlast jobs show {id}`, or with get_conversation_history and conversationId {conversation}"
        ),
        _ => format!("  read it with `outlast jobs show {id}`"),
    });
}

/// Formats the cost of a job as lists do ([`ui::cost`]).
fn cost(job: &Job) -> String {
    if let Some(Output { body: Body::Report { .. }, cost, .. }) = job.output() {
        return match cost {
            Cost::Reported(NanoUsd(0)) => "free".to_owned(),
            Cost::Reported(amount) | Cost::Computed(amount) => amount.to_string(),
            Cost::Estimate(amount) => format!("~{amount}"),
            Cost::Unknown => "unknown".to_owned(),
        };
    }
    match rules::maybe_spent(job) {
        NanoUsd(0) => "free".to_owned(),
        amount => format!("~{amount}"),
    }
}

/// Returns the reason for the failure, if there is one.
pub(crate) fn why(job: &Job) -> String {
    job.failures.last().map_or_else(
        || "for no known reason".to_owned(),
        |failure| format!("{}: {}", failure.code, failure.message),
    )
}

/// Returns the error for a job that a command started and that ended without success; `what` names the request.
pub(crate) fn unsuccessful(what: &str, job: &Job) -> CommandError {
    let id = short_id(job);
    if job.state.kind() == StateKind::Cancelled {
        let stop = job.stop_text().map_or_else(String::new, |stop| format!(". {stop}"));
        let hint = match job.run_left() {
            Some(_) if job.left_run_has_ended() => format!("`outlast jobs retry {id}` fetches it"),
            Some(_) => format!("`outlast jobs retry {id}` goes on with that run"),
            None => format!("`outlast jobs retry {id}` asks again"),
        };
        return CommandError::failed(format!("the {what} was cancelled{stop}"), hint);
    }
    let again = match job.run_left() {
        Some(_) if job.left_run_has_ended() => "` looks for the report of the run, which has ended",
        Some(_) => "` goes on with the provider's run, which may still finish",
        None if job.needs_consent() && job.may_be_charged() => {
            " --again` begins a new run, which may be paid for a second time"
        }
        None if job.needs_consent() => " --again` does it again, maybe a second time",
        None => "` asks again",
    };
    let mut hint =
        format!("`outlast jobs show {id}` has the details, `outlast jobs retry {id}{again}");
    if let Some(failure) = job.failures.last() {
        hint.push_str(&format!("; `outlast explain {}` says more", failure.code));
    }
    CommandError::failed(format!("the {what} failed: {}", why(job)), hint)
}
