//! Tool set `research-jobs`: start, poll, cancel. Works with any client, however short its limit for one call,
//! because no call lasts longer than the poll budget.

mod schema;

use std::time::Duration;

use outlast_core::{
    Body, Cancelled, Effort, Job, JobId, JobState, Key, Message, NewJob, OwnerId, Profile,
    RemoteStop, ResearchAsk, Role, Scope, Timestamp, Visibility,
};
use outlast_engine::{Engine, Waits};
use rmcp::model::{CallToolResult, Tool};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::arguments;
use crate::reply::{Refusal, structured};
use crate::text::{echoed_id, printable, without_thinking};

pub(crate) const START: &str = "perplexity_research_start";
pub(crate) const POLL: &str = "perplexity_research_poll";
pub(crate) const CANCEL: &str = "perplexity_research_cancel";

/// What is said of a job nobody can run.
const NO_WORKER: &str = "The research waits: no running server has the provider and key it was started with, so tell \
                         the user to start `outlast serve` or `outlast worker` with the same settings";

/// What this set is told once.
#[derive(Clone, Debug)]
pub struct ResearchJobsOptions {
    /// Which workers can run its jobs.
    pub profile: Profile,
    /// How long one poll waits.
    pub poll_budget: Duration,
    /// How many failures are forgiven.
    pub max_failures: u32,
    /// How long one try may take.
    pub attempt_timeout: Duration,
    /// How long a job may stay unfinished.
    pub life: Duration,
    /// How long a finished job can be polled.
    pub keep: Duration,
}

/// The tool set.
#[derive(Clone)]
pub struct ResearchJobs {
    engine: Engine,
    options: ResearchJobsOptions,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StartArguments {
    messages: Vec<Message>,
    #[serde(default)]
    strip_thinking: bool,
    #[serde(default)]
    reasoning_effort: Option<Effort>,
    #[serde(default)]
    idempotency_key: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct JobArguments {
    job_id: String,
}

/// The one shape of all three tools (A4).
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    job_id: String,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    elapsed_sec: f64,
    message: String,
}

impl ResearchJobs {
    /// The set over an engine.
    pub fn new(engine: Engine, options: ResearchJobsOptions) -> Self {
        Self { engine, options }
    }

    /// Its tools as they are listed.
    pub(crate) fn tools(&self) -> Vec<Tool> {
        schema::tools(self.options.poll_budget, self.options.keep)
    }

    /// Calls one of them; `None` when the name is not one of this set's.
    pub(crate) async fn call(
        &self,
        owner: &OwnerId,
        name: &str,
        arguments: Option<Map<String, Value>>,
    ) -> Option<Result<CallToolResult, Refusal>> {
        Some(match name {
            START => self.start(owner, arguments).await,
            POLL => self.poll(owner, arguments).await,
            CANCEL => self.cancel(owner, arguments).await,
            _ => return None,
        })
    }

    async fn start(
        &self,
        owner: &OwnerId,
        arguments: Option<Map<String, Value>>,
    ) -> Result<CallToolResult, Refusal> {
        let arguments: StartArguments = arguments::read(arguments)?;
        check_messages(&arguments.messages)?;
        let ask = ResearchAsk {
            messages: arguments.messages,
            effort: arguments.reasoning_effort,
            strip_thinking: arguments.strip_thinking,
        };
        let key = arguments.idempotency_key.map(|text| key(text, &ask)).transpose()?;
        let started = self.engine.start(self.new_job(owner, &ask)?, key).await?;
        let now = self.engine.now();
        if outlast_core::rules::expired(&started.job, now) {
            return structured(&self.not_found(&started.job.id.to_string()));
        }
        structured(&self.about(&started.job, now))
    }

    async fn poll(
        &self,
        owner: &OwnerId,
        arguments: Option<Map<String, Value>>,
    ) -> Result<CallToolResult, Refusal> {
        let JobArguments { job_id } = arguments::read(arguments)?;
        let Ok(id) = job_id.parse::<JobId>() else { return structured(&self.not_found(&job_id)) };
        let scope = Scope::Owner(owner.clone());
        match self.engine.poll(&scope, &id, self.options.poll_budget).await? {
            Some(reading) => {
                let mut answer = self.about(&reading.job, reading.now);
                if let Some(Waits::ForAWorker) = reading.waits {
                    answer.message = self.come_back(NO_WORKER);
                }
                structured(&answer)
            }
            None => structured(&self.not_found(&job_id)),
        }
    }

    async fn cancel(
        &self,
        owner: &OwnerId,
        arguments: Option<Map<String, Value>>,
    ) -> Result<CallToolResult, Refusal> {
        let JobArguments { job_id } = arguments::read(arguments)?;
        let Ok(id) = job_id.parse::<JobId>() else { return structured(&self.not_found(&job_id)) };
        let scope = Scope::Owner(owner.clone());
        match self.engine.cancel(&scope, &id).await? {
            Some(Cancelled::Now(job) | Cancelled::Already(job)) => {
                structured(&self.about(&job, self.engine.now()))
            }
            None => structured(&self.not_found(&job_id)),
        }
    }

    fn new_job(&self, owner: &OwnerId, ask: &ResearchAsk) -> Result<NewJob, Refusal> {
        Ok(NewJob {
            owner: owner.clone(),
            conversation: None,
            profile: self.options.profile.clone(),
            workflow: "deep_research".to_owned(),
            title: title(ask.question()),
            ask: serde_json::to_value(ask).map_err(|_| Refusal::internal())?,
            priority: 0,
            visibility: Visibility::Promised,
            max_failures: self.options.max_failures,
            attempt_timeout: self.options.attempt_timeout,
            life: Some(self.options.life),
            keep: Some(self.options.keep),
        })
    }

    /// What is to be said about a job.
    fn about(&self, job: &Job, now: Timestamp) -> Answer {
        let mut answer = Answer {
            job_id: job.id.to_string(),
            status: "IN_PROGRESS",
            response: None,
            error: None,
            elapsed_sec: seconds(job.elapsed(now)),
            message: String::new(),
        };
        match &job.state {
            JobState::Queued { .. } if !job.was_claimed() => {
                answer.status = "CREATED";
                answer.message = self.come_back("The research is queued");
            }
            JobState::Queued { .. } | JobState::Running { .. } => {
                answer.message = self.come_back(&still_running(job));
            }
            JobState::Succeeded { output, .. } => {
                answer.status = "COMPLETED";
                answer.response = Some(response(&output.body, strips_thinking(job)));
                answer.message =
                    "The report is in `response`; the same call returns it again.".to_owned();
            }
            JobState::Failed { .. } => {
                answer.status = "FAILED";
                answer.error = job
                    .failures
                    .last()
                    .map(|failure| printable(&format!("{}: {}", failure.code, failure.message)));
                let retryable =
                    job.failures.last().is_some_and(|failure| failure.code.is_retryable());
                answer.message = if retryable {
                    format!("The research failed; see `error`. {START} begins it anew.")
                } else {
                    "The research failed; see `error`. Trying again will not help until that is mended.".to_owned()
                };
            }
            JobState::Cancelled { remote, .. } => {
                answer.status = "CANCELLED";
                answer.message = cancelled(*remote).to_owned();
            }
        }
        answer
    }

    fn come_back(&self, what: &str) -> String {
        let budget = self.options.poll_budget.as_secs_f64().ceil();
        format!(
            "{what}. Call {POLL} with this jobId until the status is COMPLETED or FAILED; each call waits up to \
             {budget} s for the end, so there is no need to pause between calls."
        )
    }

    fn not_found(&self, given: &str) -> Answer {
        let minutes = self.options.keep.as_secs_f64() / 60.0;
        let minutes = (minutes * 10.0).ceil() / 10.0;
        Answer {
            job_id: echoed_id(given),
            status: "NOT_FOUND",
            response: None,
            error: None,
            elapsed_sec: 0.0,
            message: format!(
                "There is no job with this id. Finished jobs are kept for {minutes} minutes after their end; check \
                 the id, or call {START} again."
            ),
        }
    }
}

/// At least one thing to answer, not too many, and none of it empty where it matters.
fn check_messages(messages: &[Message]) -> Result<(), Refusal> {
    if messages.is_empty() || messages.len() > 100 {
        let count = messages.len();
        return Err(Refusal::validation(format!(
            "messages must have 1 to 100 entries, not {count}"
        )));
    }
    let mut said = messages.iter().enumerate().filter(|(_, message)| message.role != Role::System);
    match said.next_back() {
        None => {
            Err(Refusal::validation("messages must have an entry with role `user`: the question"))
        }
        Some((index, message)) if message.content.trim().is_empty() => {
            Err(Refusal::validation(format!("messages[{index}].content must not be empty")))
        }
        Some(_) => Ok(()),
    }
}

/// A key together with what it stands for.
fn key(text: String, ask: &ResearchAsk) -> Result<Key, Refusal> {
    let length = text.chars().count();
    if !(1..=200).contains(&length) {
        return Err(Refusal::validation(format!(
            "idempotency_key must have 1 to 200 characters, not {length}"
        )));
    }
    let input = serde_json::to_vec(&(START, ask)).map_err(|_| Refusal::internal())?;
    Ok(Key::given(&text, Sha256::digest(input).into()))
}

/// One line for lists: the start of the question.
fn title(question: &str) -> String {
    let line: String = printable(question).split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(200).collect()
}

fn still_running(job: &Job) -> String {
    let attempt = job.failures.len() + 1;
    let what = match &job.progress {
        Some(progress) => match progress.percent {
            Some(percent) => {
                format!("Still running: {} ({percent} %)", printable(&progress.message))
            }
            None => format!("Still running: {}", printable(&progress.message)),
        },
        None => "Still running".to_owned(),
    };
    if attempt == 1 { what } else { format!("{what}, attempt {attempt}") }
}

fn cancelled(remote: RemoteStop) -> &'static str {
    match remote {
        RemoteStop::NotNeeded => "Cancelled.",
        RemoteStop::Owed => {
            "Cancelled. The provider is being told to stop its run; what it has done so far may still be charged."
        }
        RemoteStop::Done => "Cancelled. The provider was told to stop its run.",
        RemoteStop::Unsupported => {
            "Cancelled here. The provider could not be told, so its run may still finish."
        }
    }
}

fn strips_thinking(job: &Job) -> bool {
    job.new.ask.get("strip_thinking").and_then(Value::as_bool).unwrap_or(false)
}

/// The report and, after a blank line, what its numbers cite.
fn response(body: &Body, strip_thinking: bool) -> String {
    match body {
        Body::Report { text, sources } => {
            let text = if strip_thinking { without_thinking(text) } else { text.clone() };
            let mut response = printable(&text);
            if !sources.is_empty() {
                response.push_str("\n\nCitations:");
                for source in sources {
                    response.push_str(&format!("\n[{}] {}", source.number, printable(&source.url)));
                }
            }
            response
        }
        Body::Tool { content, .. } => {
            let texts = content.iter().filter_map(|block| block.get("text")?.as_str());
            printable(&texts.collect::<Vec<_>>().join("\n"))
        }
    }
}

/// Seconds to one decimal, as people read them.
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
            .map(|(number, url)| Source { number, url: url.to_owned(), title: None, date: None });
        let body = Body::Report { text: "# R [1][3]".to_owned(), sources: sources.to_vec() };
        assert_eq!(
            response(&body, false),
            "# R [1][3]\n\nCitations:\n[1] https://a.example\n[3] https://b.example"
        );
    }

    #[test]
    fn a_question_is_needed() {
        let message = |role, content: &str| Message { role, content: content.to_owned() };
        let cases: [(Vec<Message>, &str); 4] = [
            (vec![], "messages must have 1 to 100 entries, not 0"),
            (vec![message(Role::User, "x"); 101], "messages must have 1 to 100 entries, not 101"),
            (
                vec![message(Role::System, "x")],
                "messages must have an entry with role `user`: the question",
            ),
            (
                vec![message(Role::System, "x"), message(Role::User, " \n")],
                "messages[1].content must not be empty",
            ),
        ];
        for (messages, expected) in cases {
            assert_eq!(check_messages(&messages).unwrap_err().sentence(), expected);
        }
        assert!(check_messages(&[message(Role::User, "why?")]).is_ok());
    }

    #[test]
    fn the_same_key_with_other_input_has_another_hash() {
        let ask = |content: &str| ResearchAsk {
            messages: vec![Message { role: Role::User, content: content.to_owned() }],
            effort: None,
            strip_thinking: false,
        };
        let hash = |content| key("k".to_owned(), &ask(content)).unwrap().input_hash;
        assert_eq!(hash("a"), hash("a"));
        assert_ne!(hash("a"), hash("b"));
        assert!(key(String::new(), &ask("a")).is_err());
        assert!(key("k".repeat(201), &ask("a")).is_err());
    }
}
