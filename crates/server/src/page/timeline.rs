//! The events of a job, its attempts and errors in one list, and the known facts about its cost (I3).

use outlast_core::{Checkpoint, Job, JobState, LedgerRow, RequestState, SummaryCharge, Timestamp};

use crate::export::{cost_text, escaped};
use crate::paid_runs::PaidRun;
use crate::text::took;

/// Renders the list as HTML.
pub(super) fn timeline(job: &Job, now: Timestamp) -> String {
    let mut events: Vec<(Timestamp, String)> = vec![(job.created_at, "accepted".to_owned())];
    for (number, failure) in (1..).zip(&job.failures) {
        events.push((
            failure.at,
            format!(
                "<span class=\"bad\">try {number} failed: {}</span><br>{}",
                escaped(&failure.code.to_string()),
                escaped(&failure.message)
            ),
        ));
    }
    if let Checkpoint::Running(run) = &job.checkpoint {
        events.push((run.begun_at, format!("accepted by {}", escaped(&run.provider))));
    }
    let attempt = job.failures.len() + 1;
    match &job.state {
        JobState::Queued { run_at } if *run_at > now => {
            events.push((*run_at, format!("try {attempt} is due")));
        }
        JobState::Queued { .. } => events.push((now, "waits for a worker".to_owned())),
        JobState::Running { since } => {
            events.push((*since, format!("try {attempt} was taken by a worker")));
            if let Some(progress) = &job.progress {
                events.push((now, escaped(&progress.message)));
            }
        }
        JobState::Succeeded { at, .. } => events.push((*at, "succeeded".to_owned())),
        JobState::Failed { at } => events.push((*at, "failed for good".to_owned())),
        JobState::Cancelled { at, .. } => events.push((*at, "cancelled".to_owned())),
    }
    events.sort_by_key(|(at, _)| *at);
    let lines: String = events
        .into_iter()
        .map(|(at, what)| {
            let since = took(at.since(job.created_at).as_secs());
            format!(
                "<li><time class=\"when\" datetime=\"{at}\" title=\"{at}\">+{since}</time><span>{what}</span></li>\n"
            )
        })
        .collect();
    format!("<ol class=\"timeline\">\n{lines}</ol>\n")
}

/// Renders whether the request was sent, what the ledger records about all runs, and what a retry would do.
pub(super) fn money(job: &Job, charge: Option<&SummaryCharge>, rows: &[LedgerRow]) -> String {
    let sent = match job.request_state() {
        RequestState::NotSent => "no".to_owned(),
        RequestState::Unanswered => {
            "maybe: it was on its way, and no answer is recorded".to_owned()
        }
        RequestState::NotAccepted => "no: it was refused, or did not arrive".to_owned(),
        RequestState::Accepted(run) => format!("yes, to {}", escaped(&run.provider)),
    };
    let mut facts = vec![("Sent", sent)];
    if let Checkpoint::Running(run) = &job.checkpoint {
        let id = escaped(run.short_id());
        facts.push(("Remote run", format!("<code id=\"remote-run\">{id}</code> <button type=\"button\" class=\"link noprint\" data-copy=\"remote-run\" hidden>Copy</button>")));
    }
    let paid = match &job.state {
        JobState::Succeeded { output, .. } => escaped(&cost_text(output.cost)),
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
    facts.push(("Paid", paid));
    if rows.len() > 1 {
        let runs = PaidRun::all(job, rows);
        let lines: Vec<String> = runs.iter().map(|run| escaped(&run.to_string())).collect();
        facts.push(("Its runs", lines.join("<br>")));
    }
    if let Some(text) = job.run_left_text().or_else(|| job.stop_text()) {
        facts.push(("Its run", escaped(&text)));
    }
    if let Some(text) = retry_text(job) {
        facts.push(("A retry", text.to_owned()));
    }
    let lines: String =
        facts.iter().map(|(name, fact)| format!("<dt>{name}</dt><dd>{fact}</dd>\n")).collect();
    format!("<dl>\n{lines}</dl>\n")
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
