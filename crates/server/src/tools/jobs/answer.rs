//! The answers of start, get and cancel about a job: one format, and a text that instructs a model what to do next (E4).

use std::time::Duration;

use outlast_core::{Code, Job, JobState, Output, Progress, StateKind, Waits};
use outlast_engine::JobSnapshot;
use outlast_mirror::QuestionShape;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::JobsOptions;
use super::result_page::{ResultPage, result};
use crate::reply::Refusal;
use crate::text::{echo_id, minutes, printable};
use crate::tool_names::jobs::GET;

/// The maximum number of characters that are shown of an external text.
const MAX_SHOWN_CHARS: usize = 1000;
/// The recommended delay, in seconds, between polls of a job that no worker can run.
const NO_WORKER_DELAY: u64 = 30;

/// The common format (E4).
#[derive(Debug, Serialize)]
pub(super) struct JobAnswer {
    job_id: String,
    status: JobStatus,
    done: bool,
    progress: JobProgress,
    polling: PollAdvice,
    result: Value,
    error: Option<JobError>,
    user_message: String,
    next_instruction_for_model: String,
    /// The partial text of a running job (G8); never the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    partial: Option<String>,
    /// The question that the job waits for (M4).
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<QuestionShape>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_page: Option<ResultPage>,
}

/// The status word of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum JobStatus {
    Queued,
    Running,
    Completed,
    Failed,
    Cancelled,
    /// The job does not exist, or no longer exists.
    #[serde(skip_deserializing)]
    Expired,
}

/// The progress of a job.
#[derive(Debug, Serialize)]
pub(super) struct JobProgress {
    percent: Option<u8>,
    step: JobStatus,
    message: String,
}

#[derive(Debug, Serialize)]
struct PollAdvice {
    recommended_next_action: &'static str,
    recommended_delay_seconds: u64,
}

#[derive(Debug, Serialize)]
struct JobError {
    code: &'static str,
    message: String,
    retryable: bool,
}

impl JobAnswer {
    /// Builds the answer about a job; a long result is cut to the part that starts at `offset`.
    pub(super) fn about(
        reading: &JobSnapshot,
        options: &JobsOptions,
        offset: u64,
    ) -> Result<Self, Refusal> {
        let job = &reading.job;
        Ok(match &job.state {
            JobState::Queued { .. } | JobState::Running { .. } => {
                Self::from_unfinished(reading, options.wait)
            }
            JobState::Succeeded { output, .. } => Self::from_completed(job, output, offset)?,
            JobState::Failed { .. } => Self::from_failure(job),
            JobState::Cancelled { .. } => Self {
                error: Some(JobError::new("CANCELLED", "the job was cancelled")),
                ..Self::new(
                    job.id.to_string(),
                    JobStatus::Cancelled,
                    and("The job was cancelled.", job.stop_text().as_deref()),
                    "The job was cancelled; start a new one only if the user asks for it.",
                )
            },
        })
    }

    /// Marks the answer as that of a job that was just started.
    pub(super) fn with_start(self) -> Self {
        Self { user_message: "The job has started.".to_owned(), ..self }
    }

    /// Builds the answer for an id without a job.
    pub(super) fn from_expired(given: &str, options: &JobsOptions) -> Self {
        let why = format!(
            "there is no job with this id; finished jobs are kept for {} minutes after their end",
            minutes(options.keep)
        );
        Self {
            error: Some(JobError::new("JOB_EXPIRED", &why)),
            ..Self::new(
                echo_id(given),
                JobStatus::Expired,
                "The job has expired, or its id is wrong.".to_owned(),
                "Check the job_id; if the result is still wanted, start the job again.",
            )
        }
    }

    fn from_unfinished(reading: &JobSnapshot, wait: Duration) -> Self {
        let JobSnapshot { job, waits, .. } = reading;
        let status = JobStatus::of(job.state.kind(), job.was_claimed());
        let standing = shorten(&reading.read_standing().to_string());
        let mut next = format!(
            "Call {GET} with this job_id until `done` is true; each call waits up to {} s for the end, so there is no \
             need to pause between calls.",
            wait.as_secs()
        );
        let mut delay = 0;
        if job.open_question().is_some() {
            next.insert_str(
                0,
                "The job waits for an answer to `question`: tell the user, who alone answers it. ",
            );
        }
        if let Some(Waits::ForAWorker) = waits {
            delay = NO_WORKER_DELAY;
            next.push_str(&format!(" But tell the user first. {standing}."));
        }
        Self {
            done: false,
            progress: JobProgress::of(status, job.progress.as_ref()),
            partial: job.partial.as_deref().map(printable),
            question: job.open_question().map(QuestionShape::new),
            polling: PollAdvice { recommended_next_action: GET, recommended_delay_seconds: delay },
            ..Self::new(job.id.to_string(), status, format!("{standing}."), &next)
        }
    }

    fn from_completed(job: &Job, output: &Output, offset: u64) -> Result<Self, Refusal> {
        let (result, page) = result(job, output, offset)?;
        let next = match page.as_ref().map(|page| page.next_offset) {
            None => "The job is complete; its result is in `result`.".to_owned(),
            Some(Some(next)) => format!(
                "The result is long: `result` is a part of its JSON. Call {GET} with this job_id and offset {next} for \
                 the next part, and join the parts."
            ),
            Some(None) => {
                "The result is long: `result` is the last part of its JSON; join the parts."
                    .to_owned()
            }
        };
        let message = and("The job is complete.", output.cost.warning().as_deref());
        Ok(Self {
            result,
            result_page: page,
            ..Self::new(job.id.to_string(), JobStatus::Completed, message, &next)
        })
    }

    fn from_failure(job: &Job) -> Self {
        let mut error = JobError::of(job);
        let next = match job.run_left_text() {
            Some(told) => {
                error.retryable = false;
                let twice = if job.may_be_charged() {
                    "would be paid for again"
                } else {
                    "would run it twice"
                };
                format!("But {told}. Starting it again {twice}.")
            }
            None if job.needs_consent() => format!(
                "Start it again only on the user's word, under a new idempotency_key or with `outlast jobs retry {} \
                 --again`.",
                job.id
            ),
            None if error.retryable => "Starting it again may help.".to_owned(),
            None => "Starting it again will not help until that is fixed.".to_owned(),
        };
        let next = format!("The job failed; tell the user why. {next}");
        let message = format!("The job failed: {}.", error.message);
        let failed = Self::new(job.id.to_string(), JobStatus::Failed, message, &next);
        Self { error: Some(error), ..failed }
    }

    /// Builds the answer about a job that has ended or does not exist.
    fn new(job_id: String, status: JobStatus, user_message: String, next: &str) -> Self {
        Self {
            job_id,
            status,
            done: true,
            progress: JobProgress::of(status, None),
            polling: PollAdvice { recommended_next_action: "none", recommended_delay_seconds: 0 },
            result: Value::Null,
            error: None,
            user_message,
            next_instruction_for_model: next.to_owned(),
            partial: None,
            question: None,
            result_page: None,
        }
    }
}

impl JobError {
    fn new(code: &'static str, message: &str) -> Self {
        Self { code, message: message.to_owned(), retryable: false }
    }

    /// Returns the last failure of a job.
    fn of(job: &Job) -> Self {
        let Some(failure) = job.failures.last() else {
            let message = "it failed without a reason; the server's log has the details";
            return Self::new(Code::ExecutionError.as_str(), message);
        };
        let code = match failure.code {
            // A defect in this server has no separate code here; the sentence explains it.
            Code::InternalError => Code::ExecutionError,
            code => code,
        };
        let retryable = job.may_succeed_again();
        Self { retryable, ..Self::new(code.as_str(), &shorten(&failure.message)) }
    }
}

impl JobProgress {
    /// Builds the progress. Only a running job reports how far it has come.
    pub(super) fn of(status: JobStatus, said: Option<&Progress>) -> Self {
        let (percent, message) = match status {
            JobStatus::Queued => (Some(0), "Job accepted"),
            JobStatus::Running => (said.and_then(|said| said.percent), "Job running"),
            JobStatus::Completed => (Some(100), "Job completed"),
            JobStatus::Failed => (None, "Job failed"),
            JobStatus::Cancelled => (None, "Job cancelled"),
            JobStatus::Expired => (None, "Job expired or unknown"),
        };
        let said = said.filter(|_| status == JobStatus::Running);
        let said = said.map(|said| shorten(&said.message)).filter(|said| !said.is_empty());
        Self { percent, step: status, message: said.unwrap_or_else(|| message.to_owned()) }
    }
}

impl JobStatus {
    pub(super) fn of(state: StateKind, was_claimed: bool) -> Self {
        match state {
            StateKind::Queued if !was_claimed => Self::Queued,
            StateKind::Queued | StateKind::Running | StateKind::Waiting => Self::Running,
            StateKind::Succeeded => Self::Completed,
            StateKind::Failed => Self::Failed,
            StateKind::Cancelled => Self::Cancelled,
        }
    }
}

/// Joins a sentence and an optional second one.
fn and(sentence: &str, further: Option<&str>) -> String {
    further.map_or_else(|| sentence.to_owned(), |further| format!("{sentence} {further}"))
}

fn shorten(text: &str) -> String {
    printable(text).chars().take(MAX_SHOWN_CHARS).collect()
}
