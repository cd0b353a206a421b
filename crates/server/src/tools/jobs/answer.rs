//! What start, get and cancel say about a job: one shape, and words that tell a model what to do next (E4).

use std::time::Duration;

use outlast_core::{Code, Failure, Job, JobState, Standing, Waits};
use outlast_engine::Reading;
use serde::Serialize;
use serde_json::Value;

use super::page::{Page, ResultPage, result};
use super::{GET, JobsOptions};
use crate::reply::Refusal;
use crate::text::{echoed_id, printable};

/// So much of a text that came from elsewhere is shown.
const LONGEST: usize = 1000;
/// A job nobody can run is not worth asking after more often, in seconds.
const NO_HURRY: u64 = 30;

/// The one shape (E4).
#[derive(Debug, Serialize)]
pub(super) struct Answer {
    job_id: String,
    status: &'static str,
    done: bool,
    progress: ProgressShape,
    polling: Polling,
    result: Value,
    error: Option<ErrorShape>,
    user_message: String,
    next_instruction_for_model: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_page: Option<ResultPage>,
}

/// How far a job has come.
#[derive(Debug, Serialize)]
pub(super) struct ProgressShape {
    percent: Option<u8>,
    step: &'static str,
    message: String,
}

#[derive(Debug, Serialize)]
struct Polling {
    recommended_next_action: &'static str,
    recommended_delay_seconds: u64,
}

#[derive(Debug, Serialize)]
struct ErrorShape {
    code: &'static str,
    message: String,
    retryable: bool,
}

impl Answer {
    /// What is to be said about a job; of a long result, the part from `offset` on.
    pub(super) fn about(
        reading: &Reading,
        options: &JobsOptions,
        offset: u64,
    ) -> Result<Self, Refusal> {
        let Reading { job, waits, .. } = reading;
        let id = job.id.to_string();
        Ok(match &job.state {
            JobState::Queued { .. } | JobState::Running { .. } => {
                Self::unfinished(job, *waits, options)
            }
            JobState::Succeeded { output, .. } => {
                let Page { result, page } = result(job, output, offset)?;
                let mut answer = Self::ended(id, "completed");
                answer.progress.percent = Some(100);
                "Job completed".clone_into(&mut answer.progress.message);
                answer.result = result;
                "The job is complete.".clone_into(&mut answer.user_message);
                if let Some(warning) = output.cost.warning() {
                    answer.user_message.push_str(&format!(" {warning}"));
                }
                answer.next_instruction_for_model = match page.as_ref().map(|page| page.next_offset)
                {
                    None => "The job is complete; its result is in `result`.".to_owned(),
                    Some(Some(next)) => format!(
                        "The result is long: `result` is a part of its JSON. Call {GET} with this job_id and offset \
                         {next} for the next part, and join the parts."
                    ),
                    Some(None) => {
                        "The result is long: `result` is the last part of its JSON; join the parts."
                            .to_owned()
                    }
                };
                answer.result_page = page;
                answer
            }
            JobState::Failed { .. } => Self::failed(job),
            JobState::Cancelled { .. } => {
                let mut answer = Self::ended(id, "cancelled");
                "Job cancelled".clone_into(&mut answer.progress.message);
                answer.error = Some(ErrorShape {
                    code: "CANCELLED",
                    message: "the job was cancelled".to_owned(),
                    retryable: false,
                });
                "The job was cancelled.".clone_into(&mut answer.user_message);
                if let Some(told) = job.stop_text() {
                    answer.user_message.push_str(&format!(" {told}"));
                }
                "The job was cancelled; start a new one only if the user asks for it."
                    .clone_into(&mut answer.next_instruction_for_model);
                answer
            }
        })
    }

    /// The same, said by who has just started it.
    pub(super) fn started(mut self) -> Self {
        "The job has started.".clone_into(&mut self.user_message);
        self
    }

    /// What is to be said when there is no such job, or none any more.
    pub(super) fn expired(given: &str, options: &JobsOptions) -> Self {
        let mut answer = Self::ended(echoed_id(given), "expired");
        "Job expired or unknown".clone_into(&mut answer.progress.message);
        let minutes = (options.keep.as_secs_f64() / 6.0).ceil() / 10.0;
        answer.error = Some(ErrorShape {
            code: "JOB_EXPIRED",
            message: format!(
                "there is no job with this id; finished jobs are kept for {minutes} minutes after their end"
            ),
            retryable: false,
        });
        "The job has expired, or its id is wrong.".clone_into(&mut answer.user_message);
        "Check the job_id; if the result is still wanted, start the job again."
            .clone_into(&mut answer.next_instruction_for_model);
        answer
    }

    fn unfinished(job: &Job, waits: Option<Waits>, options: &JobsOptions) -> Self {
        let status = status(job.state.kind(), job.was_claimed());
        let progress = ProgressShape::of(job, status);
        let nobody = waits == Some(Waits::ForAWorker);
        let standing = bounded(&Standing::of(job, waits).to_string());
        Self {
            job_id: job.id.to_string(),
            status,
            done: false,
            progress,
            polling: Polling {
                recommended_next_action: GET,
                recommended_delay_seconds: if nobody { NO_HURRY } else { 0 },
            },
            result: Value::Null,
            error: None,
            next_instruction_for_model: match nobody {
                true => format!("{} But tell the user first. {standing}.", come_back(options.wait)),
                false => come_back(options.wait),
            },
            user_message: format!("{standing}."),
            result_page: None,
        }
    }

    fn failed(job: &Job) -> Self {
        let mut answer = Self::ended(job.id.to_string(), "failed");
        "Job failed".clone_into(&mut answer.progress.message);
        let mut error = job.failures.last().map_or_else(ErrorShape::unexplained, ErrorShape::of);
        error.retryable = job.may_succeed_again();
        answer.user_message = format!("The job failed: {}.", error.message);
        answer.next_instruction_for_model = match job.run_left_text() {
            Some(told) => {
                error.retryable = false;
                let twice =
                    if job.may_be_charged() { "would be paid for again" } else { "would run it twice" };
                format!("The job failed; tell the user why. But {told}. Starting it again {twice}.")
            }
            None if job.needs_consent() => format!(
                "The job failed; tell the user why. Start it again only on the user's word, under a new \
                 idempotency_key or with `outlast jobs retry {} --again`.",
                job.id
            ),
            None if error.retryable => {
                "The job failed; tell the user why. Starting it again may help.".to_owned()
            }
            None => "The job failed; tell the user why. Starting it again will not help until that is mended."
                .to_owned(),
        };
        answer.error = Some(error);
        answer
    }

    fn ended(job_id: String, status: &'static str) -> Self {
        Self {
            job_id,
            status,
            done: true,
            progress: ProgressShape { percent: None, step: status, message: String::new() },
            polling: Polling { recommended_next_action: "none", recommended_delay_seconds: 0 },
            result: Value::Null,
            error: None,
            user_message: String::new(),
            next_instruction_for_model: String::new(),
            result_page: None,
        }
    }
}

impl ErrorShape {
    fn of(failure: &Failure) -> Self {
        let code = match failure.code {
            // A defect of ours has no code of its own here; its sentence says what it is.
            Code::InternalError => Code::ExecutionError,
            code => code,
        };
        let message = bounded(&failure.message);
        Self { code: code.as_str(), message, retryable: false }
    }

    /// Never seen: a job that failed has a failure.
    fn unexplained() -> Self {
        let message = "it failed without a reason; the server's log has the details".to_owned();
        Self { code: Code::ExecutionError.as_str(), message, retryable: false }
    }
}

impl ProgressShape {
    fn of(job: &Job, status: &'static str) -> Self {
        let said = job.progress.as_ref();
        let message = said.map(|said| bounded(&said.message)).filter(|said| !said.is_empty());
        match status {
            "queued" => Self { percent: Some(0), step: status, message: "Job accepted".to_owned() },
            _ => Self {
                percent: said.and_then(|said| said.percent),
                step: status,
                message: message.unwrap_or_else(|| "Job running".to_owned()),
            },
        }
    }

    /// Of a job in a list, where its words are known.
    pub(super) fn listed(status: &'static str, percent: Option<u8>, message: Option<&str>) -> Self {
        let said = message.map(bounded).filter(|said| !said.is_empty());
        let (percent, words) = match status {
            "queued" => (Some(0), "Job accepted"),
            "running" => (percent, "Job running"),
            "completed" => (Some(100), "Job completed"),
            "failed" => (None, "Job failed"),
            _ => (None, "Job cancelled"),
        };
        let message = if status == "running" { said } else { None };
        Self { percent, step: status, message: message.unwrap_or_else(|| words.to_owned()) }
    }
}

/// The word for where a job stands.
pub(super) fn status(state: outlast_core::StateKind, was_claimed: bool) -> &'static str {
    use outlast_core::StateKind;
    match state {
        StateKind::Queued if !was_claimed => "queued",
        StateKind::Queued | StateKind::Running => "running",
        StateKind::Succeeded => "completed",
        StateKind::Failed => "failed",
        StateKind::Cancelled => "cancelled",
    }
}

fn come_back(wait: Duration) -> String {
    let wait = wait.as_secs();
    format!(
        "Call {GET} with this job_id until `done` is true; each call waits up to {wait} s for the end, so there is no \
         need to pause between calls."
    )
}

fn bounded(text: &str) -> String {
    printable(text).chars().take(LONGEST).collect()
}
