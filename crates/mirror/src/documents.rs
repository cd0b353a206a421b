//! The three documents of a conversation: its messages (`conversation.json`), its status (`status.json`), and
//! its pending work (`job.json`). Keys are a contract.

use outlast_core::conversation::{Conversation, ConversationMessage};
use outlast_core::{
    Effort, Failure, Job, JobState, LIBRARY_NOTE, Message, Profile, ResearchRequest, Role,
    Standing, StateKind, Timestamp, Waits,
};
use serde::{Deserialize, Serialize};

use crate::shapes::{CostShape, SearchResult, UsageShape, search_results};

/// `conversation.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConversationFile {
    /// The id of the conversation.
    pub conversation_id: String,
    /// The time at which it began.
    pub created_at: String,
    /// The time of its last change.
    pub updated_at: String,
    /// The model that answers, or is expected to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The provider it belongs to (P1), if `model` does not identify it; absent for Perplexity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The number of messages.
    pub message_count: usize,
    /// The messages.
    pub messages: Vec<Message>,
    /// The usage of all turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageShape>,
    /// The cost of all turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostShape>,
    /// The sources of the last report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search_results: Option<Vec<SearchResult>>,
}

/// `status.json` (B4).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusFile {
    /// The id of the conversation.
    pub conversation_id: String,
    /// The id of the job that is its last turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// The status of the last turn.
    pub status: StatusWord,
    /// The tool that started the turn.
    pub tool_name: String,
    /// The time at which the turn was requested.
    pub started_at: String,
    /// The time of the last change.
    pub updated_at: String,
    /// The time at which it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<String>,
    /// The number of failed attempts.
    #[serde(default)]
    pub attempts: usize,
    /// The progress of the running attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<ProgressShape>,
    /// The final error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorEntry>,
    /// The errors of all attempts, oldest first.
    #[serde(default)]
    pub error_history: Vec<ErrorEntry>,
}

/// The status of a conversation, in the terms of documents B and C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatusWord {
    /// Queued.
    Pending,
    /// A worker runs it.
    InProgress,
    /// Succeeded.
    Completed,
    /// Failed for good.
    Failed,
    /// Cancelled by its owner.
    Cancelled,
}

impl StatusWord {
    /// The name used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The corresponding job state.
    pub fn state(self) -> StateKind {
        match self {
            Self::Pending => StateKind::Queued,
            Self::InProgress => StateKind::Running,
            Self::Completed => StateKind::Succeeded,
            Self::Failed => StateKind::Failed,
            Self::Cancelled => StateKind::Cancelled,
        }
    }
}

impl From<StateKind> for StatusWord {
    fn from(state: StateKind) -> Self {
        match state {
            StateKind::Queued => Self::Pending,
            StateKind::Running | StateKind::Waiting => Self::InProgress,
            StateKind::Succeeded => Self::Completed,
            StateKind::Failed => Self::Failed,
            StateKind::Cancelled => Self::Cancelled,
        }
    }
}

/// The progress of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProgressShape {
    /// 0 to 100.
    #[serde(default)]
    pub percentage: u8,
    /// The current activity.
    pub message: String,
    /// The time since the turn was requested.
    #[serde(default)]
    pub elapsed_ms: u64,
    /// The number of the attempt, unless it is the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<usize>,
}

/// One failure, as clients may see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorEntry {
    /// The code for machines.
    pub code: String,
    /// The message for people.
    pub message: String,
    /// The time of the failure; only in the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
}

/// `job.json`: it exists while the turn is unfinished.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JobFile {
    /// The id of the conversation.
    pub conversation_id: String,
    /// The id of the job.
    pub job_id: String,
    /// The tool that started the turn.
    pub tool_name: String,
    /// The request.
    pub params: JobParams,
    /// Higher priorities run first.
    pub priority: i16,
    /// The time at which it was requested.
    pub created_at: String,
    /// The number of failed attempts.
    pub attempts: usize,
    /// The maximum number of attempts.
    pub max_attempts: u32,
}

/// The request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobParams {
    /// The question.
    pub query: String,
    /// The requested effort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<Effort>,
}

impl ConversationFile {
    /// Renders the messages so far; `expected_model` is used until a model has answered.
    pub fn of(conversation: &Conversation, expected_model: Option<String>) -> Self {
        let messages = conversation.messages().into_iter();
        let messages: Vec<Message> = messages
            .map(|ConversationMessage { role, content, .. }| Message { role, content })
            .collect();
        let last = conversation.last_output();
        let model = last.and_then(|output| output.model.clone()).or(expected_model);
        Self {
            conversation_id: conversation.id.as_str().to_owned(),
            created_at: conversation.created_at().to_string(),
            updated_at: conversation.updated_at().to_string(),
            provider: match conversation.provider() {
                Profile::PERPLEXITY => None,
                Profile::LIBRARY if is_library(model.as_deref()) => None,
                provider => Some(provider.to_owned()),
            },
            model,
            message_count: messages.len(),
            messages,
            usage: last.map(|_| (&conversation.usage()).into()),
            cost: CostShape::of_conversation(conversation),
            search_results: last.map(search_results),
        }
    }

    /// The provider of a conversation that is known only from this file (P1). It is the library if one of its
    /// answers is in the file, whatever else the file contains. Files of older servers name a Perplexity model
    /// or none.
    pub fn provider(&self) -> &str {
        let quotes =
            |said: &Message| said.role == Role::Assistant && said.content.contains(LIBRARY_NOTE);
        if is_library(self.model.as_deref()) || self.messages.iter().any(quotes) {
            return Profile::LIBRARY;
        }
        self.provider.as_deref().unwrap_or(Profile::PERPLEXITY)
    }
}

/// Returns true for the name that the library uses in place of a model.
fn is_library(model: Option<&str>) -> bool {
    model.is_some_and(|model| model.starts_with(Profile::LIBRARY))
}

impl StatusFile {
    /// Renders the status of the last turn at `now`.
    pub fn of(conversation: &Conversation, now: Timestamp) -> Self {
        let job = conversation.last();
        let status = StatusWord::from(job.kind());
        let failed = status == StatusWord::Failed;
        Self {
            conversation_id: conversation.id.as_str().to_owned(),
            job_id: Some(job.id.to_string()),
            status,
            tool_name: tool_name(conversation).to_owned(),
            started_at: job.created_at.to_string(),
            updated_at: job.updated_at.to_string(),
            completed_at: job.ended_at().map(|at| at.to_string()),
            attempts: job.failures.len(),
            progress: (status == StatusWord::InProgress).then(|| ProgressShape::of(job, now, None)),
            error: job.failures.last().filter(|_| failed).map(|failure| {
                let mut error = ErrorEntry { timestamp: None, ..ErrorEntry::from(failure) };
                if let Some(run_left) = job.run_left_text() {
                    error.message = format!("{}; {run_left}", error.message);
                }
                error
            }),
            error_history: job.failures.iter().map(ErrorEntry::from).collect(),
        }
    }
}

impl ProgressShape {
    /// Renders the progress of a turn (B6).
    pub fn of(job: &Job, now: Timestamp, waits: Option<Waits>) -> Self {
        let attempt = job.failures.len() + 1;
        let standing = Standing::new(job, waits);
        let message = standing.present();
        let percentage = match &job.state {
            JobState::Queued { .. } => 0,
            JobState::Running { .. } => standing.percent().unwrap_or(25),
            JobState::Succeeded { .. } => 100,
            JobState::Failed { .. } | JobState::Cancelled { .. } => {
                job.progress.as_ref().and_then(|progress| progress.percent).unwrap_or(0)
            }
        };
        let elapsed_ms = u64::try_from(job.elapsed(now).as_millis()).unwrap_or(u64::MAX);
        Self { percentage, message, elapsed_ms, attempt: (attempt > 1).then_some(attempt) }
    }
}

impl From<&Failure> for ErrorEntry {
    fn from(failure: &Failure) -> Self {
        Self {
            code: failure.code.to_string(),
            message: failure.message.clone(),
            timestamp: Some(failure.at.to_string()),
        }
    }
}

impl JobFile {
    /// Renders the pending work; `None` once the last turn has ended.
    pub fn of(conversation: &Conversation) -> Option<Self> {
        let job = conversation.last();
        if job.state.kind().is_terminal() {
            return None;
        }
        let ask = job.new.request.research();
        Some(Self {
            conversation_id: conversation.id.as_str().to_owned(),
            job_id: job.id.to_string(),
            tool_name: tool_name(conversation).to_owned(),
            params: JobParams {
                query: ask.map_or("", ResearchRequest::question).to_owned(),
                reasoning_effort: ask.and_then(|ask| ask.effort),
            },
            priority: job.new.priority,
            created_at: job.created_at.to_string(),
            attempts: job.failures.len(),
            max_attempts: job.new.max_failures.saturating_add(1),
        })
    }
}

/// Returns the tool that started the last turn: a tool of the set `deep-research` under its own name.
fn tool_name(conversation: &Conversation) -> &str {
    let recorded = conversation.last().new.recorded_tool();
    if let Some(own @ ("deep_research" | "deep_research_followup")) = recorded {
        return own;
    }
    let is_research = conversation.last().new.workflow == "deep_research";
    match (is_research, conversation.was_continued()) {
        (true, false) => "perplexity_deep_research",
        (true, true) => "perplexity_deep_research_followup",
        (false, false) => "perplexity_search",
        (false, true) => "perplexity_search_followup",
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use outlast_core::{
        Body, Checkpoint, ConversationId, Cost, Fence, JobId, NewJob, Output, OwnerId, Rev, Usage,
        Visibility,
    };
    use serde_json::json;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(0);

    fn turn(question: &str, state: JobState) -> Job {
        let new = NewJob {
            owner: OwnerId::new("ann"),
            conversation: Some(ConversationId::new("c")),
            subject: None,
            profile: Profile::new("perplexity"),
            workflow: "deep_research".to_owned(),
            title: question.to_owned(),
            request: json!({ "messages": [{ "role": "user", "content": question }] }).into(),
            priority: 0,
            visibility: Visibility::Promised,
            max_failures: 2,
            attempt_timeout: Duration::from_secs(600),
            life: None,
            keep: None,
        };
        Job {
            id: JobId::new(uuid::Uuid::from_u128(1)),
            new,
            turn: 1,
            state,
            failures: Vec::new(),
            checkpoint: Checkpoint::NotBegun,
            allowance: None,
            progress: None,
            partial: None,
            questions: outlast_core::Questions::default(),
            fence: Fence(0),
            created_at: NOW,
            updated_at: NOW,
            rev: Rev(0),
        }
    }

    /// B3, B4: the status of a conversation is that of its last turn.
    #[test]
    fn the_status_is_that_of_the_last_turn() {
        let output = Output {
            body: Body::report("1", Vec::new()),
            model: None,
            usage: Usage::default(),
            cost: Cost::Unknown,
        };
        let one = turn("1", JobState::Succeeded { at: NOW, output: Arc::new(output) });
        let two = turn("2", JobState::Running { since: NOW });
        let conversation =
            Conversation::from_turns(ConversationId::new("c"), vec![one, two]).unwrap();
        let file = ConversationFile::of(&conversation, None);
        assert_eq!((file.message_count, file.messages.len()), (3, 3), "it counts what it lists");
        let status = StatusFile::of(&conversation, NOW);
        assert_eq!(status.status, StatusWord::InProgress);
        assert_eq!(status.tool_name, "perplexity_deep_research_followup");
        assert_eq!(status.progress.unwrap().percentage, 25);
        let job = JobFile::of(&conversation).unwrap();
        assert_eq!(job.params.query, "2");
    }

    /// P1: a conversation known only from its file still belongs to the vendor that began it.
    #[test]
    fn p1_the_file_names_the_vendor_if_the_model_does_not() {
        let cases = [
            ("perplexity/agent https://api.example 0", None, "perplexity"),
            ("library 0", None, "library"),
            ("openai https://api.example 0", Some("openai"), "openai"),
        ];
        for (profile, written, provider) in cases {
            let mut one = turn("1", JobState::Running { since: NOW });
            one.new.profile = Profile::new(profile);
            let conversation =
                Conversation::from_turns(ConversationId::new("c"), vec![one]).unwrap();
            let model = (provider == "library").then(|| "library (extractive)".to_owned());
            let file = ConversationFile::of(&conversation, model);
            assert_eq!((file.provider.as_deref(), file.provider()), (written, provider));
        }
    }

    /// P1: the contents of the file decide. Text of the library stays the library's, no matter who answered
    /// last.
    #[test]
    fn p1_a_file_with_text_of_the_library_belongs_to_the_library() {
        let (mut first, mut moved) = (
            turn("1", JobState::Running { since: NOW }),
            turn("2", JobState::Running { since: NOW }),
        );
        first.new.profile = Profile::new("library 0");
        moved.new.profile = Profile::new("openai https://api.example 0");
        let turns = vec![first, moved];
        let conversation = Conversation::from_turns(ConversationId::new("c"), turns).unwrap();
        let file = ConversationFile::of(&conversation, Some("gpt".to_owned()));
        assert_eq!((file.provider.as_deref(), file.provider()), (Some("library"), "library"));

        // Files of 0.1.0 name only the model that answered last.
        let note = LIBRARY_NOTE;
        let said = Message { role: Role::Assistant, content: format!("Text.\n\n{note} More.*") };
        let old = ConversationFile { provider: None, messages: vec![said], ..file };
        assert_eq!(old.provider(), "library");
        let named = ConversationFile { provider: Some("openai".to_owned()), ..old };
        assert_eq!(named.provider(), "library");
    }

    /// B4, G2: a tool of the set for any provider appears under its own name.
    #[test]
    fn b4_the_tool_that_asked_is_named() {
        for (made_by, shown) in [
            (Some("deep_research"), "deep_research"),
            (Some("perplexity_deep_research"), "perplexity_deep_research"),
            (Some("outlast research"), "perplexity_deep_research"),
            (None, "perplexity_deep_research"),
        ] {
            let mut one = turn("1", JobState::Running { since: NOW });
            if let Some(tool) = made_by {
                one.new = one.new.with_tool(tool);
            }
            let conversation =
                Conversation::from_turns(ConversationId::new("c"), vec![one]).unwrap();
            assert_eq!(StatusFile::of(&conversation, NOW).tool_name, shown, "{made_by:?}");
        }
    }
}
