//! A workflow as this face knows it, and the job that is made of a call.

use std::time::Duration;

use outlast_core::{
    ConversationId, Effort, Message, NewJob, OwnerId, Profile, ResearchAsk, Role, Visibility,
    WorkflowAsk,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::arguments::{self, MAX_CHARS, check_query};
use crate::reply::Refusal;
use crate::text::title;
use crate::tools::instructions as instruct;

/// A command gets its arguments in its environment, where one value has about 128 KiB.
const LONGEST_ARGUMENTS: usize = 100 * 1024;

/// Something that can be started by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workflow {
    /// Its name.
    pub name: String,
    /// What it does, for models; may be empty.
    pub description: String,
    /// Which workers can run it.
    pub profile: Profile,
    /// Who does it, and what they take.
    pub work: Work,
    /// How many failures are forgiven.
    pub max_failures: u32,
    /// How long one try may take.
    pub timeout: Duration,
}

/// Who does the work of a workflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// The research provider: the message is the question.
    Research,
    /// A command line: the message is its standard input.
    Command,
    /// A tool of an upstream server.
    Tool {
        /// Whether one of its arguments takes the message.
        takes_message: bool,
    },
}

/// What a call gives to a workflow. What is serialized of it is what makes two calls the same.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Given {
    #[serde(default)]
    pub(super) message: Option<String>,
    #[serde(default)]
    pub(super) arguments: Map<String, Value>,
    #[serde(default)]
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

/// A command's own limit is kept by whoever runs it; the engine's is a net behind that.
const SLACK: Duration = Duration::from_secs(60);
/// The limits of a tool are kept by whoever calls it.
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl Workflow {
    /// The job that is made of a call.
    pub(super) fn new_job(
        &self,
        owner: &OwnerId,
        given: &Given,
        visibility: Visibility,
        keep: Duration,
    ) -> Result<NewJob, Refusal> {
        let priority = given.check()?;
        let (conversation, ask, attempt_timeout, keep) = match self.work {
            Work::Research => {
                let conversation = ConversationId::new(uuid::Uuid::new_v4().simple().to_string());
                // It becomes a conversation, and those are kept.
                (Some(conversation), research(given)?, self.timeout, None)
            }
            Work::Command => {
                (None, self.command(given)?, self.timeout.saturating_add(SLACK), Some(keep))
            }
            Work::Tool { takes_message } => {
                (None, tool(given, takes_message)?, FOR_EVER, Some(keep))
            }
        };
        let message = given.message.as_deref().unwrap_or_default();
        Ok(NewJob {
            owner: owner.clone(),
            conversation,
            profile: self.profile.clone(),
            workflow: self.name.clone(),
            title: if message.trim().is_empty() { self.name.clone() } else { title(message) },
            ask,
            priority,
            visibility,
            max_failures: self.max_failures,
            attempt_timeout,
            life: None,
            keep,
        })
    }

    /// The job that the command line makes of a message and arguments; a sentence where they do not fit the workflow.
    pub fn job(
        &self,
        owner: &OwnerId,
        message: Option<String>,
        arguments: Map<String, Value>,
        keep: Duration,
    ) -> Result<NewJob, String> {
        let given = Given { message, arguments, ..Given::default() };
        let job = self.new_job(owner, &given, Visibility::Promised, keep);
        job.map_err(Refusal::into_sentence)
    }

    /// Of everything that makes two calls the same.
    pub(super) fn input_hash(&self, given: &Given) -> Result<[u8; 32], Refusal> {
        let input = serde_json::to_vec(&("jobs", &self.name, given));
        Ok(Sha256::digest(input.map_err(|_| Refusal::internal())?).into())
    }

    fn command(&self, given: &Given) -> Result<Value, Refusal> {
        let size = serde_json::to_vec(&given.arguments).map_or(usize::MAX, |json| json.len());
        if size > LONGEST_ARGUMENTS {
            return Err(Refusal::validation(format!(
                "arguments must have {LONGEST_ARGUMENTS} bytes at most as JSON, not {size}; a command takes more in \
                 `message`"
            )));
        }
        let timeout_ms = Some(u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX));
        asked(WorkflowAsk { timeout_ms, ..given.ask() })
    }
}

impl Given {
    /// The priority, once everything is as it should be.
    fn check(&self) -> Result<i16, Refusal> {
        if let Some(session) = &self.session_id {
            let length = session.chars().count();
            if !(1..=200).contains(&length) || session.chars().any(char::is_control) {
                return Err(Refusal::validation(
                    "session_id must have 1 to 200 characters, none of them control characters",
                ));
            }
        }
        let message = self.message.as_ref().map_or(0, |message| message.chars().count());
        if message > MAX_CHARS {
            return Err(Refusal::validation(format!(
                "message must have {MAX_CHARS} characters at most, not {message}"
            )));
        }
        let priority = i16::try_from(self.priority).ok();
        priority.filter(|priority| (-100..=100).contains(priority)).ok_or_else(|| {
            Refusal::validation(format!("priority must be -100 to 100, not {}", self.priority))
        })
    }

    fn ask(&self) -> WorkflowAsk {
        WorkflowAsk {
            message: self.message.clone(),
            arguments: self.arguments.clone(),
            session_id: self.session_id.clone(),
            timeout_ms: None,
        }
    }
}

fn research(given: &Given) -> Result<Value, Refusal> {
    let Some(query) = &given.message else {
        return Err(Refusal::validation("message is missing; it is the question to research"));
    };
    check_query(query).map_err(|refusal| refusal.about("query", "message"))?;
    let ResearchArguments { reasoning_effort } = arguments::read_in("arguments", &given.arguments)?;
    let question = Message { role: Role::User, content: query.clone() };
    let ask = ResearchAsk {
        messages: vec![instruct::research(reasoning_effort), question],
        effort: Some(reasoning_effort),
        ..ResearchAsk::default()
    };
    let mut ask = serde_json::to_value(ask).map_err(|_| Refusal::internal())?;
    if let Some(session) = &given.session_id {
        ask["session_id"] = Value::String(session.clone());
    }
    Ok(ask)
}

fn tool(given: &Given, takes_message: bool) -> Result<Value, Refusal> {
    let arguments = serde_json::to_string(&given.arguments).map_err(|_| Refusal::internal())?;
    let length = arguments.chars().count();
    if length > MAX_CHARS {
        return Err(Refusal::validation(format!(
            "arguments must have {MAX_CHARS} characters at most as JSON, not {length}"
        )));
    }
    if given.message.is_some() && !takes_message {
        return Err(Refusal::validation(
            "message is not taken by this workflow; give what it needs in `arguments`",
        ));
    }
    asked(given.ask())
}

fn asked(ask: WorkflowAsk) -> Result<Value, Refusal> {
    serde_json::to_value(ask).map_err(|_| Refusal::internal())
}
