//! Jobs as JSON for scripts. Times are RFC 3339 in UTC.

use outlast_core::{
    Body, Cost, Failure, Job, JobPage, JobState, NoteRecord, Output, Profile, RemoteStop, Summary,
    Timestamp,
};
use serde_json::{Value, json};

use outlast_mirror::QuestionShape;
use outlast_server::{PaidRun, ResearchDetails, StepTotals, TakenStep, retry_of};

/// `jobs list --json`
pub(crate) fn page(page: &JobPage) -> Value {
    let jobs: Vec<Value> = page.jobs.iter().map(summary).collect();
    json!({ "jobs": jobs, "more": page.next.is_some() })
}

/// `jobs watch --json`, `jobs wait --json`
pub(crate) fn jobs(jobs: &[Job], now: Timestamp) -> Value {
    let jobs: Vec<Value> = jobs.iter().map(|it| job(it, now)).collect();
    json!({ "jobs": jobs })
}

/// `jobs show --json`
pub(crate) fn job(job: &Job, now: Timestamp) -> Value {
    let output = match &job.state {
        JobState::Succeeded { output, .. } => self::output(output),
        _ => Value::Null,
    };
    json!({
        "id": job.id.to_string(),
        "owner": job.new.owner,
        "conversation": job.new.conversation,
        "turn": job.turn,
        "retry_of": retry_of(job).map(|id| id.to_string()),
        "workflow": job.new.workflow,
        "question": job.new.title,
        "asks": job.open_question().map(QuestionShape::new),
        "state": job.kind().as_str(),
        "attempts": job.failures.len(),
        "max_attempts": job.new.max_failures + 1,
        "progress": job.progress,
        "partial": job.partial.as_deref(),
        "checkpoint": job.checkpoint,
        "cancelled_run": cancelled_run(job),
        "profile": profile(&job.new.profile),
        "created_at": job.created_at.to_string(),
        "updated_at": job.updated_at.to_string(),
        "ended_at": job.ended_at().map(|at| at.to_string()),
        "elapsed_ms": u64::try_from(job.elapsed(now).as_millis()).unwrap_or(u64::MAX),
        "failures": job.failures.iter().map(failure).collect::<Vec<_>>(),
        "output": output,
    })
}

/// `runs` of `jobs show --json`: the cost, or possible cost, of each paid run of a job.
pub(crate) fn runs(runs: &[PaidRun]) -> Value {
    let run = |run: &PaidRun| {
        json!({
            "number": run.number,
            "id": run.id,
            "provider": run.provider,
            "state": run.state.as_str(),
            "cost": cost(run.cost),
            "possible_nano_usd": run.possible,
        })
    };
    runs.iter().map(run).collect()
}

/// `steps` of `jobs show --json`: the recorded steps, by kind.
pub(crate) fn steps(totals: &[StepTotals]) -> Value {
    let of_kind = |totals: &StepTotals| {
        let (read, written) = totals.tokens;
        json!({
            "kind": totals.kind,
            "done": totals.done,
            "failed": totals.failed,
            "open": totals.open,
            "elapsed_ms": u64::try_from(totals.time.as_millis()).unwrap_or(u64::MAX),
            "nano_usd": totals.spent.0,
            "tokens_read": read,
            "tokens_written": written,
        })
    };
    totals.iter().map(of_kind).collect()
}

/// `research` of `jobs show --json`: the questions, searches, pages and notes of a researcher's run.
pub(crate) fn research(details: &ResearchDetails) -> Value {
    let taken = |subject: &str, steps: &[TakenStep]| -> Vec<Value> {
        let one = |step: &TakenStep| {
            json!({
                subject: step.subject,
                "result": step.result,
                "failed": step.failed,
                "elapsed_ms": step.time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
                "nano_usd": step.spent.0,
            })
        };
        steps.iter().map(one).collect()
    };
    let note = |note: &NoteRecord| {
        json!({
            "question": note.question,
            "claim": note.claim,
            "quotation": note.quotation,
            "url": note.url,
        })
    };
    json!({
        "questions": details.questions,
        "searches": taken("query", &details.searches),
        "pages": taken("url", &details.pages),
        "notes": details.notes.iter().map(note).collect::<Vec<_>>(),
    })
}

/// Returns the known state of a cancelled job's run, in one word.
fn cancelled_run(job: &Job) -> Option<&'static str> {
    let JobState::Cancelled { remote, .. } = job.state else { return None };
    Some(match remote {
        RemoteStop::NotNeeded => "none",
        RemoteStop::MaybeBegun => "maybe_begun",
        RemoteStop::Owed => "stopping",
        RemoteStop::Told => "told",
        RemoteStop::Ended => "ended",
        RemoteStop::Completed => "completed",
        RemoteStop::GoesOn => "goes_on",
        RemoteStop::Unsupported => "unknown",
    })
}

fn summary(job: &Summary) -> Value {
    json!({
        "id": job.id.to_string(),
        "owner": job.owner,
        "conversation": job.conversation,
        "workflow": job.workflow,
        "question": job.title,
        "state": job.state.as_str(),
        "attempts": job.failures,
        "progress": job.progress,
        "created_at": job.created_at.to_string(),
        "updated_at": job.updated_at.to_string(),
        "ended_at": job.ended_at.map(|at| at.to_string()),
    })
}

/// Returns a profile in a form that may be shown: a profile that an older version stored may have a user name and a
/// password in its address.
fn profile(profile: &Profile) -> String {
    let words = profile.as_str().split(' ').map(|word| match word.split_once("://") {
        Some((scheme, rest)) => {
            let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
            format!("{scheme}://{host}")
        }
        None => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

fn failure(failure: &Failure) -> Value {
    json!({
        "code": failure.code.as_str(),
        "message": failure.message,
        "detail": failure.detail,
        "at": failure.at.to_string(),
    })
}

fn output(output: &Output) -> Value {
    let body = match &output.body {
        Body::Report { text, sources, .. } => json!({ "text": text, "sources": sources }),
        Body::Tool { content, structured, is_error } => {
            json!({ "content": content, "structuredContent": structured, "isError": is_error })
        }
    };
    json!({ "body": body, "model": output.model, "usage": output.usage, "cost": cost(output.cost) })
}

fn cost(cost: Cost) -> Value {
    let (kind, nanos) = match cost {
        Cost::Reported(nanos) => ("reported", Some(nanos)),
        Cost::Computed(nanos) => ("computed", Some(nanos)),
        Cost::Estimate(nanos) => ("estimate", Some(nanos)),
        Cost::Unknown => ("unknown", None),
    };
    json!({ "kind": kind, "nano_usd": nanos })
}
