//! A conversation for export, read from the store or from its files: questions and their results.

use outlast_core::conversation::Conversation;
use outlast_core::{
    Body, Cost, Job, JobState, NanoUsd, ResearchRequest, Role, Scope, Source, StateKind,
    StoreError, rules,
};
use outlast_engine::Engine;
use outlast_mirror::{ArchivedConversation, CostShape, ErrorEntry, SearchResult, UsageShape};

use outlast_sources::CitationCheck;
use serde::{Serialize, Serializer};

use crate::citations::citation_check;

/// A conversation. `conversations show --json` prints it as JSON, with times in RFC 3339.
#[derive(Serialize)]
pub struct Transcript {
    /// The id.
    pub id: String,
    /// The first question.
    #[serde(skip)]
    pub title: String,
    /// The state.
    #[serde(serialize_with = "state_word")]
    pub state: StateKind,
    /// The start of the conversation.
    pub created_at: String,
    /// The time of the last change.
    pub updated_at: String,
    /// The questions.
    pub turns: Vec<Turn>,
}

/// A question and its result.
#[derive(Serialize)]
pub struct Turn {
    /// The job of the question, if known.
    pub job: Option<String>,
    /// The question.
    pub question: String,
    /// The state.
    #[serde(serialize_with = "state_word")]
    pub state: StateKind,
    /// The time of the question.
    pub asked_at: Option<String>,
    /// The end of the question's job.
    pub ended_at: Option<String>,
    /// The reasons of failed attempts.
    pub failures: Vec<ErrorEntry>,
    /// The report.
    pub answer: Option<TurnAnswer>,
}

/// A report.
#[derive(Default, Serialize)]
pub struct TurnAnswer {
    /// The text in Markdown.
    pub text: String,
    /// The cited sources.
    pub sources: Vec<Source>,
    /// The model that wrote the report.
    pub model: Option<String>,
    /// The tokens used.
    pub usage: Option<UsageShape>,
    /// The cost.
    pub cost: Option<CostShape>,
    /// The cost in words.
    #[serde(skip)]
    pub price: String,
    /// The newest check of its citations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<CitationCheck>,
}

impl Transcript {
    /// Adds the newest check of each report.
    pub async fn with_checks(mut self, engine: &Engine, scope: &Scope) -> Result<Self, StoreError> {
        for turn in &mut self.turns {
            let id = turn.job.as_deref().and_then(|id| id.parse().ok());
            if let (Some(answer), Some(id)) = (&mut turn.answer, id) {
                let check = engine.finished_check(scope, &id).await?;
                answer.check = check.as_ref().and_then(citation_check);
            }
        }
        Ok(self)
    }

    /// Creates a transcript from the store.
    pub fn from_stored(conversation: &Conversation) -> Self {
        Self {
            id: conversation.id.as_str().to_owned(),
            title: conversation.turns().next().map_or_else(String::new, question_of),
            state: conversation.last().kind(),
            created_at: conversation.created_at().to_string(),
            updated_at: conversation.updated_at().to_string(),
            turns: conversation.turns().map(Turn::of).collect(),
        }
    }

    /// Creates a transcript from the files alone: every answer belongs to the question before it.
    pub fn from_archived(archived: &ArchivedConversation) -> Self {
        let file = &archived.conversation;
        let status = archived.status.as_ref();
        let mut turns: Vec<Turn> = Vec::new();
        for said in &file.messages {
            match said.role {
                Role::System => {}
                Role::User => turns.push(Turn::from_question(&said.content)),
                Role::Assistant => {
                    if let Some(turn) = turns.last_mut() {
                        turn.state = StateKind::Succeeded;
                        turn.answer = Some(TurnAnswer {
                            text: said.content.clone(),
                            model: file.model.clone(),
                            price: "unknown".to_owned(),
                            ..TurnAnswer::default()
                        });
                    }
                }
            }
        }
        if let (Some(last), Some(status)) = (turns.last_mut(), status) {
            last.state = status.status.state();
            last.failures.clone_from(&status.error_history);
        }
        if let Some(answer) = turns.last_mut().and_then(|turn| turn.answer.as_mut()) {
            let results = file.search_results.iter().flatten();
            answer.sources =
                (1..).zip(results).map(|(number, result)| source(number, result)).collect();
        }
        Self {
            id: file.conversation_id.clone(),
            title: turns.first().map_or_else(String::new, |turn| turn.question.clone()),
            state: turns.last().map_or(StateKind::Succeeded, |turn| turn.state),
            created_at: file.created_at.clone(),
            updated_at: file.updated_at.clone(),
            turns,
        }
    }
}

impl Turn {
    pub(crate) fn of(job: &Job) -> Self {
        let answer = match &job.state {
            JobState::Succeeded { output, .. } => {
                let (text, sources) = match &output.body {
                    Body::Report { text, sources, .. } => (text.clone(), sources.clone()),
                    Body::Tool { content, .. } => {
                        let blocks = content.iter().map(|block| match block["text"].as_str() {
                            Some(text) => text.to_owned(),
                            None => block.to_string(),
                        });
                        (blocks.collect::<Vec<_>>().join("\n\n"), Vec::new())
                    }
                };
                Some(TurnAnswer {
                    text,
                    sources,
                    model: output.model.clone(),
                    usage: Some((&output.usage).into()),
                    cost: Some(CostShape::new(output.cost, rules::maybe_spent(job))),
                    price: cost_text(output.cost),
                    check: None,
                })
            }
            JobState::Queued { .. }
            | JobState::Running { .. }
            | JobState::Failed { .. }
            | JobState::Cancelled { .. } => None,
        };
        Self {
            job: Some(job.id.to_string()),
            question: question_of(job),
            state: job.kind(),
            asked_at: Some(job.created_at.to_string()),
            ended_at: job.ended_at().map(|at| at.to_string()),
            failures: job.failures.iter().map(ErrorEntry::from).collect(),
            answer,
        }
    }

    fn from_question(question: &str) -> Self {
        Self {
            job: None,
            question: question.to_owned(),
            state: StateKind::Failed,
            asked_at: None,
            ended_at: None,
            failures: Vec::new(),
            answer: None,
        }
    }
}

/// Describes the cost and how certain it is.
pub fn cost_text(cost: Cost) -> String {
    match cost {
        Cost::Reported(NanoUsd(0)) => "free".to_owned(),
        Cost::Reported(cost) => format!("{cost} (reported by the provider)"),
        Cost::Computed(cost) => format!("{cost} (computed)"),
        Cost::Estimate(cost) => format!("about {cost}"),
        Cost::Unknown => "unknown".to_owned(),
    }
}

fn state_word<S: Serializer>(state: &StateKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(state.as_str())
}

/// Returns the question, or the title of a job that is not research.
pub fn question_of(job: &Job) -> String {
    let question = job.new.request.research().map_or("", ResearchRequest::question);
    if question.is_empty() { &job.new.title } else { question }.to_owned()
}

fn source(number: u32, result: &SearchResult) -> Source {
    Source {
        number,
        url: result.url.clone(),
        title: Some(result.title.clone()),
        date: result.date.clone(),
        ..Source::default()
    }
}
