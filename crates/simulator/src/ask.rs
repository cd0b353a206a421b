//! One accepted request for research, whatever API it came through.

use serde_json::Value;

use crate::effort::Effort;
use crate::scenario::without_markers;
use crate::sonar::prices::{Context, Model};

/// What a run is made from.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) api: Api,
    /// The session it is sent into, which names its run.
    pub(crate) session: Option<String>,
    /// What only Sonar asks for.
    pub(crate) sonar: Option<Sonar>,
    /// The key that makes the submit of a job safe to repeat.
    pub(crate) key: Option<IdempotencyKey>,
    /// The question as JSON: two submits with the same one are the same question asked twice.
    pub(crate) input: String,
    /// All texts of the question; markers are looked for here.
    pub(crate) prompt: String,
    /// The last message without markers: what the report is about.
    pub(crate) question: String,
    pub(crate) effort: Effort,
    /// What `model` shows until the run has completed.
    pub(crate) label: String,
    pub(crate) model: &'static str,
    pub(crate) background: bool,
    pub(crate) stream: bool,
    pub(crate) store: bool,
    /// What the client noted with it; OpenAI's.
    pub(crate) metadata: Value,
}

/// Where a run was submitted; the same endpoints reach it by its id, except that none takes the id of a chat answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Api {
    Agent,
    OpenAi,
    SonarAsync,
    SonarChat,
    Gemini,
    Anthropic,
}

impl Api {
    /// Whether its runs are response objects.
    pub(crate) fn has_responses(self) -> bool {
        matches!(self, Self::Agent | Self::OpenAi)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Sonar {
    pub(crate) model: &'static Model,
    pub(crate) context: Context,
    pub(crate) related_questions: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct IdempotencyKey {
    pub(crate) key: String,
    /// The whole request: the same key with another one is a mistake.
    pub(crate) request: String,
}

impl Ask {
    /// Plain research in the background about the last of these texts; what else is asked for is set by its API.
    pub(crate) fn new(api: Api, input: &Value, texts: &[String]) -> Self {
        Self {
            api,
            session: None,
            sonar: None,
            key: None,
            input: input.to_string(),
            prompt: texts.join("\n"),
            question: texts.last().map(|text| without_markers(text)).unwrap_or_default(),
            effort: Effort::Medium,
            label: String::new(),
            model: "",
            background: true,
            stream: false,
            store: true,
            metadata: Value::Null,
        }
    }

    #[cfg(test)]
    pub(crate) fn to_agent(question: &str, effort: Effort) -> Self {
        let model = "openai/gpt-6-luna";
        Self { effort, model, ..Self::new(Api::Agent, &question.into(), &[question.to_owned()]) }
    }
}
