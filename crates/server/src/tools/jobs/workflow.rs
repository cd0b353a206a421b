//! A workflow as the MCP server sees it, and the job that a call creates.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{
    Effort, NewJob, OwnerId, Profile, ResearchRequest, Visibility, WorkflowRequest,
};
use rmcp::model::JsonObject;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::InputSchema;
use crate::arguments::{
    self, MAX_REQUEST_CHARS, as_json, check, check_priority, check_query, digest,
};
use crate::reply::Refusal;
use crate::text::title;
use crate::tools::instructions::{new_conversation, research_messages};

/// The maximum size of a command's arguments: it receives them in an environment variable, which is limited to about 128 KiB.
const MAX_ARGUMENT_BYTES: usize = 100 * 1024;

/// A workflow that can be started by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workflow {
    /// The name.
    pub name: String,
    /// The description for models; may be empty.
    pub description: String,
    /// The capabilities that a worker needs to run it.
    pub profile: Profile,
    /// The kind of work, and its input.
    pub work: WorkKind,
    /// The number of failed attempts that are retried.
    pub max_failures: u32,
    /// The time limit of one attempt.
    pub timeout: Duration,
    /// The schema of the arguments; `None` allows any object.
    pub input: Option<Arc<InputSchema>>,
}

/// The kind of work that a workflow does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkKind {
    /// The research provider: the message is the question.
    Research,
    /// A command line: the message is its standard input.
    Command,
    /// A tool of an upstream server.
    Tool {
        /// True if one of its arguments receives the message.
        takes_message: bool,
    },
}

/// The arguments of a workflow's call. The serialized fields identify the call.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkflowArguments {
    pub(super) message: Option<String>,
    #[serde(default)]
    pub(super) arguments: JsonObject,
    pub(super) session_id: Option<String>,
    #[serde(default)]
    pub(super) priority: i64,
    #[serde(default, skip_serializing)]
    pub(super) idempotency_key: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResearchArguments {
    #[serde(default = "medium")]
    reasoning_effort: Effort,
}

fn medium() -> Effort {
    Effort::Medium
}

/// The time by which the engine's limit is later than a command's limit, which its provider enforces.
const COMMAND_SLACK: Duration = Duration::from_secs(60);
/// The engine's limit for a tool. The provider that calls the tool enforces the tool's limits.
const NO_LIMIT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl Workflow {
    /// Builds the job of a call.
    pub(super) fn new_job(
        &self,
        owner: &OwnerId,
        given: WorkflowArguments,
        visibility: Visibility,
        keep: Duration,
    ) -> Result<NewJob, Refusal> {
        let priority = given.check()?;
        if let Some(input) = &self.input {
            input.check_call(given.message.as_deref(), &given.arguments)?;
        }
        let title = match given.message.as_deref() {
            Some(message) if !message.trim().is_empty() => title(message),
            Some(_) | None => self.name.clone(),
        };
        let (conversation, ask, attempt_timeout, keep) = match self.work {
            WorkKind::Research => {
                // The job becomes a conversation, and conversations are kept.
                (Some(new_conversation()), research(given)?, self.timeout, None)
            }
            WorkKind::Command => {
                (None, self.command(given)?, self.timeout.saturating_add(COMMAND_SLACK), Some(keep))
            }
            WorkKind::Tool { takes_message } => {
                (None, tool(given, takes_message)?, NO_LIMIT, Some(keep))
            }
        };
        Ok(NewJob {
            owner: owner.clone(),
            conversation,
            subject: None,
            profile: self.profile.clone(),
            workflow: self.name.clone(),
            title,
            request: ask.into(),
            priority,
            visibility,
            max_failures: self.max_failures,
            attempt_timeout,
            life: None,
            keep,
        })
    }

    /// Builds the job for a message and arguments from the command line; returns a sentence if they do not fit the workflow.
    pub fn job(
        &self,
        owner: &OwnerId,
        message: Option<String>,
        arguments: JsonObject,
        keep: Duration,
    ) -> Result<NewJob, String> {
        let given = WorkflowArguments { message, arguments, ..WorkflowArguments::default() };
        let job = self.new_job(owner, given, Visibility::Promised, keep);
        job.map_err(Refusal::into_sentence)
    }

    /// Returns the digest of everything that identifies a call.
    pub(super) fn input_hash(&self, given: &WorkflowArguments) -> Result<[u8; 32], Refusal> {
        digest(&("jobs", &self.name, given))
    }

    fn command(&self, given: WorkflowArguments) -> Result<Value, Refusal> {
        let size = serde_json::to_vec(&given.arguments).map_or(usize::MAX, |json| json.len());
        check(size <= MAX_ARGUMENT_BYTES, || {
            format!(
                "arguments must have {MAX_ARGUMENT_BYTES} bytes at most as JSON, not {size}; a command takes more in \
                 `message`"
            )
        })?;
        let timeout_ms = Some(u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX));
        given.into_ask(timeout_ms)
    }
}

impl WorkflowArguments {
    /// Checks all fields and returns the priority.
    fn check(&self) -> Result<i16, Refusal> {
        if let Some(session) = &self.session_id {
            let fits = (1..=200).contains(&session.chars().count());
            check(fits && !session.chars().any(char::is_control), || {
                "session_id must have 1 to 200 characters, none of them control characters"
                    .to_owned()
            })?;
        }
        let message = self.message.as_ref().map_or(0, |message| message.chars().count());
        check(message <= MAX_REQUEST_CHARS, || {
            format!("message must have {MAX_REQUEST_CHARS} characters at most, not {message}")
        })?;
        check_priority(self.priority)
    }

    fn into_ask(self, timeout_ms: Option<u64>) -> Result<Value, Refusal> {
        let Self { message, arguments, session_id, .. } = self;
        as_json(&WorkflowRequest { message, arguments, session_id, timeout_ms })
    }
}

fn research(given: WorkflowArguments) -> Result<Value, Refusal> {
    let Some(query) = given.message else {
        return Err(Refusal::validation("message is missing; it is the question to research"));
    };
    check_query("message", &query)?;
    let ResearchArguments { reasoning_effort } =
        arguments::read_in(Some("arguments"), given.arguments)?;
    let ask = ResearchRequest {
        messages: research_messages(reasoning_effort, [], query),
        effort: Some(reasoning_effort),
        ..ResearchRequest::default()
    };
    let mut ask = as_json(&ask)?;
    if let Some(session) = given.session_id {
        ask["session_id"] = Value::String(session);
    }
    Ok(ask)
}

fn tool(given: WorkflowArguments, takes_message: bool) -> Result<Value, Refusal> {
    let arguments = serde_json::to_string(&given.arguments).map_err(|_| Refusal::internal())?;
    let length = arguments.chars().count();
    check(length <= MAX_REQUEST_CHARS, || {
        format!("arguments must have {MAX_REQUEST_CHARS} characters at most as JSON, not {length}")
    })?;
    check(given.message.is_none() || takes_message, || {
        "message is not taken by this workflow; give what it needs in `arguments`".to_owned()
    })?;
    given.into_ask(None)
}
