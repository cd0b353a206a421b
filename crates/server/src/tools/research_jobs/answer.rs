//! The answers of the three tools about a job: one format, and a text that instructs a model what to do next (A4).

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{Body, Failure, Job, JobState, Output, Request, Standing, Waits};
use outlast_engine::JobSnapshot;
use outlast_mirror::QuestionShape;
use serde::Serialize;
use serde_json::Value;

use super::ResearchJobsOptions;
use crate::text::{block_texts, echo_id, minutes, printable, with_citations};
use crate::tool_names::research_jobs::{POLL, START};

/// The common format of all three tools (A4).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResearchJobAnswer {
    job_id: String,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    elapsed_sec: f64,
    /// The question that the job waits for (M4).
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<QuestionShape>,
    message: String,
}

impl ResearchJobAnswer {
    /// Builds the answer about a job. Takes ownership, because a report may have several megabytes and is moved into the
    /// answer.
    pub(super) fn about(reading: JobSnapshot, options: &ResearchJobsOptions) -> Self {
        let JobSnapshot { job, now, waits } = reading;
        let stop_text = job.stop_text();
        let run_left = job.run_left_text();
        let mut answer = Self {
            job_id: job.id.to_string(),
            status: "IN_PROGRESS",
            response: None,
            error: None,
            elapsed_sec: seconds(job.elapsed(now)),
            question: job.open_question().map(QuestionShape::new),
            message: String::new(),
        };
        match job.state {
            JobState::Queued { .. } | JobState::Running { .. } => {
                if !job.was_claimed() {
                    answer.status = "CREATED";
                }
                answer.message =
                    ask_to_return(&describe_standing(&job, waits), options.poll_budget);
            }
            JobState::Succeeded { output, .. } => {
                answer.status = "COMPLETED";
                let Output { body, cost, .. } = Arc::unwrap_or_clone(output);
                answer.response = Some(response(body, strips_thinking(&job.new.request)));
                "The report is in `response`; the same call returns it again."
                    .clone_into(&mut answer.message);
                if let Some(warning) = cost.warning() {
                    answer.message.push_str(&format!(" {warning}"));
                }
            }
            JobState::Failed { .. } => {
                answer.status = "FAILED";
                if let Some(failure) = job.failures.last() {
                    answer.error =
                        Some(printable(&format!("{}: {}", failure.code, failure.message)));
                    answer.message = describe_failure(failure, &answer.job_id, run_left);
                }
            }
            JobState::Cancelled { .. } => {
                answer.status = "CANCELLED";
                answer.message = match stop_text {
                    Some(told) => format!("Cancelled. {told}"),
                    None => "Cancelled.".to_owned(),
                };
            }
        }
        answer
    }

    /// Builds the answer for an id without a job.
    pub(super) fn not_found(given: &str, options: &ResearchJobsOptions) -> Self {
        let minutes = minutes(options.keep);
        Self {
            job_id: echo_id(given),
            status: "NOT_FOUND",
            response: None,
            error: None,
            elapsed_sec: 0.0,
            question: None,
            message: format!(
                "There is no job with this id. Finished jobs are kept for {minutes} minutes after their end; check \
                 the id, or call {START} again."
            ),
        }
    }
}

/// Converts the answer to structured content and moves the report into it.
impl TryFrom<ResearchJobAnswer> for Value {
    type Error = serde_json::Error;

    fn try_from(mut answer: ResearchJobAnswer) -> Result<Self, Self::Error> {
        let response = answer.response.take();
        let mut value = serde_json::to_value(answer)?;
        if let Some(response) = response {
            value["response"] = Self::String(response);
        }
        Ok(value)
    }
}

/// Returns the standing of an unfinished job.
fn describe_standing(job: &Job, waits: Option<Waits>) -> String {
    let standing = printable(&Standing::new(job, waits).to_string());
    match job.state {
        JobState::Running { .. } => format!("Still running: {standing}"),
        JobState::Queued { .. }
        | JobState::Succeeded { .. }
        | JobState::Failed { .. }
        | JobState::Cancelled { .. } => standing,
    }
}

fn ask_to_return(standing: &str, poll_budget: Duration) -> String {
    let budget = poll_budget.as_secs_f64().ceil();
    format!(
        "{standing}. Call {POLL} with this jobId until the status is COMPLETED or FAILED; each call waits up to \
         {budget} s for the end, so there is no need to pause between calls."
    )
}

fn describe_failure(failure: &Failure, id: &str, run_left: Option<String>) -> String {
    match run_left {
        None if failure.code.needs_consent() => format!(
            "The research failed; see `error`. A new run may be paid for a second time: tell the user, and only on \
             their word begin one, with {START} under a new idempotency_key or with `outlast jobs retry {id} --again`."
        ),
        Some(told) => format!(
            "The research failed; see `error`. But {told}. Tell the user; {START} would begin it anew and be paid for \
             again."
        ),
        None if failure.code.is_retryable() => {
            format!("The research failed; see `error`. {START} begins it anew.")
        }
        None => "The research failed; see `error`. Trying again will not help until that is fixed."
            .to_owned(),
    }
}

/// Returns true if the caller wants the report without the model's thinking.
pub(in crate::tools) fn strips_thinking(request: &Request) -> bool {
    request.research().is_some_and(|ask| ask.strip_thinking)
}

/// Returns the report and, after a blank line, the sources of its citations.
fn response(body: Body, strip_thinking: bool) -> String {
    match body {
        Body::Report { text, sources, thinking, .. } => match thinking {
            // At the position that the vendor's server uses: before the report, between its tags.
            Some(thinking) if !strip_thinking => {
                with_citations(format!("<think>\n{thinking}\n</think>\n\n{text}"), &sources)
            }
            Some(_) | None => with_citations(text, &sources),
        },
        Body::Tool { content, .. } => block_texts(&content),
    }
}

/// Rounds a duration to seconds with one decimal.
fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use outlast_core::Source;

    use super::*;

    #[test]
    fn a_report_ends_with_its_citations() {
        let sources = [(1, "https://a.example"), (3, "https://b.example")]
            .map(|(number, url)| Source { number, url: url.to_owned(), ..Source::default() });
        let body = Body::report("# R [1][3]", sources.to_vec());
        assert_eq!(
            response(body, false),
            "# R [1][3]\n\nCitations:\n[1] https://a.example\n[3] https://b.example"
        );
    }
}
