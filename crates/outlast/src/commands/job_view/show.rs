//! One job as a person reads it: facts first, then its timeline, then the report.

use outlast_core::{
    Body, Checkpoint, Job, JobId, JobState, NoteRecord, RemoteStop, RequestState, Source, Standing,
    StateKind, Timestamp, Waits, address_line, without_hidden,
};

use outlast_server::{DEEP_RESEARCH, PaidRun, ResearchDetails, StepTotals, TakenStep, cost_text};

use crate::ui;
use outlast_server::retry_of;

pub(crate) fn job(
    job: &Job,
    waits: Option<Waits>,
    now: Timestamp,
    retries: &[JobId],
    runs: &[PaidRun],
    (steps, details): &(Vec<StepTotals>, ResearchDetails),
) {
    ui::line(&job.id.to_string());
    ui::facts("workflow", Some(&job.new.workflow).filter(|name| *name != DEEP_RESEARCH));
    ui::fact("question", &job.new.title);
    ui::fact_styled("state", &state(job), job.kind());
    ui::facts("needs", needs(job));
    let age = ui::ago(now.since(job.created_at));
    ui::fact("created", format_args!("{} ({age} ago)", job.created_at));
    if let Some(ended_at) = job.ended_at() {
        ui::fact("ended", format_args!("{ended_at} (after {})", ui::took(job.elapsed(now))));
    }
    if !job.kind().is_terminal() {
        ui::fact("progress", Standing::new(job, waits));
    } else if let Some(progress) = &job.progress {
        ui::fact("progress", &progress.message);
    }
    if let Some(question) = job.open_question() {
        ui::fact("asks", without_hidden(&question.text));
        ui::facts("choices", Some(question.choices.join(", ")).filter(|all| !all.is_empty()));
        ui::facts("default", question.default.as_deref());
        ui::fact("until", question.deadline);
    }
    match job.request_state() {
        RequestState::NotSent => {}
        RequestState::Unanswered => ui::fact("remote run", "asked for; no answer recorded"),
        RequestState::NotAccepted => {
            ui::fact("remote run", "none: the request was refused, or did not arrive");
        }
        RequestState::Accepted(run) => {
            ui::fact("remote run", format_args!("{} at {}", run.id, run.provider));
        }
    }
    if runs.len() > 1 {
        for (number, run) in runs.iter().enumerate() {
            ui::fact(if number == 0 { "paid runs" } else { "" }, run);
        }
    }
    for (number, totals) in steps.iter().enumerate() {
        ui::fact(if number == 0 { "steps" } else { "" }, totals);
    }
    research(details);
    ui::fact("owner", &job.new.owner);
    let conversation = job.new.conversation.as_ref();
    ui::facts("conversation", conversation.map(|id| format!("{id}, turn {}", job.turn)));
    ui::facts("retry of", retry_of(job));
    ui::facts("retried as", retries);
    for (number, failure) in (1..).zip(&job.failures) {
        let said = format!("{} {}: {}", failure.at, failure.code, failure.message);
        ui::fact(&format!("failure {number}"), said);
        ui::facts("", failure.detail.as_ref().map(|detail| ui::short(detail, 500)));
    }
    ui::facts("its run", job.run_left_text().or_else(|| job.stop_text()));
    for (number, (at, what)) in timeline(job, now).into_iter().enumerate() {
        let name = if number == 0 { "timeline" } else { "" };
        let after = format!("+{}", ui::took(at.since(job.created_at)));
        ui::fact(name, format_args!("{after:>12}  {what}"));
    }
    if let Some(partial) = &job.partial {
        ui::line("");
        ui::title("Partial text so far (being written; not the report)");
        ui::report(partial);
    }
    let JobState::Succeeded { output, .. } = &job.state else { return };
    ui::facts("model", &output.model);
    // Commands and tools of others have neither.
    if let Body::Report { .. } = output.body {
        ui::fact("tokens", output.usage.total_tokens);
        ui::fact("cost", cost_text(output.cost));
    }
    ui::line("");
    report(&output.body);
}

/// The number of entries of each list of a run that are printed.
const MAX_LISTED: usize = 10;

/// Prints the beginning of the questions, searches, pages and notes of a run.
fn research(details: &ResearchDetails) {
    let taken = |steps: &[TakenStep]| -> Vec<String> {
        let line = |step: &TakenStep| format!("{} ({})", step.subject, step.facts());
        steps.iter().map(|step| line(step).trim_start().to_owned()).collect()
    };
    let note = |note: &NoteRecord| format!("{} ({})", note.claim, note.url);
    let lists = [
        ("questions", details.questions.clone()),
        ("searches", taken(&details.searches)),
        ("pages", taken(&details.pages)),
        ("notes", details.notes.iter().map(note).collect()),
    ];
    for (name, lines) in lists {
        for (number, line) in lines.iter().take(MAX_LISTED).enumerate() {
            ui::fact(if number == 0 { name } else { "" }, ui::short(line, 300));
        }
        if lines.len() > MAX_LISTED {
            let more = lines.len() - MAX_LISTED;
            ui::fact("", format_args!("and {more} more: `--json` lists all"));
        }
    }
}

/// Returns the worker that a queued job of a workflow waits for: that of the file which had the workflow when the job
/// was started.
fn needs(job: &Job) -> Option<String> {
    if job.kind() != StateKind::Queued {
        return None;
    }
    let workflow = job.new.profile.as_str().strip_prefix("workflow ")?;
    Some(match workflow.split_once(" of ") {
        Some((_, file)) => {
            format!("a server or worker with {file}, such as `outlast worker --config {file}`")
        }
        None => {
            "no worker takes it: an earlier version started it without naming its configuration \
                 file; cancel it and start it again"
                .to_owned()
        }
    })
}

/// Returns the events of the job, in order.
fn timeline(job: &Job, now: Timestamp) -> Vec<(Timestamp, String)> {
    let mut events = vec![(job.created_at, "asked".to_owned())];
    for (number, failure) in job.failures.iter().enumerate() {
        events.push((failure.at, format!("attempt {} failed: {}", number + 1, failure.code)));
    }
    if let Checkpoint::Running(run) = &job.checkpoint {
        events.push((run.begun_at, format!("begun at {}", run.provider)));
    }
    let attempt = job.failures.len() + 1;
    match &job.state {
        JobState::Queued { run_at } if *run_at > now => {
            events.push((*run_at, format!("attempt {attempt} is due")));
        }
        JobState::Queued { .. } => {}
        JobState::Running { since } => {
            events.push((*since, format!("attempt {attempt} was taken by a worker")));
        }
        JobState::Succeeded { at, .. }
        | JobState::Failed { at }
        | JobState::Cancelled { at, .. } => {
            events.push((*at, job.kind().as_str().to_owned()));
        }
    }
    events.sort_by_key(|(at, _)| *at);
    events
}

/// Prints the result itself, and its sources.
pub(crate) fn report(body: &Body) {
    match body {
        Body::Report { text, sources, .. } => {
            ui::report(text);
            self::sources(sources);
        }
        Body::Tool { content, .. } => {
            for block in content {
                let said = block["text"].as_str().filter(|_| block["type"] == "text");
                said.map_or_else(|| ui::text(&block.to_string()), |said| ui::text(said.trim_end()));
            }
        }
    }
}

/// Prints the sources of a report, by number.
pub(crate) fn sources(sources: &[Source]) {
    if sources.is_empty() {
        return;
    }
    ui::line("");
    ui::title("Sources");
    for source in sources {
        let title = without_hidden(source.title.as_deref().unwrap_or_default());
        let url = address_line(&source.url);
        ui::entry(format!("[{}] {url} {title}", source.number).trim_end(), 4);
    }
}

fn state(job: &Job) -> String {
    let name = job.kind().as_str();
    match (&job.state, job.kind()) {
        (JobState::Cancelled { remote: RemoteStop::Owed, .. }, _) => {
            format!("{name}; the provider has not been asked to stop yet")
        }
        (JobState::Cancelled { remote: RemoteStop::MaybeBegun, .. }, _) => {
            format!("{name}; a run may have been begun")
        }
        (_, StateKind::Running) if !job.failures.is_empty() => {
            format!("{name}, attempt {}", job.failures.len() + 1)
        }
        _ => name.to_owned(),
    }
}
