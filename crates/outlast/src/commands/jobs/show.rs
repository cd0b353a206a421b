//! One job as a person reads it: facts on top, history, then the report.

use outlast_core::{
    Body, Checkpoint, Cost, Job, JobState, NanoUsd, RemoteStop, StateKind, Timestamp,
};

use crate::ui;

pub(super) fn job(job: &Job, now: Timestamp) {
    ui::line(&job.id.to_string());
    ui::fact("question", &job.new.title);
    ui::fact_styled("state", &state(job), job.state.kind());
    ui::fact(
        "created",
        &format!("{} ({} ago)", job.created_at, ui::ago(now.since(job.created_at))),
    );
    if let Some(ended_at) = job.ended_at() {
        ui::fact("ended", &format!("{ended_at} (after {})", ui::ago(job.elapsed(now))));
    }
    if let Some(progress) = &job.progress {
        ui::fact("progress", &progress.message);
    }
    match &job.checkpoint {
        Checkpoint::NotBegun => {}
        Checkpoint::Beginning { .. } => ui::fact("remote run", "asked for; no answer recorded"),
        Checkpoint::Running(run) => {
            ui::fact("remote run", &format!("{} at {}", run.id, run.provider))
        }
    }
    ui::fact("owner", job.new.owner.as_str());
    for (number, failure) in job.failures.iter().enumerate() {
        ui::fact(
            &format!("failure {}", number + 1),
            &format!("{} {}: {}", failure.at, failure.code, failure.message),
        );
        if let Some(detail) = &failure.detail {
            ui::fact("", &ui::short(detail, 500));
        }
    }
    let JobState::Succeeded { output, .. } = &job.state else { return };
    if let Some(model) = &output.model {
        ui::fact("model", model);
    }
    ui::fact("tokens", &output.usage.total_tokens.to_string());
    ui::fact("cost", &cost(output.cost));
    ui::line("");
    report(&output.body);
}

/// The result itself, and what it cites.
pub(in crate::commands) fn report(body: &Body) {
    match body {
        Body::Report { text, sources, .. } => {
            ui::text(text);
            if !sources.is_empty() {
                ui::line("\nSources");
                for source in sources {
                    let title = source.title.as_deref().unwrap_or_default();
                    ui::text(&format!("[{}] {} {title}", source.number, source.url));
                }
            }
        }
        Body::Tool { content, .. } => {
            for block in content {
                ui::text(&block.to_string());
            }
        }
    }
}

fn state(job: &Job) -> String {
    let name = job.state.kind().as_str();
    match (&job.state, job.state.kind()) {
        (JobState::Cancelled { remote: RemoteStop::Owed, .. }, _) => {
            format!("{name}; the provider has yet to be told")
        }
        (_, StateKind::Running) if !job.failures.is_empty() => {
            format!("{name}, attempt {}", job.failures.len() + 1)
        }
        _ => name.to_owned(),
    }
}

/// What it cost, and how sure that is.
pub(in crate::commands) fn cost(cost: Cost) -> String {
    match cost {
        Cost::Reported(NanoUsd(0)) => "free".to_owned(),
        Cost::Reported(cost) => format!("{cost} (reported by the provider)"),
        Cost::Computed(cost) => format!("{cost} (computed)"),
        Cost::Estimate(cost) => format!("about {cost}"),
        Cost::Unknown => "unknown".to_owned(),
    }
}
