//! The events of a job, its attempts and errors in one list, and the known facts about its cost (I3).

use maud::{Markup, html};
use outlast_core::{
    Checkpoint, Job, JobState, LedgerRow, RequestState, SummaryCharge, Timestamp, visible,
};

use crate::export::{cost_text, with_code};
use crate::paid_runs::PaidRun;
use crate::text::took;

/// Renders the list as HTML.
pub(super) fn timeline(job: &Job, now: Timestamp) -> Markup {
    let plain = |text: &str| html! { (visible(text)) };
    let mut events: Vec<(Timestamp, Markup)> = vec![(job.created_at, plain("accepted"))];
    for (number, failure) in (1..).zip(&job.failures) {
        events.push((
            failure.at,
            html! {
                span .bad { "try " (number) " failed: " (failure.code.to_string()) }
                br;
                (with_code(&failure.message))
            },
        ));
    }
    if let Checkpoint::Running(run) = &job.checkpoint {
        events.push((run.begun_at, plain(&format!("accepted by {}", run.provider))));
    }
    let attempt = job.failures.len() + 1;
    match &job.state {
        JobState::Queued { run_at } if *run_at > now => {
            events.push((*run_at, plain(&format!("try {attempt} is due"))));
        }
        JobState::Queued { .. } => events.push((now, plain("waits for a worker"))),
        JobState::Running { since } => {
            events.push((*since, plain(&format!("try {attempt} was taken by a worker"))));
            if let Some(progress) = &job.progress {
                events.push((now, plain(&progress.message)));
            }
        }
        JobState::Succeeded { at, .. } => events.push((*at, plain("succeeded"))),
        JobState::Failed { at } => events.push((*at, plain("failed for good"))),
        JobState::Cancelled { at, .. } => events.push((*at, plain("cancelled"))),
    }
    events.sort_by_key(|(at, _)| *at);
    let since = |at: Timestamp| took(at.since(job.created_at).as_secs());
    html! {
        ol .timeline {
            @for (at, event) in events {
                li {
                    time .when datetime=(at.to_string()) title=(at.to_string()) { "+" (since(at)) }
                    span { (event) }
                }
            }
        }
    }
}

/// Renders whether the request was sent, what the ledger records about all runs, and what a retry would do.
pub(super) fn money(job: &Job, charge: Option<&SummaryCharge>, rows: &[LedgerRow]) -> Markup {
    let sent = match job.request_state() {
        RequestState::NotSent => "no".to_owned(),
        RequestState::Unanswered => {
            "maybe: it was on its way, and no answer is recorded".to_owned()
        }
        RequestState::NotAccepted => "no: it was refused, or did not arrive".to_owned(),
        RequestState::Accepted(run) => format!("yes, to {}", run.provider),
    };
    let run = match &job.checkpoint {
        Checkpoint::Running(run) => Some(run.short_id()),
        Checkpoint::NotBegun | Checkpoint::Beginning { .. } => None,
    };
    let paid = match &job.state {
        JobState::Succeeded { output, .. } => cost_text(output.cost),
        _ if !job.new.may_be_charged() => "nothing: this provider is free".to_owned(),
        JobState::Queued { .. } | JobState::Running { .. } => match charge {
            Some(charge) => format!("known at the end; {} is set aside", charge.amount),
            None => "known at the end".to_owned(),
        },
        JobState::Failed { .. } | JobState::Cancelled { .. } => match charge {
            None => "nothing".to_owned(),
            Some(charge) if charge.is_final => charge.amount.to_string(),
            Some(charge) => format!("maybe {}: a run was asked for", charge.amount),
        },
    };
    let runs = if rows.len() > 1 { PaidRun::all(job, rows) } else { Vec::new() };
    html! {
        dl {
            dt { "Sent" }
            dd { (visible(&sent)) }
            @if let Some(id) = run {
                dt { "Remote run" }
                dd {
                    code #remote-run { (visible(id)) } " "
                    button .link.noprint type="button" data-copy="remote-run" hidden { "Copy" }
                }
            }
            dt { "Paid" }
            dd { (visible(&paid)) }
            @if !runs.is_empty() {
                dt { "Its runs" }
                dd { @for run in &runs { (visible(&run.to_string())) br; } }
            }
            @if let Some(text) = job.run_left_text().or_else(|| job.stop_text()) {
                dt { "Its run" }
                dd { (visible(&text)) }
            }
            @if let Some(text) = retry_text(job) {
                dt { "A retry" }
                dd { (text) }
            }
        }
    }
}

/// Describes the effect of a retry; `None` if there is nothing to retry.
pub(super) fn retry_text(job: &Job) -> Option<&'static str> {
    match &job.state {
        JobState::Failed { .. } | JobState::Cancelled { .. } => {
            Some(if (job.needs_consent() || job.may_run_on()) && job.new.may_be_charged() {
                "begins a new run, which may be paid for a second time; it asks for your word"
            } else if job.needs_consent() || job.may_run_on() {
                "does it again, perhaps for the second time; it asks for your word"
            } else if job.run_left().is_some() && job.left_run_has_ended() {
                "fetches the report of the run that was left, and sends nothing"
            } else if job.run_left().is_some() {
                "goes on with the run that was left; a new one is begun only if that has failed"
            } else if job.new.may_be_charged() {
                "begins a new run, which is paid for"
            } else {
                "begins a new run"
            })
        }
        JobState::Queued { .. } | JobState::Running { .. } | JobState::Succeeded { .. } => None,
    }
}
